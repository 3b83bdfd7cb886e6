# SPDX-License-Identifier: MIT
"""docs/guarantees.md and docs/kinds.md name tests that exist, and the example
of fencing keeps out who has lost a lease."""

import os
import re
import sqlite3
import subprocess

from e2e import ROOT, expect, expect_true, test


def page(name):
    with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as file:
        return file.read()


def named_tests(text):
    """Pairs (file below tests/, test): `file`: `test` `test`."""
    return [(path, name) for path, names in re.findall(
        r"`([a-z0-9_/]+\.(?:py|c))`:((?:\s+`[a-z0-9_]+`)+)", text)
        for name in re.findall(r"`([a-z0-9_]+)`", names)]


def has_test(path, name):
    try:
        with open(os.path.join(ROOT, "tests", path),
                  encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return False
    form = (r"^@(?:time_)?test\ndef %s\(" if path.endswith(".py") else
            r"^(?:TIME_)?TEST\(%s\)")
    return re.search(form % name, text, re.M) is not None


def missing(text):
    return ["%s: %s" % pair for pair in named_tests(text)
            if not has_test(*pair)]


def rows(text):
    """Rows of tables whose last column says what proves them."""
    tables = re.findall(r"^\|.*\| proved by \|\n\|[-|]+\|\n((?:\|.*\n)+)",
                        text, re.M)
    return [row for table in tables for row in table.splitlines()]


@test
def every_test_named_on_the_page_exists(_place):
    text = page("guarantees.md")
    expect([], missing(text))
    expect_true(len(named_tests(text)) > 60, "tests are named")
    for path in re.findall(r"`(\w+/[a-z0-9_/]*test_\w+\.(?:py|c))`", text):
        expect_true(os.path.exists(os.path.join(ROOT, "tests", path)), path)


@test
def every_row_names_a_test(_place):
    found = rows(page("guarantees.md"))
    expect_true(len(found) > 25, "there are rows")
    expect([], [row for row in found if not named_tests(row)])


@test
def the_kinds_name_tests_that_exist(_place):
    text = page("kinds.md")
    expect([], missing(text))
    expect_true(len(named_tests(text)) > 40, "tests are named")
    found = rows(text)
    expect_true(len(found) >= 8, "there are rows")
    expect([], [row for row in found if not named_tests(row)])


@test
def what_the_grouped_kinds_guarantee_names_tests(_place):
    text = page("kinds.md")
    for kind, least in (("bounded", 10), ("list", 5), ("stream", 6)):
        section = re.search(r"^## `%s`.*?(?=^## )" % kind, text, re.M | re.S)
        expect_true(len(named_tests(section.group())) >= least, kind)
    stream = re.search(r"^## `stream`.*?^The keys", text, re.M | re.S).group()
    for bullet in ("Guarantee", "Retries", "Other consumers", "Dead",
                   "Waiting"):
        (words,) = re.findall(r"^- \*\*%s\*\*.*?(?=^- |^The)" % bullet, stream,
                              re.M | re.S)
        expect_true(named_tests(words), bullet)


@test
def a_name_that_is_wrong_is_found(_place):
    path = "e2e/test_docs_guarantees.py"
    expect([], missing("`%s`:\n`a_name_that_is_wrong_is_found`" % path))
    expect([path + ": nobody_wrote_this"],
           missing("`%s`: `every_row_names_a_test` `nobody_wrote_this`" % path))
    expect(["e2e/test_none.c: a"], missing("`e2e/test_none.c`: `a`"))


@test
def who_has_lost_a_lease_is_fenced_off(_place):
    text = page("guarantees.md")
    (create,) = re.findall(r"```sql\n(.*?)```", text, re.S)
    update = re.search(r"(UPDATE orders .*?< :token)", text, re.S).group(1)
    database = sqlite3.connect(":memory:")
    database.executescript(create)
    database.execute("INSERT INTO orders (id, state) VALUES (1, 'open')")
    changed = [database.execute(update.replace("*", ""),
                                {"order": 1, "token": token}).rowcount
               for token in (7, 5, 7, 9)]
    expect([1, 0, 0, 1], changed)


@test
def the_example_of_fencing_compiles(place):
    (source,) = re.findall(r"```c\n(.*?)```", page("guarantees.md"), re.S)
    place.write("fenced.c", source)
    done = subprocess.run(
        ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC",
         "-I", os.path.join(ROOT, "core/include"), "-c", "-o",
         place.path("fenced.o"), place.path("fenced.c")],
        text=True, capture_output=True)
    expect(0, done.returncode, done.stderr)
