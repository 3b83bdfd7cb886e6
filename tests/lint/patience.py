#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests neither fail nor wait because of how fast the machine is: a wait is
given up on the patience clock, a verdict counts events or virtual time, and a
lease ends when the test ends it.

The comment "time is the subject" excuses its line and the next one, TIME_TEST
or @time_test a test. Python is read without its strings."""

import io
import re
import tokenize

import lint

SLEEP_MS = 200
LEASE_MS = 5000
MARK = "time is the subject"
PATIENCE = "a wall deadline: use patience_start()"
SLEEP = f"a sleep of more than {SLEEP_MS} ms: wait for an event"
LEASE = f"a lease below {LEASE_MS // 1000} s: make it 1 h, and end it by script"
WALL = "wall time: use Clock or Stopwatch of tests/e2e/patience.py"
LIMIT = "a limit of wall time: use run(), wait(), communicate() or patient()"
BOUND = "a free port may be taken by another program: use tests/e2e/ports.py"
PORT = "a free port may be taken by another program: use redis_proc's"


def any_of(match):
    return True


def sleeps(unit_ms):
    return lambda match: float(match.group(1)) * unit_ms > SLEEP_MS


def is_brief(match):
    unit_ms = 1000 if match.groups()[1:] == ("s",) else 1
    return 0 < int(match.group(1)) * unit_ms < LEASE_MS


# The runner and the mutator measure programs.
IN_TESTS = re.compile(r"(?:tests/(?!runner/|mutants/)|clients/\w+/tests/)")

# {endings: ((pattern, whether a match is a finding, what it says), ...)}
RULES = {
    (".c", ".h"): (
        (r"\bev_time\(\) *[+<]", any_of, PATIENCE),
        (r"\balarm\(", any_of, PATIENCE),
        (r"\bev_sleep\(([\d.]+(?:e-?\d+)?)\)", sleeps(1000), SLEEP),
        (r"\bpoll\(NULL, 0, (\d+)\)", sleeps(1), SLEEP),
        (r"\b(?:world|host|place)_pass\((\d+)\)", sleeps(1), SLEEP),
        (r"\.tv_sec = (\d+)\b", sleeps(1000), SLEEP),
        (r"\btv_nsec = (\d+)\b", sleeps(1e-6), SLEEP),
        (r"\btimespec \w+ = \{\d+, (\d+)\}", sleeps(1e-6), SLEEP),
        (r"\blease=(\d+)(ms|s)\b", is_brief, LEASE),
        (r"\blease_ms = (\d+)\b", is_brief, LEASE),
        (r"\bLEASE\w*_MS = (\d+)\b", is_brief, LEASE),
        (r"\bhost_claim\([^;]*?, (\d+)\)", is_brief, LEASE),
        (r"\bgetsockname\(", any_of, PORT),
    ),
    (".py",): (
        (r"\btime\.monotonic\(", any_of, WALL),
        (r"\btimeout=(?:\d|PATIENCE)", any_of, LIMIT),
        (r"\.(?:wait|join)\((?:\d|PATIENCE)", any_of, LIMIT),
        (r"\btime\.sleep\(([\d.]+)", sleeps(1000), SLEEP),
        (r"\b(?:bind|create_server)\(\([^()]*, 0\)", any_of, BOUND),
    ),
}

EXCEPTIONS = {
    "tests/core/test_option.c": {LEASE},  # reads options, no lease begins
    "tests/fuzz/fuzz_store.c": {LEASE},  # no server
    "tests/e2e/patience.py": {WALL, LIMIT},
    "tests/harness/cut_proxy.c": {PORT},  # listens itself
    "tests/harness/patience.c": {PATIENCE},
    "tests/harness/resp_peer.c": {PORT},  # listens itself
    "tests/plugins/test_notify.c": {PORT},  # listens itself
    "tests/redis/conn/test_conn_parts.c": {PORT},  # listens itself
    "tests/sim/world_jobs.c": {LEASE},  # time is set
}

TESTS_OF_TIME = re.compile(
    r"^TIME_TEST\(.*?^}|^@time_test\ndef .*?(?=\n\S(?!ef )|\Z)",
    re.DOTALL | re.MULTILINE)


def lines_of_time(text):
    """The numbers of the lines whose subject is time."""
    marked = set()
    for number, line in enumerate(text.split("\n"), 1):
        if MARK in line:
            marked.update((number, number + 1))
    for test in TESTS_OF_TIME.finditer(text):
        marked.update(range(lint.line_of(text, test.start()),
                            lint.line_of(text, test.end()) + 1))
    return marked


def python_code(text):
    """As it is, with blanks for strings and comments."""
    lines = [list(line) for line in text.split("\n")]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.STRING, tokenize.COMMENT):
            continue
        (first, begin), (last, end) = token.start, token.end
        for number in range(first, last + 1):
            line = lines[number - 1]
            left = begin if number == first else 0
            right = end if number == last else len(line)
            line[left:right] = " " * (right - left)
    return "\n".join(map("".join, lines))


def check_file(report, path, text, rules):
    report.checked.add(path)
    is_python, marked = path.endswith(".py"), lines_of_time(text)
    code = python_code(text) if is_python else lint.without_comments(text)
    for pattern, is_finding, what in rules:
        if what in EXCEPTIONS.get(path, ()):
            continue
        for match in re.finditer(pattern, code):
            line = lint.line_of(code, match.end())
            if line not in marked and is_finding(match):
                report.finding(path, line, what)


def check(tree, report):
    for endings, rules in RULES.items():
        for path in tree.named(*endings):
            if IN_TESTS.match(path):
                check_file(report, path, tree.text(path), rules)


def one(line, what):
    return {"tests/a.c": line + "\n"}, [f"tests/a.c:1: {what}"]


def py(line, what):
    return {"clients/a/tests/a.py": line + "\n"}, [
        f"clients/a/tests/a.py:1: {what}"]


CASES = {
    "what is allowed": ({
        "tests/a.c": "f(ev_time() - begin);\n"
                     "ev_sleep(.2);\npoll(NULL, 0, 200);\nworld_pass(200);\n"
                     "struct timespec s = {.tv_nsec = 200000000};\n"
                     'f("lease=5s", "lease=5000ms");\nhost_claim(a, 9, 5000);\n'
                     "enum { LEASE_MS = 60000 };\n"
                     "/* alarm(1), lease=1s */\n"
                     "alarm(1); /* time is the subject */\n"
                     "alarm(1);\n",
        "core/a.c": "alarm(1);\n",
        "tests/harness/patience.c": "f(ev_time() + 1);\n",
        "tests/core/test_option.c": 'f("lease=1s");\n',
    }, []),
    "a test of time and one behind it": (
        {"tests/a.c": "TIME_TEST(a)\n{\n    alarm(1);\n}\n"
                      "TEST(b)\n{\n    alarm(1);\n}\n"},
        [f"tests/a.c:7: {PATIENCE}"]),
    "a line behind a mark and one more": (
        {"tests/a.c": "/* time is the subject */\n" + "alarm(1);\n" * 2},
        [f"tests/a.c:3: {PATIENCE}"]),
    "a deadline": one("until = ev_time() + 30.;", PATIENCE),
    "a verdict": one("EXPECT_TRUE(ev_time() <= until);", PATIENCE),
    "an alarm": one("(void)alarm(120);", PATIENCE),
    "a sleep of the loop": one("ev_sleep(250e-3);", SLEEP),
    "a poll": one("(void)poll(NULL, 0, 201);", SLEEP),
    "turns for long": one("host_pass(320);", SLEEP),
    "seconds": one("struct timespec s = {.tv_sec = 1};", SLEEP),
    "nanoseconds": one("pause.tv_nsec = 300000000;", SLEEP),
    "a timespec without names": one("struct timespec s = {0, 300000000};",
                                    SLEEP),
    "a lease of a topic": one('"lease=300ms"', LEASE),
    "a lease in seconds": one('"lease=4s"', LEASE),
    "a lease of a claim": one("claim.lease_ms = 1000;", LEASE),
    "a lease with a name": one("enum { LEASE_SHORT_MS = 300 };", LEASE),
    "a claim": one('host_claim(host_open_as("a", b), 10, 300);', LEASE),
    "what is allowed in Python": ({
        "tests/a.py": 'f("timeout=1s")  # time.sleep(1)\n'
                      "f(timeout=wall)\ntime.sleep(0.2)\n"
                      'bind(("::1", port))\nwait(process)\n'
                      "time.sleep(9)  # time is the subject\n",
        "clients/a/src/a.py": "time.monotonic()\n",
        "tests/runner/a.py": "time.monotonic()\n",
        "tests/e2e/patience.py": "time.monotonic()\n",
    }, []),
    "a test of time in Python and one behind it": (
        {"tests/a.py": "@time_test\ndef a(place):\n    time.sleep(1)\n\n\n"
                       "@test\ndef b(place):\n    time.sleep(1)\n"},
        [f"tests/a.py:8: {SLEEP}"]),
    "a clock of the wall": py("end = time.monotonic() + 9", WALL),
    "a limit of a program": py("run(args, timeout=PATIENCE)", LIMIT),
    "a limit in seconds": py("run(args, timeout=60)", LIMIT),
    "a limit of a process": py("process.wait(PATIENCE)", LIMIT),
    "a sleep in Python": py("time.sleep(0.25)", SLEEP),
    "a port of nobody": py('taken.bind(("127.0.0.1", 0))', BOUND),
    "a server at a port of nobody": py('create_server(("127.0.0.1", 0))',
                                       BOUND),
    "a port that the system chose": one("getsockname(fd, at, &len);", PORT),
}

if __name__ == "__main__":
    lint.main(check, CASES)
