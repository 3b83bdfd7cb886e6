#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang-format finds nothing to do in any file of C or C++.

Versions differ in taste, so only the one the sources are formatted with
judges. Where it is not installed this is not among the tests.
"""

import pathlib
import re

import lint

MAJOR = "14"
FINDING = re.compile(r"^(.+?):(\d+):\d+: error: code should be clang-formatted",
                     re.MULTILINE)
CONFIG = pathlib.Path(__file__).parents[2] / ".clang-format"


def formatter():
    name = lint.need_tool(f"clang-format-{MAJOR}", "clang-format")
    _, version = lint.output_of(name, "--version")
    if not re.search(rf"version {MAJOR}\.", version):
        raise SystemExit(f"this is no clang-format {MAJOR}: {version.strip()}")
    return name


def check(tree, report):
    name = formatter()
    paths = tree.named(".c", ".h", ".cc", ".hpp")
    report.checked.update(paths)
    # One program for all of them: it takes longer to start than to read a file.
    code, output = lint.output_of(name, "--dry-run", "--Werror", *paths,
                                  cwd=tree.root)
    first = {}
    for path, line in FINDING.findall(output):
        first.setdefault(path, int(line))
    if code != 0 and not first:
        raise SystemExit(f"{name} cannot be used: {output.strip()}")
    for path, line in first.items():
        report.finding(path, line, "clang-format would change this; "
                                   "./run format does")


GOOD = "int f(int a)\n{\n    return a + 1;\n}\n"
CASES = {
    "what is formatted": ({
        ".clang-format": CONFIG.read_text(encoding="utf-8"),
        "core/a.c": GOOD,
        "core/a.h": "int f(int a);\n",
    }, []),
    "what is not": ({
        ".clang-format": CONFIG.read_text(encoding="utf-8"),
        "core/a.c": GOOD + "\nint g(int a) { return a; }\n",
    }, ["core/a.c:6: clang-format would change this; ./run format does"]),
}

if __name__ == "__main__":
    lint.main(check, CASES)
