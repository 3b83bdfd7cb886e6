#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The server in the tests' process has the commands of adapters/cli/rights.c.

So it grows with weir, and with nothing else. What only tests ask stands in
for_tests.c.
"""

import re

import lint

RIGHTS = "adapters/cli/rights.c"
SERVER = "tests/sim/server/"
FOR_TESTS = SERVER + "for_tests.c"

# Commands without which the worlds of tests/sim do, and why.
ABSENT = {
    "CONFIG": "weir doctor alone asks",
    "DISCARD": "weir doctor alone asks",
    "MULTI": "weir doctor alone asks",
    "SCAN": "weir doctor alone asks",
    "SENTINEL": "another kind of server answers",
    "WAITAOF": "Redis 7.2 is the first to know it",
}
# UNSUBSCRIBE ends SUBSCRIBE and needs no right of its own.
BESIDE = {"UNSUBSCRIBE"}

RIGHT = re.compile(r'\{"([A-Z]+)[^"]*",\s*WEIR__RIGHT_')
COMMAND = re.compile(r'\{"([A-Z]+)",\s*-?\d+,\s*run_\w+,')


def rows(tree, path, pattern):
    text = lint.without_comments(tree.text(path))
    return {row.group(1): lint.line_of(text, row.start())
            for row in pattern.finditer(text)}


def check(tree, report):
    rights = rows(tree, RIGHTS, RIGHT)
    report.checked.add(RIGHTS)
    known = set()
    for path in tree.named(".c"):
        if not path.startswith(SERVER):
            continue
        report.checked.add(path)
        for name, line in rows(tree, path, COMMAND).items():
            known.add(name)
            if name in ABSENT:
                report.finding(path, line, f"{name} is in ABSENT of "
                               "tests/lint/server_commands.py: remove it there")
            if path != FOR_TESTS and name not in rights and name not in BESIDE:
                report.finding(path, line, f"weir never sends {name}: remove "
                               f"it, or move it to {FOR_TESTS}")
    for name, line in rights.items():
        if name not in known and name not in ABSENT:
            report.finding(RIGHTS, line, f"{name} is no command of {SERVER}: "
                           "add it there")


GOOD = {
    RIGHTS: '{"GET KEY", WEIR__RIGHT_ALWAYS},\n'
            '{"SCAN 0", WEIR__RIGHT_BEYOND},\n'
            '{"XGROUP|CREATE KEY x 0", WEIR__RIGHT_STREAM},\n',
    SERVER + "keys.c": '{"GET", 2, run_get, false}, {"XGROUP", -2, run_xgroup,'
                       " true},\n",
    SERVER + "server.c": '{"UNSUBSCRIBE", -2, run_unsubscribe, false},\n',
    FOR_TESTS: '{"KEYS", 2, run_keys, false},\n',
}

CASES = {
    "the two are the same": (GOOD, []),
    "weir sends another one": (
        {**GOOD, RIGHTS: GOOD[RIGHTS] + '{"DEL KEY", WEIR__RIGHT_ALWAYS},\n'},
        [RIGHTS + ":4: DEL is no command of tests/sim/server/: add it there"]),
    "the server has one that nobody sends": (
        {**GOOD, SERVER + "list.c": '{"LSET", 4, run_lset, true},\n'},
        [SERVER + "list.c:1: weir never sends LSET: remove it, or move"]),
    "the server has one that is called absent": (
        {**GOOD, FOR_TESTS: '{"SCAN", -2, run_scan, false},\n'},
        [FOR_TESTS + ":1: SCAN is in ABSENT of"]),
}

if __name__ == "__main__":
    lint.main(check, CASES)
