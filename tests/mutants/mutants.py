#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Change lines of the sources, one at a time, and name the changes that no test
in C notices.

    ./run mutants FILE              every mutant of a source
    ./run mutants FILE --count N    N of them, at most one of each line
    ./run mutants --seed N --count N    N of the scripts and of what uses them

The tree is copied to build-mutants/tree and built there. Each mutant goes into
one test program after the other, until a test fails twice. A test that fails
without the mutant as well ends the run. build-mutants/results.tsv keeps the
results, so that a run that was stopped continues. After a change of the tree all
mutants run again, with their former killers first.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import mutate
import programs

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build-mutants"
TREE = WORK / "tree"
RESULTS = WORK / "results.tsv"
TIMES = WORK / "times.json"
JOBS = 3 * (os.cpu_count() or 1)  # most programs wait for something
SOURCE = re.compile(r"(core|adapters|plugins)/.*\.(c|lua)")
# A seed chooses as many of each.
LUA = re.compile(r"adapters/redis/scripts/.*\.lua")
C = re.compile(r"(core|adapters/redis/(delay|store))/[^/]*\.c")


def refuse(why):
    print(f"mutants: {why}", file=sys.stderr)
    sys.exit(2)


# --- The tree -----------------------------------------------------------------

def copy_tree():
    """Copy what git lists; returns the names, and a digest of all that can
    change a verdict."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, check=True,
        stdout=subprocess.PIPE, text=True).stdout.split("\0")
    names = [name for name in listed if (ROOT / name).is_file()]
    for path in TREE.glob("adapters/redis/scripts/*/*.lua"):  # CMake globs
        if path.relative_to(TREE).as_posix() not in names:
            path.unlink()
    digest = hashlib.sha256()
    for name in names:
        data, copy = (ROOT / name).read_bytes(), TREE / name
        if not name.endswith(".md") and not name.startswith("tests/mutants/"):
            digest.update(f"{name}\n{len(data)}\n".encode() + data)
        if not copy.is_file() or copy.read_bytes() != data:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
            shutil.copymode(ROOT / name, copy)
    return names, digest.hexdigest()[:12]


def succeeds(*command):
    return subprocess.run(command, cwd=TREE, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def build(target):
    return succeeds("ninja", "-C", "build", target)


def configure():
    # Else `&&` instead of `||` and the other way round is mostly an error.
    return succeeds("cmake", "--preset", "release", "-DWEIR_TESTS=ON",
                    "-DCMAKE_C_FLAGS=-Wno-parentheses")


# --- Results ------------------------------------------------------------------

class Results:
    """Rows of results.tsv: tree, file, line, column, operation, digest of the
    line, verdict, program, test."""

    def __init__(self, tree):
        self.tree = tree
        lines = RESULTS.read_text().splitlines() if RESULTS.is_file() else []
        self.rows = [line.split("\t") for line in lines
                     if line.count("\t") == 8]

    def known(self, mutant):
        wanted = [self.tree, *_key(mutant)]
        return next((row[6:] for row in self.rows if row[:6] == wanted), None)

    def add(self, mutant, verdict):
        self.rows.append([self.tree, *_key(mutant), *verdict])
        with RESULTS.open("a") as file:
            file.write("\t".join(self.rows[-1]) + "\n")

    def promise(self, mutant, program):
        """How likely a program kills a mutant, by names and by earlier kills."""
        common = program.words & set(re.split(r"[/_.]", mutant.file))
        if program.labels == ["unit"] and not common:
            return 0.1
        promise = 1 + 2 * len(common)
        folder = os.path.dirname(mutant.file)
        for row in self.rows:
            if row[7] == program.name:
                promise += os.path.dirname(row[1]) == folder
                promise += 5 * (row[1] == mutant.file)
                promise += 1000 * (row[1:6] == _key(mutant))
        return promise


def _key(mutant):
    return [mutant.file, str(mutant.line), str(mutant.column), mutant.op,
            hashlib.sha256(mutant.old.encode()).hexdigest()[:12]]


# --- The hunt -----------------------------------------------------------------

class Hunt:
    def __init__(self, results):
        self.results = results
        self.programs = programs.find(TREE)
        self.sound = set()  # (program, test): passes without a mutant
        times = json.loads(TIMES.read_text()) if TIMES.is_file() else {}
        for program in self.programs:
            program.seconds = times.get(program.name, program.seconds)

    def verdict(self, mutant):
        """[killed, program, test], [alive, "", ""] or [uncompilable, "", ""]"""
        path = TREE / mutant.file
        text = path.read_text()
        lines = text.split("\n")
        lines[mutant.line - 1] = mutant.new
        try:
            path.write_text("\n".join(lines))
            verdict = self._race(mutant)
        finally:
            path.write_text(text)
        TIMES.write_text(json.dumps({program.name: program.seconds
                                     for program in self.programs}))
        if verdict[0] == "killed":
            self._expect_sound(*verdict[1:])
        return verdict

    def _order(self, mutant):
        """The programs that kill most in a second first. Half a second is for
        linking. No unit test runs a script."""
        is_script = LUA.fullmatch(mutant.file)
        return sorted((program for program in self.programs
                       if not is_script or program.labels != ["unit"]),
                      key=lambda program: (program.seconds + 0.5) /
                      self.results.promise(mutant, program))

    def _race(self, mutant):
        if not build("weir"):
            return ["uncompilable", "", ""]
        waiting, found = iter(self._order(mutant)), []
        lock, race = threading.Lock(), programs.Race()

        def work():
            while True:
                with lock:
                    program = None if found else next(waiting, None)
                    if program is None:
                        return
                    if not build(program.target):
                        found.append(["uncompilable", "", ""])
                        return
                test = self._failure(program, race)
                with lock:
                    if test is not None and not found:
                        found.append(["killed", program.name, test])
                        race.end()

        threads = [threading.Thread(target=work) for _ in range(JOBS)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            found.append(["alive", "", ""])
            race.end()
        return found[0]

    @staticmethod
    def _failure(program, race):
        """A test that fails twice; None if all pass, or if the race is over."""
        begin = time.monotonic()
        test = program.run(race)
        if test is None:
            program.seconds = time.monotonic() - begin
            return None
        if race.is_over or program.run(race, test) is None or race.is_over:
            return None
        return test

    def _expect_sound(self, name, test):
        if (name, test) in self.sound:
            return
        program = next(one for one in self.programs if one.name == name)
        if not build(program.target) or program.run(programs.Race(), test):
            refuse(f"{name} {test} fails without a mutant as well")
        self.sound.add((name, test))


# --- Which mutants ------------------------------------------------------------

def one_per_line(mutants, rng):
    """Of each line one, in random order."""
    rng.shuffle(mutants)
    lines = set()
    for mutant in mutants:
        if (mutant.file, mutant.line) not in lines:
            lines.add((mutant.file, mutant.line))
            yield mutant


def chosen(args, names):
    def of(pattern):
        return [mutant for name in names if pattern.fullmatch(name)
                for mutant in mutate.mutants(name, (TREE / name).read_text())]

    rng = random.Random(args.seed)
    if args.file:
        found = of(re.compile(re.escape(args.file)))
        return one_per_line(found, rng) if args.count else found
    return (mutant for pair in zip(one_per_line(of(LUA), rng),
                                   one_per_line(of(C), rng))
            for mutant in pair)


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, usage=argparse.SUPPRESS,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = refuse
    parser.add_argument("file", nargs="?", metavar="FILE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int)
    args = parser.parse_args()
    if args.file is None and args.count is None:
        refuse("name a source, or say how many: --seed N --count N")
    if args.count is not None and args.count < 1:
        refuse(f"--count {args.count}: at least one")
    if args.file is not None:
        args.file = os.path.relpath(args.file, ROOT)
        if not SOURCE.fullmatch(args.file) or not (ROOT / args.file).is_file():
            refuse(f"{args.file} is no source in C or Lua of core, adapters or "
                   "plugins")
    return args


def report(mutant, verdict):
    where = f"{mutant.file}:{mutant.line}"
    if verdict[0] == "killed":
        print(f"killed {where} {mutant.op} by {verdict[1]} {verdict[2]}",
              flush=True)
    elif verdict[0] == "alive":
        print(f"alive {where} {mutant.old.strip()} -> "
              f"{mutant.new.strip() or 'nothing'}", flush=True)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # restores the file
    args = arguments()
    names, tree = copy_tree()
    if not configure() or not build("all"):
        refuse(f"the copy in {TREE} does not build")
    results = Results(tree)
    hunt = Hunt(results)
    counts = {"killed": 0, "alive": 0, "uncompilable": 0}
    for mutant in chosen(args, names):
        if counts["killed"] + counts["alive"] == args.count:
            break
        verdict = results.known(mutant)
        if verdict is None:
            verdict = hunt.verdict(mutant)
            results.add(mutant, verdict)
        counts[verdict[0]] += 1
        report(mutant, verdict)
    print(f"{counts['killed']} killed, {counts['alive']} alive")
    return 1 if counts["alive"] else 0


if __name__ == "__main__":
    sys.exit(main())
