#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the command line prints goes through one place, which shows foreign
text (core/visible.h): in adapters/cli only the files below write bytes to a
stream, and printf elsewhere has a literal format in which nothing is a text."""

import re

import lint

PRINTERS = {"printf", "fprintf"}
WRITERS = frozenset("""
    dprintf fputc fputs fwrite perror putc putchar puts vdprintf vfprintf
    vprintf write writev
""".split())

# The one place, and what is not foreign: {file: (words, why)}.
EXCEPTIONS = {
    "adapters/cli/print.c": ({"fputs", "fwrite", "putchar"}, "stdout"),
    "adapters/cli/jq_process.c": ({"write"}, "a socket"),
    "adapters/cli/notify.c": ({"write"}, "a pipe"),
    "adapters/cli/say.c": ({"write"}, "stderr"),
    "adapters/cli/signals.c": ({"write"}, "in a signal handler"),
    "adapters/cli/cmd_plugin_new.c": ({"fputc", "fputs", "fwrite"},
                                      "files, not a terminal"),
    "adapters/cli/cmd_plugin_try.c": ({"write"}, "a pipe"),
    "adapters/cli/help.c": ({"printf"}, "tables of our own"),
    "adapters/cli/progress.c": ({"fprintf"}, "a bar of our own"),
}

CALL = re.compile(r"(?<![\w.])(?<!->)([A-Za-z_]\w*)\s*\(")
LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')
TEXT = re.compile(r"%(?!%)[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?"
                  r"(?:hh|h|ll|l|j|z|t)?[csm]")


def call_at(code, start):
    """The end of the call whose opening bracket is at `start`."""
    depth = 0
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return at
    return len(code)


def format_of(arguments, name):
    """The text of the argument that is the format."""
    if name == "fprintf":
        arguments = arguments.partition(",")[2]
    return arguments.lstrip()


def finding_of(arguments, name):
    text = format_of(arguments, name)
    if not text.startswith(('"', "PRI")):
        return f"{name}: its format is no literal; use weir__print"
    if TEXT.search("".join(LITERAL.findall(text)).replace("%%", "")):
        return f"{name} of a text: use weir__print or weir__complain"
    return None


def check(tree, report):
    for path in tree.named(".c"):
        if not path.startswith("adapters/cli/"):
            continue
        report.checked.add(path)
        text = lint.without_comments(tree.text(path))
        code = lint.only_code(text)
        allowed = EXCEPTIONS.get(path, ((), ""))[0]
        for match in CALL.finditer(code):
            name, what = match.group(1), None
            if name in allowed:
                continue
            if name in WRITERS:
                what = f"{name}: use weir__print or weir__complain"
            elif name in PRINTERS:
                end = call_at(code, match.end() - 1)
                what = finding_of(text[match.end():end], name)
            if what:
                report.finding(path, lint.line_of(code, match.start()), what)


def one(body, what):
    path = "adapters/cli/cmd_x.c"
    return {path: body + "\n"}, [f"{path}:1: {what}"]


CASES = {
    "what is allowed": ({
        "adapters/cli/cmd_x.c":
            'int f(void) { weir__print("%s", x); printf("%5u %%s\\n", n);\n'
            '/* puts(x) */ snprintf(b, 3, "%s", x); g->write(x);\n'
            'printf("%" PRIu64 "\\n", n); fprintf(stderr, "\\r"); }\n',
        "adapters/cli/print.c": "void f(void) { fwrite(x, 1, n, stdout); }\n",
        "bench/x.c": 'void f(void) { printf("%s", x); }\n',
    }, []),
    "a text": one('int f(void) { printf("a %s", x); }',
                  "printf of a text: use weir__print"),
    "a part of a text": one('int f(void) { printf("%-*.*s", 1, 2, x); }',
                            "printf of a text: use weir__print"),
    "a character": one('int f(void) { fprintf(stderr, "%c", x); }',
                       "fprintf of a text: use weir__print"),
    "a text behind a number": one(
        'int f(void) { printf("%" PRIu64 " %s", n, x); }',
        "printf of a text: use weir__print"),
    "a format that is not there to be read": one(
        "int f(void) { printf(x, y); }",
        "printf: its format is no literal"),
    "a writer": one("int f(void) { fputs(x, stdout); }",
                    "fputs: use weir__print"),
    "the descriptor itself": one("int f(void) { write(1, x, n); }",
                                 "write: use weir__print"),
}

if __name__ == "__main__":
    lint.main(check, CASES)
