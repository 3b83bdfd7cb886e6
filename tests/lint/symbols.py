#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the built archives and plugins say about themselves.

Include lines can be got around, symbols cannot: core needs nothing but memory
and strings, a plugin exports one symbol, and no library has a variable that
two reactors would share. For a gcc Release build; sanitizers add symbols.
"""

import re

import lint

CORE = "core/libweir_core.a"
LIBRARIES = (CORE, "adapters/libweir.a")

# What core may ask of the C library; by object file for what only one may.
CORE_NEEDS = re.compile(
    r"weir_\w+|_GLOBAL_OFFSET_TABLE_"
    r"|mem(chr|cmp|cpy|move|set)|v?snprintf|bsearch|qsort"
    r"|str(c?spn|chr|cmp|len|ncmp|nlen|pbrk|rchr|str|toll?|toull?|tod)"
    r"|__isoc23_strto\w+|__\w+_chk|__stack_chk_fail"
    r"|__(u?div|u?mod|mul|add|sub|neg|cmp|popcount|c[lt]z|ff[sz]|bswap)\w*"
    r"|__ctype_\w+|__errno_location")
CORE_NEEDS_IN = {
    "assert.c.o": re.compile(r"abort|fprintf|fputs|fwrite|stderr"),
    "mem.c.o": re.compile(r"calloc|free|malloc|realloc"),
}

# Of libraries that the command links and who embeds weir does without.
COMMAND_ONLY = re.compile(r"MHD_\w+")

# A fork is an event of the process, and pthread_atfork has no argument.
STATE_IN = {"fork.c.o": {"forks", "once"}}

PLUGIN_SYMBOL = "weir_plugin_1"
LINKER_SYMBOLS = {"_init", "_fini", "_edata", "_end", "__bss_start"}

MUTABLE = re.compile(r"\.(data|bss|tdata|tbss|sdata|sbss)(\.|$)|\*COM\*")
CONSTANT = re.compile(r"\.data\.rel\.ro(\.|$)")


def symbols(path, *options):
    """(object file, symbol, section) of an archive or a shared object."""
    code, output = lint.output_of("nm", "--format=sysv", *options, str(path))
    if code != 0:
        raise SystemExit(f"nm cannot read {path}: {output.strip()}")
    member = path.name
    for line in output.splitlines():
        match = re.match(r"(?:Undefined symbols|Symbols) from .*\[(.*)\]:",
                         line)
        if match:
            member = match.group(1)
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 7:
            yield member, fields[0].split("@")[0], fields[6]


def check_core_needs(tree, report):
    path = f"build/{CORE}"
    for member, name, _ in symbols(tree.build / CORE, "--undefined-only"):
        here = CORE_NEEDS_IN.get(member)
        if not CORE_NEEDS.fullmatch(name) and \
                not (here and here.fullmatch(name)):
            report.finding(path, 0, f"{member} wants {name}")


def check_library_needs(tree, report):
    for member, name, _ in symbols(tree.build / "adapters/libweir.a",
                                   "--undefined-only"):
        if COMMAND_ONLY.fullmatch(name):
            report.finding("build/adapters/libweir.a", 0,
                           f"{member} wants {name}")


def check_state(tree, library, report):
    for member, name, section in symbols(tree.build / library):
        if MUTABLE.match(section) and not CONSTANT.match(section) and \
                name not in STATE_IN.get(member, ()):
            report.finding(f"build/{library}", 0,
                           f"{member} has the variable {name}")


def check_plugin(tree, file, report):
    path = f"build/plugins/{file.name}"
    report.checked.add(path)
    names = {name for _, name, _ in
             symbols(file, "--dynamic", "--defined-only")} - LINKER_SYMBOLS
    if PLUGIN_SYMBOL not in names:
        report.finding(path, 0, f"{PLUGIN_SYMBOL} is not exported")
    for name in names - {PLUGIN_SYMBOL}:
        report.finding(path, 0, f"{name} is exported as well")


def check(tree, report):
    if tree.build is None:
        raise SystemExit("--build DIR: where is the gcc Release build?")
    for library in LIBRARIES:
        report.checked.add(f"build/{library}")
        check_state(tree, library, report)
    check_core_needs(tree, report)
    check_library_needs(tree, report)
    for file in sorted((tree.build / "plugins").glob("*.so")):
        check_plugin(tree, file, report)


CLEAN = {
    "run.c": "#include <string.h>\n"
             "static const char *const names[] = {\"a\", \"b\"};\n"
             "const char *weir__f(int i) { return strchr(names[i], 'a'); }\n",
    "mem.c": "#include <stdlib.h>\n"
             "void weir__free(void *p) { free(p); }\n",
}
TABLE = "const int weir_plugin_1 = 1;\n"
FLAGS = ("-O2", "-fPIC", "-fvisibility=default")


def build(tree):
    """Compile src/core/*.c, src/adapters/*.c and src/plugins/*.c."""
    objects = {CORE: [], "adapters/libweir.a": []}
    for folder in ("core", "adapters", "plugins"):
        (tree.build / folder).mkdir(parents=True)
    for path in tree.named(".c"):
        _, folder, name = path.split("/")
        if folder == "plugins":
            target = tree.build / folder / name.replace(".c", ".so")
            command = ("gcc", *FLAGS, "-shared", "-nostdlib")
        else:
            target = tree.build / folder / f"{name}.o"
            command = ("gcc", *FLAGS, "-c")
            library = CORE if folder == "core" else "adapters/libweir.a"
            objects[library].append(str(target))
        code, output = lint.output_of(
            *command, "-o", str(target), str(tree.root / path))
        if code != 0:
            raise SystemExit(output)
    for library, files in objects.items():
        lint.output_of("ar", "rc", str(tree.build / library), *files)


def check_built(tree, report):
    build(tree)
    check(tree, report)


def case(folder, files, *wanted):
    everything = {f"src/core/{name}": text for name, text in CLEAN.items()}
    everything.update({f"src/{folder}/{name}": text
                       for name, text in files.items()})
    return everything, [f"build/{text}" for text in wanted]


CASES = {
    "what is allowed": case("plugins", {"echo.c": TABLE}),
    "core asks for the time": case(
        "core", {"run.c": "#include <time.h>\n"
                          "long f(void) { return (long)time(0); }\n"},
        "core/libweir_core.a:0: run.c.o wants time"),
    "core calls a library": case(
        "core", {"run.c": "void redisAsyncFree(void *);\n"
                          "void f(void) { redisAsyncFree(0); }\n"},
        "core/libweir_core.a:0: run.c.o wants redisAsyncFree"),
    "core uses the heap past mem.c": case(
        "core", {"run.c": "#include <stdlib.h>\n"
                          "void f(void *p) { free(p); }\n"},
        "core/libweir_core.a:0: run.c.o wants free"),
    "core has state": case(
        "core", {"run.c": "static int n = 1;\nint *f(void) { return &n; }\n"},
        "core/libweir_core.a:0: run.c.o has the variable n"),
    "an adapter has state": case(
        "adapters", {"ev.c": "int zero;\n_Thread_local int own = 1;\n"},
        "adapters/libweir.a:0: ev.c.o has the variable own",
        "adapters/libweir.a:0: ev.c.o has the variable zero"),
    "the library wants what is the command's": case(
        "adapters", {"web.c": "int MHD_run(void *);\n"
                              "int f(void) { return MHD_run(0); }\n"},
        "adapters/libweir.a:0: web.c.o wants MHD_run"),
    "a plugin exports two": case(
        "plugins", {"echo.c": TABLE + "int helper(void) { return 1; }\n"},
        "plugins/echo.so:0: helper is exported as well"),
    "a plugin exports nothing": case(
        "plugins", {"echo.c": "static int x = 1;\nint *const weir_y = &x;\n"},
        "plugins/echo.so:0: weir_plugin_1 is not exported",
        "plugins/echo.so:0: weir_y is exported as well"),
}

if __name__ == "__main__":
    import sys
    lint.main(check_built if "--self-test" in sys.argv else check, CASES)
