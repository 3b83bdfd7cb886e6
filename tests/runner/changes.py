# SPDX-License-Identifier: MIT
"""What the change under test touches: what is not committed, and what was
committed in the day before the newest commit."""

import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
PRODUCT = "core/", "adapters/", "plugins/", "clients/"
DAY_S = 24 * 3600


def _git(*words):
    try:
        done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True,
                              text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def files():
    """Paths from the root; empty where there is no git."""
    newest = _git("log", "-1", "--format=%ct").strip()
    if not newest:
        return set()
    base = _git("rev-list", "-1", "--before=%d" % (int(newest) - DAY_S),
                "HEAD").strip()
    named = _git("diff", "--name-only", base) if base else ""
    named += _git("ls-files", "--others", "--exclude-standard")
    return set(named.split("\n")) - {""}


def sources(task):
    """The sources of a test program: in C the files that its name ends with, in
    Python the file that run.py runs."""
    found = {os.path.relpath(word, ROOT) for word in task.command
             if word.startswith(ROOT) and word.endswith((".py", ".sh"))}
    found.discard("tests/e2e/run.py")
    program = os.path.basename(task.command[0])
    if program.startswith("test_"):
        folder = os.path.relpath(task.cwd, ROOT).split("/", 1)[1]
        file = program[len("test_"):]
        for at in range(len(file)):  # test_redis_delay_oom: delay_oom.c, oom.c
            if at == 0 or file[at - 1] == "_":
                found |= _named("test_%s.c" % file[at:], folder)
    return found


def _named(name, folder):
    return {os.path.relpath(os.path.join(base, name), ROOT)
            for base, _, names in os.walk(os.path.join(ROOT, folder))
            if name in names}


def has_changed(task, changed):
    return bool(sources(task) & changed)


def _words(path):
    return set(re.split(r"[/_.]", path)) - {"", "c", "h", "py", "lua", "js",
                                            "test", "tests", "adapters"}


def touching(task, changed):
    """A changed file that is a source of the test, or a file of the product
    that it covers. Else ""."""
    own = sources(task)
    for path in sorted(changed):
        if path in own:
            return path
        if path.startswith(PRODUCT) and any(_covers(one, path) for one in own):
            return path
    return ""


def _covers(test, path):
    """The words of the file's name are in the test's name, or those of its
    whole path in the test's path."""
    return _words(os.path.basename(path)) <= _words(os.path.basename(test)) or \
        _words(path) <= _words(test)
