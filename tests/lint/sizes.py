#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long functions and files are, how many parameters a function has, how
many functions others can call, and how often the code says what must hold.

Beyond the limit is a finding; beyond what is good, a note.
"""

import re

import lint

LINES_GOOD, LINES_LIMIT = 40, 70
PARAMETERS_GOOD, PARAMETERS_LIMIT = 5, 6
FILE_LIMIT = 600
# Functions whose parameters a library says.
FOREIGN = {"adapters/http/server.c": {"on_request"}}

# What the sources have today. A limit changes in one direction only: fewer
# functions that another file can call, more assertions.
EXTERN_LIMIT = 32  # of a hundred internal functions
ASSERTS_LIMIT = {"core": 9, "adapters": 4.8}  # in a thousand lines
FEW_LINES = 1000  # of which nothing is said
ASSERT = re.compile(r"\bWEIR_(?:ASSERT|UNREACHABLE)\(")


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


def functions(tree, paths):
    """(path, name, first line, lines, parameters, static) of each function."""
    ctags = lint.need_tool("ctags-universal", "ctags")
    code, output = lint.output_of(
        ctags, "--options=NONE", "-f", "-", "--language-force=C",
        "--kinds-C=f", "--fields=neSf", *paths, cwd=tree.root)
    if code != 0:
        raise SystemExit(f"{ctags} cannot be used: {output.strip()}")
    for line in output.splitlines():
        if "\t" not in line:
            continue  # it says that it reads no configuration
        name, path, rest = line.split("\t", 2)
        fields = dict(field.split(":", 1)
                      for field in rest.split("\t") if ":" in field)
        if "end" in fields:
            first = int(fields["line"])
            yield (path, name, first, int(fields["end"]) - first + 1,
                   parameter_count(fields.get("signature", "()")),
                   "file" in fields)


def weigh(report, path, line, what, count, good, limit):
    if count > limit:
        report.finding(path, line, f"{what}, {limit} at most")
    elif count > good:
        report.note(f"{path}:{line}: {what}, {good} are enough")


def check_extern(report, internal):
    """internal: whether each is static."""
    if not internal:
        return
    share = 100 * internal.count(False) / len(internal)
    what = f"{share:.1f} % of {len(internal)} internal functions are extern"
    report.note(what)
    if share > EXTERN_LIMIT:
        report.finding("core, adapters", 1, f"{what}, {EXTERN_LIMIT} at most")


def check_asserts(tree, report):
    for folder, limit in ASSERTS_LIMIT.items():
        texts = [tree.text(path) for path in tree.named(".c", ".h")
                 if path.startswith(folder + "/")]
        lines = sum(text.count("\n") for text in texts)
        if lines < FEW_LINES:
            continue
        share = 1000 * sum(len(ASSERT.findall(text)) for text in texts) / lines
        what = f"{share:.1f} assertions in a thousand lines"
        report.note(f"{folder}: {what}")
        if share < limit:
            report.finding(folder, 1, f"{what}, {limit} at least")


def check(tree, report):
    lengths, internal = [], []
    paths = tree.named(".c", ".h")
    for path in paths + tree.named(".js", ".css"):
        report.checked.add(path)
        count = tree.text(path).count("\n")
        weigh(report, path, 1, f"{count} lines", count, FILE_LIMIT, FILE_LIMIT)
    for path, name, line, length, parameters, is_static in functions(
            tree, paths):
        lengths.append(length)
        weigh(report, path, line, f"{name} has {length} lines", length,
              LINES_GOOD, LINES_LIMIT)
        if name not in FOREIGN.get(path, ()):
            weigh(report, path, line, f"{name} has {parameters} parameters",
                  parameters, PARAMETERS_GOOD, PARAMETERS_LIMIT)
        if path.startswith(("core/", "adapters/")) and path.endswith(".c") \
                and (is_static or name.startswith("weir__")):
            internal.append(is_static)
    check_extern(report, internal)
    check_asserts(tree, report)
    if lengths:
        lengths.sort()
        report.note(f"{len(lengths)} functions; median "
                    f"{lengths[len(lengths) // 2]} lines, 90 % within "
                    f"{lengths[len(lengths) * 9 // 10]}")


def function(lines, parameters="void"):
    return f"int f({parameters})\n{{\n" + "    g();\n" * (lines - 3) + "}\n"


STATIC = "static void a(void)\n{\n}\n"

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
    "a long script and a long style sheet": (
        {"core/a.c": STATIC, "adapters/a.js": "f();\n" * 601, "adapters/a.css": "a{}\n" * 601},
        ["adapters/a.css:1: 601 lines, 600 at most",
         "adapters/a.js:1: 601 lines, 600 at most"]),
    "a third of the internal functions extern": (
        {"core/a.c": "void weir__a(void)\n{\n}\n" + STATIC * 2},
        ["core, adapters:1: 33.3 % of 3 internal functions are extern, 32 at "
         "most"]),
    "a quarter, beside public ones": (
        {"core/a.c": "void weir__a(void)\n{\n}\n" + STATIC * 3 +
                     "void weir_b(void)\n{\n}\n"}, []),
    "few assertions": (
        {"core/a.c": "int x;\n" * 500 + "WEIR_ASSERT(x);\n" * 4,
         "core/b.h": "int x;\n" * 496},
        ["core:1: 4.0 assertions in a thousand lines, 9 at least"]),
    "enough of them": (
        {"core/a.c": "int x;\n" * 500 + "WEIR_ASSERT(x);\n" * 9,
         "core/b.h": "int x;\n" * 491}, []),
}

if __name__ == "__main__":
    lint.main(check, CASES)
