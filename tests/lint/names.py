#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Words that do not appear, and the small rules of layout no compiler has."""

import posixpath
import re

import lint

BANNED_CALLS = frozenset("""
    alloca atoi atol gets gettimeofday rand signal sleep sprintf strcat strcpy
    strncpy strtok system time usleep
""".split())
HEAP_CALLS = frozenset("calloc free malloc realloc strdup strndup".split())
PRINT_CALLS = frozenset("printf putchar puts vprintf".split())
PRINT_WORDS = frozenset("""
    dprintf fprintf fputc fputs fwrite perror putc stderr stdout vdprintf
    vfprintf
""".split())
EXIT_CALLS = frozenset("abort exit quick_exit".split())  # _exit: for a fork

# Memory that a library gave us and that is therefore free's to take, and the
# last words of a failed assertion: {file: words}.
EXCEPTIONS = {
    "core/assert.c": {"abort", "fprintf", "stderr"},
    "core/mem.c": HEAP_CALLS,
    "tests/harness/server_clock.c": {"gettimeofday"},  # it is one
}

# Names that begin with an underscore and belong to somebody else.
LANGUAGE = re.compile(
    r"_(Alignas|Alignof|Atomic|Bool|Generic|Noreturn|Static_assert"
    r"|Thread_local|Exit|exit|POSIX_C_SOURCE|SC_\w+"
    r"|FORTIFY_SOURCE|FILE_OFFSET_BITS)"
    r"|__(FILE__|LINE__|func__|VA_ARGS__|cplusplus|attribute__|GNUC__"
    r"|GNUC_MINOR__|clang__|linux__|x86_64__|aarch64__|BYTE_ORDER__|ORDER_\w+__|SIZEOF_\w+__"
    r"|STDC\w*|SANITIZE_\w+__|has_\w+|builtin_\w+|atomic_\w+"
    r"|wrap_\w+|real_\w+"  # the linker's --wrap
    r"|(?:read|recv|poll)_chk|sanitizer_\w+|asan_\w+)")  # what a fortified build calls

TEXT = (".c", ".h", ".lua", ".sh", ".py", ".cmake", "CMakeLists.txt", "run")
MARKS = re.compile(r"\b(?:" + "|".join(("TO" "DO", "FIX" "ME", "X" "XX",
                                        "HA" "CK")) + r")\b")
SPDX = "/* SPDX-License-Identifier: MIT */"

WORD = re.compile(r"(?<![\w.#])(?<!->)[A-Za-z_]\w*")
TYPEDEF = re.compile(r"\btypedef\s+(?:struct|enum|union)\b[^;(]*[;{]")


def is_ours(path):
    return path.startswith(("core/", "adapters/"))


def word_finding(path, word, called):
    """What is wrong with a word in this file, or None."""
    is_cli = path.startswith("adapters/cli/")
    is_plugin = path.startswith("plugins/")
    if word in EXCEPTIONS.get(path, ()):
        return None
    if called and word in BANNED_CALLS:
        return f"{word}() is banned"
    if called and word in HEAP_CALLS and is_ours(path):
        return f"{word}() is for core/mem.c only; use core/mem.h"
    if called and word in PRINT_CALLS and (is_ours(path) or is_plugin) \
            and not is_cli:
        return f"{word}() is for tests, bench and the command line only"
    if word in PRINT_WORDS and is_ours(path) and not is_cli:
        return f"{word}: a library does not print; use the log"
    if called and word in EXIT_CALLS and (is_ours(path) or is_plugin) \
            and not is_cli:
        return f"{word}(): a library does not end its program"
    if word == "__attribute__" and is_ours(path) and \
            path != "core/include/weir/base.h":
        return "attributes are used through the macros of base.h"
    if word.startswith("_") and not LANGUAGE.fullmatch(word):
        return f"{word}: names with a leading underscore are reserved"
    return None


def check_words(path, text, report):
    code = lint.only_code(text)
    for match in WORD.finditer(code):
        called = re.match(r"\s*\(", code[match.end():match.end() + 8])
        what = word_finding(path, match.group(), called is not None)
        if what:
            report.finding(path, lint.line_of(code, match.start()), what)
    for match in TYPEDEF.finditer(code):
        report.finding(path, lint.line_of(code, match.start()),
                       "a type with a tag gets no typedef")
    for offset in lint.line_comments(text):
        report.finding(path, lint.line_of(text, offset),
                       "comments are written /* like this */")


def guards_for(path):
    """The include guards a header may have."""
    folder, name = posixpath.split(path)
    stem = re.sub(r"\W", "_", name[:-len(".h")]).upper()
    last = re.sub(r"\W", "_", posixpath.basename(folder)).upper()
    short, long = f"WEIR_{stem}_H", f"WEIR_{last}_{stem}_H"
    if path.startswith("tests/"):
        return (f"WEIR_TEST_{stem}_H", short, long)
    if path.startswith("core/") or last in ("ADAPTERS", "WEIR"):
        return (short,)
    return (short, long) if last == stem else (long,)


