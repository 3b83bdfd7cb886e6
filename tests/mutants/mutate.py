#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mutants: one changed line each of a source in C or Lua.

An operator is exchanged, a constant is changed, a call or an assignment is
deleted. Comments, strings, assertions, declarations and tables stay as they
are.
"""

import collections
import re
import sys

SHARED_OPS = [
    (r"<=", "<"), (r">=", ">"),
    (r"(?<![<=~-])<(?![<=])", "<="), (r"(?<![>=~-])>(?![>=])", ">="),
    (r" \+ ", " - "), (r" - ", " + "),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"),
    (r"(?<![\w.])0(?![\w.])", "1"), (r"(?<![\w.])1(?![\w.])", "0"),
    (r"(?<![\w.])(?:[2-9]|[1-9]\d)(?![\w.])",
     lambda match: str(int(match.group()) + 1)),
    (r"(?<![\w.])[1-9]\d\d+(?![\w.])",
     lambda match: str(int(match.group()) * 2)),
]
C_OPS = SHARED_OPS + [
    (r"==", "!="), (r"!=", "=="), (r"&&", "||"), (r"\|\|", "&&"),
    (r"\+\+", "--"), (r"--", "++"), (r"\+= ", "-= "), (r"-= ", "+= "),
    (r"!(?=[\w(])", ""), (r" \* (?=\d|[A-Z])", " / "), (r" / ", " * "),
]
LUA_OPS = SHARED_OPS + [
    (r"==", "~="), (r"~=", "=="), (r"\band\b", "or"), (r"\bor\b", "and"),
    (r"\bnot ", ""), (r" \* ", " / "), (r" / ", " * "),
]
C_CALL = r"\s+(?:\(void\))?[a-z_][\w>.-]*\(.*\);\s*"
C_ASSIGNMENT = r"\s+\*?[a-z_][\w>.\[\]-]* [-+*/|&]?= [^;]*;\s*"
C_DECLARATION = re.compile(  # of an array, or with a constant or nothing
    r"\s+(?!return\b|goto\b)[a-z_]\w*(?: \w+)* \**\w+"
    r"(?:\[.*|(?: = [\w.{}-]+)?[;,].*)")
LUA_CALL = r"\s+redis\.call\(.*\)\s*"
LUA_ASSIGNMENT = r"\s+(?!local\b)[\w.\[\]#]+ = .*[\w)\]'\"}]\s*"

C_QUIET = re.compile(r"/\*.*?\*/|//[^\n]*|\bWEIR_(?:ASSERT|UNREACHABLE)\([^;]*;"
                     r"|\bstatic_assert\([^;]*;"
                     r'|"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])*'", re.DOTALL)
LUA_QUIET = re.compile(r"--\[\[.*?\]\]|--[^\n]*"
                       r'|"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])*'",
                       re.DOTALL)

Mutant = collections.namedtuple("Mutant", "file line column op old new")


def _blank(match):
    blank = re.sub(r"[^\n]", " ", match.group())
    quote = match.group()[0]
    return quote + blank[1:-1] + quote if quote in "'\"" else blank


def _in_functions(lines):
    """Which lines of C are in functions, whose braces have lines of their own,
    and declare more than a name."""
    inside = False
    for line in lines:
        if line in ("{", "}"):
            inside = line == "{"
        yield inside and not line.lstrip().startswith("#") and \
            not C_DECLARATION.fullmatch(line)


def _is_whole(code, after):
    """Whether a statement ends with its line; `after` is the next one."""
    return code.count("(") == code.count(")") and \
        code.count("{") == code.count("}") and \
        not re.match(r"\s*(?:and\b|or\b|\.\.|[-+*/?:])", after)


def mutants(path, text):
    """All mutants of a file, line by line."""
    lua = path.endswith(".lua")
    lines = text.split("\n")
    codes = (LUA_QUIET if lua else C_QUIET).sub(_blank, text).split("\n")
    wanted = [True] * len(lines) if lua else _in_functions(lines)
    call, assignment = (LUA_CALL, LUA_ASSIGNMENT) if lua else \
        (C_CALL, C_ASSIGNMENT)
    nothing = "" if lua else "(void)0;"
    for number, (old, code, inside) in enumerate(zip(lines, codes, wanted), 1):
        if not inside or not code.strip():
            continue
        indent = re.match(r"\s*", old).group()
        for what, pattern in (("call", call), ("assignment", assignment)):
            if re.fullmatch(pattern, code) and _is_whole(
                    code, "".join(codes[number:number + 1])):
                yield Mutant(path, number, 0, what + " deleted", old,
                             (indent + nothing).rstrip())
        for pattern, by in LUA_OPS if lua else C_OPS:
            for match in re.finditer(pattern, code):
                new = by if isinstance(by, str) else by(match)
                yield Mutant(path, number, match.start() + 1,
                             f"{match.group().strip()} to "
                             f"{new.strip() or 'nothing'}", old,
                             old[:match.start()] + new + old[match.end():])


# --- The self-test ------------------------------------------------------------

CASES = {
    "operators and constants of C": ("a.c", """\
int f(int a)
{
    if (a <= 10 && !g(a))
        return a * 1000;
}
""", ["3 <= to <", "3 10 to 11", "3 && to ||", "3 ! to nothing",
      "4 * to /", "4 1000 to 2000"]),
    "calls and assignments of C": ("a.c", """\
{
    a->b = c(d);
    (void)e(f);
    int g = h;
    i = j(k,
          l);
}
""", ["2 assignment deleted", "3 call deleted"]),
    "what stays as it is in C": ("a.c", """\
#define TWO 2
static int table[] = {1, 2};
struct a {
    int b[3];
};
{
    /* a == 1,
     * b == 2 */
    WEIR_ASSERT(a == 1 &&
                b < 2);
    a = "1 == 2";
#if 1
    char c[20] = "", *d;
    struct e f = {0};
    size_t g = 0, h = 1;
    a->b << c;
}
""", ["11 assignment deleted"]),
    "Lua": ("a.lua", """\
local a = b == 1 -- and 2
if not a and b ~= 'x == 1' then
    redis.call('DEL', a)
    a[2] = b .. '1'
    c = f(a,
        b)
    c = a
        or b
    return a < 3
end
""", ["1 == to ~=", "1 1 to 0", "2 ~= to ==", "2 and to or",
      "2 not to nothing", "3 call deleted", "4 assignment deleted", "4 2 to 3",
      "8 or to and", "9 < to <=", "9 3 to 4"]),
}


def _self_test():
    failed = 0
    for name, (path, text, wanted) in CASES.items():
        got = list(mutants(path, text))
        said = [f"{mutant.line} {mutant.op}" for mutant in got]
        lines = text.split("\n")
        if sorted(said) != sorted(wanted) or any(
                mutant.old != lines[mutant.line - 1] or
                mutant.old == mutant.new for mutant in got):
            failed += 1
            print(f"FAILED {name}\n  wanted: {sorted(wanted)}\n"
                  f"  got:    {sorted(said)}")
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(_self_test())
