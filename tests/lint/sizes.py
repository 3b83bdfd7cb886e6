#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long functions and files are, and how many parameters a function has.

Beyond the limit is a finding; beyond what is good, a note.
"""

import lint

LINES_GOOD, LINES_LIMIT = 40, 70
PARAMETERS_GOOD, PARAMETERS_LIMIT = 5, 6
FILE_GOOD, FILE_LIMIT = 400, 600


def parameter_count(signature):
    inside = signature[1:-1].strip()
    if inside in ("", "void"):
        return 0
    depth = 0
    count = 1
    for letter in inside:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        count += letter == "," and depth == 0
    return count


def functions(tree, path):
    """(name, first line, lines, parameters) of each function in a file."""
    ctags = lint.need_tool("ctags-universal", "ctags")
    code, output = lint.output_of(
        ctags, "--options=NONE", "-f", "-", "--language-force=C",
        "--kinds-C=f", "--fields=neS", str(tree.root / path))
    if code != 0:
        raise SystemExit(f"{ctags} cannot be used: {output.strip()}")
    for line in output.splitlines():
        if "\t" not in line:
            continue  # it says that it reads no configuration
        name, _, rest = line.split("\t", 2)
        fields = dict(field.split(":", 1)
                      for field in rest.split("\t") if ":" in field)
        if "end" in fields:
            first = int(fields["line"])
            yield (name, first, int(fields["end"]) - first + 1,
                   parameter_count(fields.get("signature", "()")))


def weigh(report, path, line, what, count, good, limit):
    if count > limit:
        report.finding(path, line, f"{what}, {limit} at most")
    elif count > good:
        report.note(f"{path}:{line}: {what}, {good} are enough")


def check(tree, report):
    lengths = []
    for path in tree.named(".c", ".h"):
        report.checked.add(path)
        count = tree.text(path).count("\n")
        weigh(report, path, 1, f"{count} lines", count, FILE_GOOD, FILE_LIMIT)
        for name, line, length, parameters in functions(tree, path):
            lengths.append(length)
            weigh(report, path, line, f"{name} has {length} lines", length,
                  LINES_GOOD, LINES_LIMIT)
            weigh(report, path, line, f"{name} has {parameters} parameters",
                  parameters, PARAMETERS_GOOD, PARAMETERS_LIMIT)
    if lengths:
        lengths.sort()
        report.note(f"{len(lengths)} functions; median "
                    f"{lengths[len(lengths) // 2]} lines, 90 % within "
                    f"{lengths[len(lengths) * 9 // 10]}")


def function(lines, parameters="void"):
    return f"int f({parameters})\n{{\n" + "    g();\n" * (lines - 3) + "}\n"


CASES = {
    "what is allowed": ({
        "core/a.c": function(70, "int a, int (*b)(int, int), int c, int d, "
                                 "int e, int f"),
        "core/b.c": "int x;\n" * 600,
    }, []),
    "a long function": (
        {"core/a.c": "int x;\n" + function(71)},
        ["core/a.c:2: f has 71 lines, 70 at most"]),
    "a long function in a header": (
        {"core/a.h": function(71)},
        ["core/a.h:1: f has 71 lines, 70 at most"]),
    "many parameters": (
        {"core/a.c": function(4, "int a, int b, int c, int d, int e,\n"
                                 "      int f, int g")},
        ["core/a.c:1: f has 7 parameters, 6 at most"]),
    "a long file": (
        {"core/a.c": "int x;\n" * 601},
        ["core/a.c:1: 601 lines, 600 at most"]),
}

if __name__ == "__main__":
    lint.main(check, CASES)
