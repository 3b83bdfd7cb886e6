#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every header can be the first and only one; public ones also from C++."""

import re

import lint

FOLDERS = ("-I.", "-Icore/include")
FLAGS = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only")
C = ("-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wstrict-prototypes")
ERROR = re.compile(r"^([^:\n]+):(\d+):(?:\d+:)? (?:fatal )?error: (.*)$",
                   re.MULTILINE)


def compile_alone(tree, path, report, compiler, language, *flags):
    code, output = lint.output_of(
        compiler, *flags, *FLAGS, *FOLDERS, "-x", language,
        "-include", path, "/dev/null", cwd=tree.root)
    if code == 0:
        return
    match = ERROR.search(output)
    where, line, what = match.groups() if match else (path, 1, "fails")
    where = where[2:] if where.startswith("./") else where
    report.checked.add(path)
    report.finding(where, int(line), f"alone in {language}: {what}")


def check(tree, report):
    cxx = lint.need_tool("g++", "clang++")
    for path in tree.named(".hpp"):
        report.checked.add(path)
        compile_alone(tree, path, report, cxx, "c++", "-std=c++17")
    for path in tree.named(".h"):
        report.checked.add(path)
        compile_alone(tree, path, report, "gcc", "c", *C)
        if re.match(r"(core|adapters)/include/", path):
            compile_alone(tree, path, report, cxx, "c++", "-std=c++11")


BASE = "#include <stddef.h>\nsize_t f(void);\n"
CASES = {
    "what stands alone": ({
        "core/include/weir/base.h": BASE,
        "core/a.h": "#include <weir/base.h>\nsize_t g(void);\n",
    }, []),
    "an include forgotten": (
        {"core/a.h": "int f(void);\nsize_t g(void);\n"},
        ["core/a.h:2: alone in c: "]),
    "a private header in C only": (
        {"core/a.h": "void f(int *restrict a);\n"}, []),
    "what C++ of 2017 lacks": (
        {"core/include/weir/a.hpp": "int f();\n\nconsteval int g();\n"},
        ["core/include/weir/a.hpp:3: alone in c++: "]),
    "a public header in C only": (
        {"core/include/weir/base.h": "struct a {\n    int class;\n};\n"},
        ["core/include/weir/base.h:2: alone in c++: "]),
}

if __name__ == "__main__":
    lint.main(check, CASES)
