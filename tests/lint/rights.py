#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The commands in adapters/cli/rights.c are those that weir calls.

Called is what a script calls, what is behind weir__resp_command, in
weir__prefix_command and weir__resp_eval, words that end with NULL, and
RESP as a literal. Topics of kind list and stream have the scripts and sources
in external/ beside those of the others.
"""

import re

import lint

LIST = "adapters/cli/rights.c"
SCRIPTS = "adapters/redis/scripts/"
# The private server is not asked as a user with few rights.
SOURCES = ("adapters/redis/", "adapters/cli/")
# Where the functions are that are looked for; they have the name from callers.
WRITERS = {"adapters/redis/resp.c", "adapters/redis/store/names.c",
           "adapters/redis/store/port.c"}

# What is called by all may be asked of sentinels, too, or left out of the rule.
MAY_BE = {"ALWAYS": ("ALWAYS", "BOTH", "BEYOND")}

# Those whose second word is part of the name.
CONTAINERS = {"ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "FUNCTION",
              "LATENCY", "MEMORY", "OBJECT", "PUBSUB", "SCRIPT", "SENTINEL",
              "SLOWLOG", "XGROUP", "XINFO"}

WORD = r"[A-Z]+"
SECOND = r"[A-Za-z-]+"
LUA_CALL = re.compile(r"call(?:_list)?\(\s*'(%s)'(?:\s*,\s*'(%s)')?"
                      % (WORD, SECOND))
C_COMMAND = re.compile(r"weir__resp_command\([^;]*\);")
C_NAME = re.compile(r'\s*weir__resp_str\([^;]*?"(%s)"(?:[^;"]*"(%s)")?\);'
                    % (SECOND, SECOND))
C_PREFIX = re.compile(r'weir__prefix_command\([^;"]*?"(%s)"' % WORD)
C_EVAL = re.compile(r"weir__resp_eval\(")
C_WORDS = re.compile(r'\*\s*(?:const\s+)?(?:\w+\[\]|words\[[^]]+\])\s*='
                     r'\s*\{\s*"(%s)",'
                     r'(?:\s*"(%s)")?' % (WORD, SECOND))
C_LITERAL = re.compile(r'"\*\d+\\r\\n\$\d+\\r\\n(%s)\\r\\n'
                       r'(?:\$\d+\\r\\n(%s)\\r\\n)?' % (WORD, SECOND))
ROW = re.compile(r'\{"(\S+?)(?: [^"]*)?",\s*WEIR__RIGHT_(\w+)\}')
INCLUDE = re.compile(r"^ *--#include (\w+)$", re.M)


def named(first, second):
    first = first.upper()
    return f"{first}|{second.upper()}" if first in CONTAINERS and second \
        else first


class Calls:
    """Where each command is called first: by all kinds, and by topics of kind
    list or stream alone."""

    def __init__(self, tree, report):
        self.by_all, self.by_external = {}, {}
        self.tree, self.report = tree, report
        for path in tree.named(".lua"):
            if path.startswith(SCRIPTS) and "/lib/" not in path:
                self.of_script(path, path)
        for path in tree.named(".c"):
            if path.startswith(SOURCES) and path != LIST:
                self.of_source(path)

    def add(self, owner, path, line, name):
        where = self.by_external if "/external/" in owner else self.by_all
        where.setdefault(name, (path, line))

    def of_script(self, owner, path):
        """With what it includes, which counts as its own."""
        if path not in self.tree.paths:
            return
        self.report.checked.add(path)
        text = re.sub(r"--(?!#)[^\n]*", "", self.tree.text(path))
        for call in LUA_CALL.finditer(text):
            self.add(owner, path, lint.line_of(text, call.start()),
                     named(*call.groups()))
        for name in INCLUDE.findall(text):
            self.of_script(owner, f"{SCRIPTS}lib/{name}.lua")

    def of_source(self, path):
        self.report.checked.add(path)
        text = lint.without_comments(self.tree.text(path))
        for pattern in (C_PREFIX, C_WORDS, C_LITERAL):
            for call in pattern.finditer(text):
                self.add(path, path, lint.line_of(text, call.start()),
                         named(*(call.groups() + (None,))[:2]))
        for call in C_EVAL.finditer(text):
            self.add(path, path, lint.line_of(text, call.start()), "EVALSHA")
        for call in C_COMMAND.finditer(text):
            if path not in WRITERS:
                self.of_command(path, text, call)

    def of_command(self, path, text, call):
        """The name is the next argument; of two, it may be either."""
        line = lint.line_of(text, call.start())
        name = C_NAME.match(text, call.end())
        if name is None:
            self.report.finding(
                path, line, "write the command's name behind "
                "weir__resp_command, as a literal: it is compared with " + LIST)
            return
        second = C_NAME.match(text, name.end())
        for word in second.groups() if second else (None,):
            if word or second is None:
                self.add(path, path, line, named(name.group(1), word))
        if name.group(2):
            self.add(path, path, line, name.group(2))


def wanted(calls):
    """{command: (whose, path, line)}: what is called by all is no kind's."""
    rights = {name: ("SENTINEL" if name.startswith("SENTINEL|") else "ALWAYS",)
              + place for name, place in calls.by_all.items()}
    for name, place in calls.by_external.items():
        kind = "STREAM" if name.startswith("X") else "LIST"
        rights.setdefault(name, (kind,) + place)
    return rights


