#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is built and installed says of itself that cmake/hardening.cmake was
heard: addresses may be anywhere, tables of addresses are read-only once they
are filled in, which is at the start, stacks run nothing and are guarded, calls
are checked against the size of what they write to, and jumps land where they
may. For a Release build of gcc."""

import platform
import re

import lint

PROGRAMS = ("weir", "weir-bench")
LIBRARIES = ("lib/libweir.so",)
ARCHIVES = ("core/libweir_core.a", "adapters/libweir.a")


def read(path, *options):
    code, output = lint.output_of("readelf", "-W", *options, str(path))
    if code != 0:
        raise SystemExit(f"readelf cannot read {path}: {output.strip()}")
    return output


def faults(path, is_program):
    """What is missing in a program or a shared object."""
    head = read(path, "-h", "-l", "-d")
    names = set(re.findall(r" UND (\w+)", read(path, "--dyn-syms")))
    stack = re.search(r"GNU_STACK .* (\w+) +0x\w+\n", head)
    if not re.search(r"Type:\s+DYN ", head):
        yield "its addresses are fixed"
    elif is_program and not re.search(r"\(FLAGS_1\).*\bPIE\b", head):
        yield "its addresses are fixed"
    if "GNU_RELRO" not in head:
        yield "its tables of addresses stay writable (relro)"
    if not re.search(r"\(FLAGS\).*BIND_NOW|\(BIND_NOW\)", head):
        yield "its addresses are filled in late (now)"
    if stack is None or "E" in stack.group(1):
        yield "its stack can be run (noexecstack)"
    if "__stack_chk_fail" not in names:
        yield "its stack is not guarded (stack-protector-strong)"
    if not any(re.fullmatch(r"__(?!stack_)\w+_chk", name) for name in names):
        yield "its calls are not checked (FORTIFY_SOURCE)"


def without_cet(path):
    """The objects in an archive whose jumps may land anywhere. A program has
    the mark only where the C library's start files have it, too."""
    marks = [["", "IBT SHSTK"]]  # a line before the first
    for line in read(path, "-n").splitlines():
        match = re.match(r"File: .*\((.*)\)", line)
        if match:
            marks.append([match.group(1), ""])
        marks[-1][1] += line
    return [name for name, text in marks
            if "IBT" not in text or "SHSTK" not in text]


def check(tree, report):
    if tree.build is None:
        raise SystemExit("--build DIR: where is the gcc Release build?")
    plugins = sorted((tree.build / "plugins").glob("*.so"))
    for path in ([tree.build / name for name in PROGRAMS + LIBRARIES]
                 + plugins):
        shown = f"build/{path.relative_to(tree.build)}"
        report.checked.add(shown)
        for what in faults(path, path.parent == tree.build):
            report.finding(shown, 0, what)
    if platform.machine() not in ("x86_64", "i686"):
        return
    for name in ARCHIVES:
        report.checked.add(f"build/{name}")
        for member in without_cet(tree.build / name):
            report.finding(f"build/{name}", 0,
                           f"{member} has no marks (cf-protection)")


CODE = """#include <stdio.h>
#include <string.h>
int weir_f(char *to, const char *from)
{
    char few[16];
    strncpy(few, from, strlen(from));
    return snprintf(to, 16, "%s", few);
}
"""
MAIN = CODE + "int main(int c, char **v) { return weir_f(v[c - 1], v[0]); }\n"
COMPILE = {"protector": "-fstack-protector-strong",
           "fortify": "-D_FORTIFY_SOURCE=2", "cet": "-fcf-protection"}
LINK = {"relro": "-Wl,-z,relro", "now": "-Wl,-z,now",
        "stack": "-Wl,-z,noexecstack"}
OPPOSITE = {"protector": "-fno-stack-protector", "fortify": "-O2",
            "cet": "-fcf-protection=none", "relro": "-Wl,-z,norelro",
            "now": "-Wl,-z,lazy", "stack": "-Wl,-z,execstack",
            "pie": "-no-pie"}


def run(*command):
    code, output = lint.output_of(*(str(part) for part in command))
    if code != 0:
        raise SystemExit(output)


def build(tree):
    """One source as all that is checked; `without` names what is left out."""
    without = set(tree.text("without").split())
    options = ["-O2", "-w", "-U_FORTIFY_SOURCE"] + [
        OPPOSITE[name] if name in without else flag
        for name, flag in {**COMPILE, **LINK}.items()]
    pie = ["-no-pie"] if "pie" in without else ["-fPIE", "-pie"]
    for folder in ("plugins", "lib", "core", "adapters"):
        (tree.build / folder).mkdir(parents=True)
    for name in PROGRAMS:
        run("gcc", *options, *pie, tree.root / "main.c",
            "-o", tree.build / name)
    for name in LIBRARIES + ("plugins/echo.so",):
        run("gcc", *options, "-fPIC", "-shared", tree.root / "f.c",
            "-o", tree.build / name)
    for name in ARCHIVES:
        run("gcc", *options, "-fPIC", "-c", tree.root / "f.c",
            "-o", tree.build / "f.o")
        run("ar", "rc", tree.build / name, tree.build / "f.o")


def check_built(tree, report):
    build(tree)
    check(tree, report)


def case(without, what, *paths):
    files = {"f.c": CODE, "main.c": MAIN, "without": without}
    return files, [f"build/{path}:0: {what}" for path in sorted(paths)]


ALL = PROGRAMS + LIBRARIES + ("plugins/echo.so",)
CASES = {
    "all of it": case("", ""),
    "fixed addresses": case("pie", "its addresses are fixed", *PROGRAMS),
    "writable tables": case("relro", "its tables of addresses", *ALL),
    "late addresses": case("now", "its addresses are filled in late", *ALL),
    "a stack that runs": case("stack", "its stack can be run", *ALL),
    "no guard": case("protector", "its stack is not guarded", *ALL),
    "no checks": case("fortify", "its calls are not checked", *ALL),
}
if platform.machine() in ("x86_64", "i686"):
    CASES["jumps to anywhere"] = case("cet", "f.o has no marks", *ARCHIVES)

if __name__ == "__main__":
    import sys
    lint.main(check_built if "--self-test" in sys.argv else check, CASES)