def check_guard(path, text, seen, report):
    code = lint.without_comments(text)
    match = re.match(r"\s*#ifndef (\w+)\n#define (\w+)\n", code)
    wanted = guards_for(path)
    if not match or match.group(1) != match.group(2) or \
            match.group(1) not in wanted:
        report.finding(path, 2, f"the include guard is not {wanted[0]}")
    elif match.group(1) in seen:
        report.finding(path, 2, f"{match.group(1)} is also the guard of "
                                f"{seen[match.group(1)]}")
    else:
        seen[match.group(1)] = path


def check_lines(path, text, report):
    is_c = path.endswith((".c", ".h"))
    if is_c and text.split("\n", 1)[0] != SPDX:
        report.finding(path, 1, f"the first line is not {SPDX}")
    for number, line in enumerate(text.split("\n"), 1):
        if (is_c or path.endswith(".lua")) and len(line) > 80:
            report.finding(path, number, f"{len(line)} columns, 80 at most")
        if "\t" in line:
            report.finding(path, number, "a tab")
        mark = MARKS.search(line)
        if mark:
            report.finding(path, number, f"{mark.group()} left behind")


def check(tree, report):
    guards = {}
    for path in tree.named(*TEXT):
        text = tree.text(path)
        report.checked.add(path)
        check_lines(path, text, report)
        if path.endswith((".c", ".h")):
            check_words(path, text, report)
        if path.endswith(".h"):
            check_guard(path, text, guards, report)


def c(body):
    return f"{SPDX}\n{body}\n"


def h(guard, body=""):
    return c(f"#ifndef {guard}\n#define {guard}\n\n{body}\n#endif")


def one(path, body, what, line=2):
    return {path: c(body)}, [f"{path}:{line}: {what}"]


CASES = {
    "what is allowed": ({
        "core/x.h": h("WEIR_X_H", "int weir__x_time(void);"),
        "core/mem.c": c("void f(void *p) { free(p); }"),
        "core/x.c": c("/* never strcpy(), printf() or _this */\n"
                      'const char *f(void) { return "sprintf(//)"; }\n'
                      "int g(struct x *x) { return x->time(x) + x->ops.free(x)"
                      " + (int)sizeof(_Bool); }"),
        "core/include/weir/base.h":
            h("WEIR_BASE_H", "#define A __attribute__((cold))\n"
                             "#define B(x) x##_b\n"
                             "typedef enum b (*b_fn)(void);"),
        "core/include/weir/weir.h": h("WEIR_WEIR_H"),
        "adapters/json/json.h": h("WEIR_JSON_H"),
        "adapters/redis/script.h": h("WEIR_REDIS_SCRIPT_H"),
        "adapters/cli/main.c": c("int f(void) { puts(x); exit(1); }"),
        "plugins/echo.c": c("void f(void *p) { free(p); }"),
        "tests/harness/test.h": h("WEIR_TEST_H"),
        "tests/t.c": c('int f(void) { return printf("XXXXXX"); }'),
    }, []),
    "a banned function": one(
        "tests/t.c", "int f(void) { return atoi (x); }",
        "atoi() is banned"),
    "the heap past core/mem.h": one(
        "adapters/ev/driver.c", "void f(void *p) { free(p); }",
        "free() is for core/mem.c only; use core/mem.h"),
    "a plugin that prints": one(
        "plugins/echo.c", 'void f(void) { printf("x"); }',
        "printf() is for tests, bench and the command line only"),
    "an adapter that prints": one(
        "adapters/ev/driver.c", "void f(void) { g(stderr); }",
        "stderr: a library does not print; use the log"),
    "a library that exits": one(
        "core/run.c", "\nvoid f(void) { exit(1); }",
        "exit(): a library does not end its program", 3),
    "an attribute": one(
        "core/run.c", "__attribute__((cold)) void f(void);",
        "attributes are used through the macros of base.h"),
    "a reserved name": one(
        "core/run.c", "int _f(void);",
        "_f: names with a leading underscore are reserved"),
    "a hidden struct": one(
        "core/run.c", "typedef struct x x;",
        "a type with a tag gets no typedef"),
    "a comment of another language": one(
        "core/run.c", "int x; // y",
        "comments are written /* like this */"),
    "a guard of another file": (
        {"adapters/redis/script.h": h("WEIR_SCRIPT_H")},
        ["adapters/redis/script.h:2: "
         "the include guard is not WEIR_REDIS_SCRIPT_H"]),
    "no guard at all": one(
        "core/x.h", "int x;", "the include guard is not WEIR_X_H"),
    "a guard used twice": (
        {"core/x.h": h("WEIR_X_H"), "tests/x.h": h("WEIR_X_H")},
        ["tests/x.h:2: WEIR_X_H is also the guard of core/x.h"]),
    "no licence line": (
        {"core/run.c": "int x;\n"},
        [f"core/run.c:1: the first line is not {SPDX}"]),
    "a long line of a script": one(
        "adapters/redis/scripts/delay/x.lua", "-" * 81,
        "81 columns, 80 at most"),
    "a long line": one(
        "core/run.c", "int x;" + " " * 80, "86 columns, 80 at most"),
    "a tab": one("core/run.c", "\tint x;", "a tab"),
    "a mark in a script": (
        {"adapters/redis/scripts/delay/add.lua": "-- TO" "DO: more\n"},
        ["adapters/redis/scripts/delay/add.lua:1: TO" "DO left behind"]),
}

if __name__ == "__main__":
    lint.main(check, CASES)
