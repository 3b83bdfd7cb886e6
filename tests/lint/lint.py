# SPDX-License-Identifier: MIT
"""What the checks in this folder share: finding files, reading C, reporting.

A check is a function check(tree, report). It runs over the repository, or,
with --self-test, over small trees made for the purpose, each of which must
give exactly the findings that begin as written next to it. So every rule is
seen to fail.

The last line is "N passed, N failed": files (or cases) without and with
findings.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

C_LIBRARY = frozenset("""
    assert.h complex.h ctype.h errno.h fenv.h float.h inttypes.h iso646.h
    limits.h locale.h malloc.h math.h setjmp.h signal.h stdalign.h stdarg.h
    stdatomic.h
    stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h
    tgmath.h threads.h time.h uchar.h wchar.h wctype.h
    arpa/inet.h dirent.h fcntl.h fnmatch.h glob.h grp.h langinfo.h libgen.h
    net/if.h netdb.h netinet/in.h netinet/tcp.h poll.h pthread.h pwd.h regex.h
    sched.h semaphore.h spawn.h strings.h sys/eventfd.h sys/file.h sys/mman.h
    sys/random.h sys/resource.h sys/select.h sys/socket.h sys/stat.h
    sys/statvfs.h sys/syscall.h sys/time.h sys/timerfd.h sys/times.h sys/types.h
    sys/uio.h
    sys/un.h sys/utsname.h sys/wait.h syslog.h termios.h unistd.h utime.h wordexp.h
""".split())


class Report:
    def __init__(self):
        self.findings = []
        self.checked = set()

    def finding(self, path, line, what):
        self.checked.add(path)
        self.findings.append((path, line, what))

    def note(self, text):
        print("note: " + text)

    def lines(self):
        return [f"{path}:{line}: {what}"
                for path, line, what in sorted(self.findings)]

    def finish(self):
        for text in self.lines():
            print(text)
        bad = {path for path, _, _ in self.findings}
        print(f"{len(self.checked - bad)} passed, {len(bad)} failed")
        return 1 if bad else 0


class Tree:
    """The files of a repository, without build trees and hidden folders."""

    def __init__(self, root, build=None):
        self.root = pathlib.Path(root)
        self.build = pathlib.Path(build) if build else None
        self.paths = sorted(self._walk())

    def _walk(self):
        for folder, folders, names in os.walk(self.root):
            folders[:] = [
                name for name in folders
                if (name == ".ci" or not name.startswith("."))
                and name not in ("__pycache__", "build-mutants")
                and not os.path.exists(
                    os.path.join(folder, name, "CMakeCache.txt"))
            ]
            for name in names:
                path = pathlib.Path(folder, name)
                if path.is_file() and not path.is_symlink():
                    yield path.relative_to(self.root).as_posix()

    def named(self, *endings):
        return [path for path in self.paths if path.endswith(endings)]

    def text(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace")


_TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)
      | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""",
    re.DOTALL | re.VERBOSE)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """C without comments; every line stays where it is."""
    return _TOKEN.sub(
        lambda m: _blank(m.group()) if m.group("comment") else m.group(), text)


def only_code(text):
    """C without comments and without what is inside of quotes."""
    return _TOKEN.sub(lambda m: _blank(m.group()), text)


def line_comments(text):
    """The offsets of comments that begin with two slashes."""
    return [m.start() for m in _TOKEN.finditer(text)
            if (m.group("comment") or "").startswith("//")]


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def includes(text):
    """(line, the included name with its quotes or brackets), in order."""
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        match = re.match(r'\s*#\s*include\s*([<"][^>"]*[>"])', line)
        if match:
            yield number, match.group(1)


def tool(*names):
    """The first of the named programs that is installed, or None."""
    return next((name for name in names if shutil.which(name)), None)


def need_tool(*names):
    return tool(*names) or sys.exit(f"{names[-1]} is not installed")


def output_of(*command, cwd=None):
    """Run a program; its exit code and everything it printed."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          errors="replace", check=False, cwd=cwd,
                          env={**os.environ, "LC_ALL": "C.UTF-8"})
    return done.returncode, done.stdout


def _passes(check, files, wanted):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        report = Report()
        report.note = lambda text: None
        check(Tree(folder, pathlib.Path(folder, "build")), report)
    got = report.lines()
    if len(got) == len(wanted) and all(map(str.startswith, got, wanted)):
        return True
    print("  wanted: " + "\n          ".join(wanted or ["nothing"]))
    print("  got:    " + "\n          ".join(got or ["nothing"]))
    return False


def _self_test(check, cases):
    passed = failed = 0
    for name, (files, wanted) in cases.items():
        if _passes(check, files, wanted):
            passed += 1
        else:
            failed += 1
            print("FAILED " + name)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def main(check, cases):
    """Run a check; `cases` is {name: ({path: text}, [findings])}."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--root",
                        default=pathlib.Path(__file__).parents[2])
    parser.add_argument("--build", help="the build tree of a gcc Release")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        sys.exit(_self_test(check, cases))
    report = Report()
    check(Tree(args.root, args.build), report)
    sys.exit(report.finish())