def check(tree, report):
    calls = Calls(tree, report)
    rights = wanted(calls)
    text = lint.without_comments(tree.text(LIST))
    listed = {row.group(1): (row.group(2), lint.line_of(text, row.start()))
              for row in ROW.finditer(text)}
    report.checked.add(LIST)
    for name, (whose, path, line) in rights.items():
        if name not in listed:
            report.finding(
                path, line, f'{name} is called, but not in weir__rights: add '
                f'{{"{name} ARGUMENTS", WEIR__RIGHT_{whose}}} in {LIST}')
    for name, (whose, line) in listed.items():
        if name not in rights:
            report.finding(LIST, line, f"{name} is listed, nobody calls it")
        elif whose not in MAY_BE.get(rights[name][0], (rights[name][0],)):
            report.finding(LIST, line, f"{name} is WEIR__RIGHT_{whose}, "
                           f"called as {rights[name][0]}")


def row(text, whose="ALWAYS"):
    return '    {"%s", WEIR__RIGHT_%s},\n' % (text, whose)


GOOD = {
    LIST: row("GET KEY") + row("DEL KEY") + row("PING") + row("EVALSHA 0 0") +
          row("CLIENT|ID") + row("CONFIG|GET x", "BEYOND") +
          row("BLMOVE KEY KEY LEFT LEFT 1", "LIST") +
          row("XADD KEY * x x", "STREAM") + row("RPUSH KEY x") +
          row("XGROUP|CREATE KEY x 0", "STREAM"),
    SCRIPTS + "delay/add.lua":
        "-- call('FLUSHALL') is no call\n--#include take\n"
        "redis.call('GET', KEYS[1])\nredis.pcall(\n  'RPUSH', KEYS[1], 1)\n",
    SCRIPTS + "lib/take.lua": "call_list('DEL', key, list)\n",
    SCRIPTS + "lib/unused.lua": "call('FLUSHDB')\n",
    SCRIPTS + "external/claim.lua":
        "--#include take\ncall('XGROUP', 'CREATE', stream)\n",
    "adapters/redis/external/add.c":
        "weir__resp_command(&bytes, 3);\n"
        'weir__resp_str(&bytes, is_stream ? "XADD" : "RPUSH");\n'
        'weir__resp_command(&bytes, 6);\nweir__resp_str(&bytes, "BLMOVE");\n'
        'weir__resp_str(&bytes, key);\nweir__resp_str(&bytes, "LEFT");\n',
    "adapters/redis/conn/identity.c":
        'QUESTION("*2\\r\\n$6\\r\\nCLIENT\\r\\n$2\\r\\nID\\r\\n"),\n'
        "weir__resp_eval(&bytes, script, 1, 1);\n",
    "adapters/cli/doctor.c":
        'const char *words[] = {"PING", NULL};\n'
        'const char *words[CAP] = {"CONFIG", "GET", name, NULL};\n',
    "adapters/server/ask.c": 'const char *words[] = {"SHUTDOWN", NULL};\n',
}


def with_more(path, text):
    return {**GOOD, path: GOOD.get(path, "") + text}


def missing(path, line, name, whose="ALWAYS"):
    return [f"{path}:{line}: {name} is called, but not in weir__rights: add "
            f'{{"{name} ARGUMENTS", WEIR__RIGHT_{whose}}} in {LIST}']


CASES = {
    "all is listed": (GOOD, []),
    "a script calls another": (
        with_more(SCRIPTS + "delay/add.lua", "local n = call('INCR', key)\n"),
        missing(SCRIPTS + "delay/add.lua", 6, "INCR")),
    "what a script includes calls another": (
        with_more(SCRIPTS + "lib/take.lua", "redis.call('XLEN', key)\n"),
        missing(SCRIPTS + "lib/take.lua", 2, "XLEN")),
    "a script of streams calls another": (
        with_more(SCRIPTS + "external/claim.lua", "call('XACK', stream)\n"),
        missing(SCRIPTS + "external/claim.lua", 3, "XACK", "STREAM")),
    "a source calls another": (
        with_more("adapters/redis/store/x.c",
                  'weir__resp_command(&b, 2);\nweir__resp_str(&b, "ROLE");\n'),
        missing("adapters/redis/store/x.c", 1, "ROLE")),
    "a key of a topic is read": (
        with_more("adapters/redis/store/x.c",
                  '\nweir__prefix_command(&b, &topic->prefix, 3, "HGET",\n'
                  '                     "ids");\n'),
        missing("adapters/redis/store/x.c", 2, "HGET")),
    "the probe asks another": (
        with_more("adapters/cli/x.c",
                  'static const char *const words[] = {"SENTINEL", "ckquorum",'
                  " name, NULL};\n"),
        missing("adapters/cli/x.c", 1, "SENTINEL|CKQUORUM", "SENTINEL")),
    "another one is a literal": (
        with_more("adapters/redis/x.c",
                  'S("*2\\r\\n$4\\r\\nINFO\\r\\n$6\\r\\nserver\\r\\n");\n'),
        missing("adapters/redis/x.c", 1, "INFO")),
    "a name that cannot be seen": (
        with_more("adapters/redis/store/x.c",
                  "weir__resp_command(&b, 2);\nweir__resp_str(&b, name);\n"),
        ["adapters/redis/store/x.c:1: write the command's name behind "]),
    "one is listed that nobody calls": (
        with_more(LIST, row("FLUSHALL")),
        [LIST + ":11: FLUSHALL is listed, nobody calls it"]),
    "one is listed for too many": (
        with_more(LIST, row("XADD KEY * x x")),
        [LIST + ":11: XADD is WEIR__RIGHT_ALWAYS, called as STREAM"]),
}

if __name__ == "__main__":
    lint.main(check, CASES)
