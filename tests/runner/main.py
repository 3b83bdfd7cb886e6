# SPDX-License-Identifier: MIT
"""python3 tests/runner/main.py VERB [PATTERN] [OPTION...]: runs the tests.

./run calls this; ./run help says what the verbs and options mean."""

import argparse
import os
import re
import shutil
import sys
import time
from dataclasses import replace

import changes
import flaky
import plan
import table
import verdict
from pool import Pool, Task

ROOT = plan.ROOT
TIMES = os.path.join(ROOT, "tests", "times.tsv")
LOGS = os.path.join(ROOT, "build", "runs")
SUM = re.compile(r"^(\d+) passed, (\d+) failed$", re.M)
NAMED = re.compile(r"^FAILED (\w+)", re.M)
BURNS, LOOPS, BURN_TOGETHER = 20, 6, 4
BURN_S = 240  # wall time for the burn-in of changed tests


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


class Outcome:
    """What a program's run said."""

    def __init__(self, task, record):
        self.task, self.record, self.output = task, record, read(task.log)
        sums = SUM.findall(self.output)
        self.passed, self.failed = map(int, sums[-1]) if sums else (0, 0)
        self.is_good = record["status"] == 0 and not record["timed_out"]
        if task.wanted_text:
            self.is_good = bool(re.search(task.wanted_text, self.output))
        elif not sums and "fuzz" not in task.labels:
            self.is_good = False  # it ended before it had run all its tests
        if self.is_good and not sums:
            self.passed = 1
        if not self.is_good:
            self.failed = max(self.failed, 1)
        self.names = NAMED.findall(self.output)


class Run:
    def __init__(self, rows, cpus):
        self.rows, self.outcomes, self.begun = rows, [], time.monotonic()
        self.pool = Pool(cpus * 1.25, cpus * 8, self.ended)
        self.after_build = {}  # build: what chooses its tests
        self.compat = None

    def build(self, name, wanted):
        self.after_build[name] = wanted
        self.pool.add([plan.build_task(
            name, os.path.join(LOGS, "%s-build.log" % name))])

    def ended(self, task, record):
        if task.name == "build":
            self.built(task, record)
            return
        outcome = Outcome(task, record)
        self.outcomes.append(outcome)
        print("[%4d s] %s %s (%.1f s, %.1f CPU s)" % (
            time.monotonic() - self.begun,
            "passed" if outcome.is_good else "FAILED", task.title,
            record["wall_s"], record["cpu_s"]), flush=True)

    def built(self, task, record):
        if record["status"] != 0:
            print(read(task.log)[-8000:])
            self.outcomes.append(Outcome(task, record))
            return
        print("[%4d s] built %s (%.0f CPU s)" % (
            time.monotonic() - self.begun, task.build, record["cpu_s"]),
            flush=True)
        self.pool.add([one for one in plan.tasks_of(task.build, self.rows, LOGS)
                       if self.after_build[task.build](one)])


def repeat_alone(outcome):
    """Two runs of the tests that failed, by themselves: a list of outcomes."""
    task, repeats = outcome.task, []
    command = list(task.command)
    if outcome.names and plan.takes_names(task):
        command += sorted(set(outcome.names) - set(command))
    for number in (2, 3):
        again = replace(task, command=command, log="%s.%d" % (task.log, number))
        pool = Pool(1, 1, lambda one, record: repeats.append(
            Outcome(one, record)))
        pool.add([again])
        pool.run()
        if not repeats[-1].is_good:
            break
    return repeats


def judge_red(outcomes):
    """Repeats what failed; returns [(outcome, verdict, why)]."""
    judged, changed, known = [], changes.files(), flaky.known()
    for outcome in outcomes:
        task = outcome.task
        if outcome.is_good:
            continue
        if task.name in ("build", "compat"):
            judged.append((outcome, verdict.FAILED, "see its log"))
            continue
        repeats = repeat_alone(outcome)
        flaky.keep(task, [outcome, *repeats])
        judged.append((outcome, *verdict.judge(
            task.name, outcome.record, outcome.output,
            [one.is_good for one in repeats],
            changes.touching(task, changed), task.name in known)))
    soft = [one for one in judged if one[1] == verdict.FLAKY]
    for one in verdict.judge_run(soft):
        judged[judged.index(one)] = (
            one[0], verdict.FAILED, "two tests were flaky in one run")
    return judged


def finish(outcomes, more=()):
    """Prints what failed and the sums; returns the exit status. `more` has
    sentences, each about something else that failed."""
    judged = judge_red(outcomes)
    quarantined = flaky.quarantined()
    passed = sum(one.passed for one in outcomes)
    failed, softened = 0, []
    for outcome, word, why in judged:
        name = outcome.task.name
        if word == verdict.FAILED and not flaky.is_excused(
                name, outcome, quarantined):
            failed += outcome.failed
            print("\nfailed: %s: %s" % (outcome.task.title, why))
            print("\n".join(outcome.output.splitlines()[-40:]))
        else:
            softened.append("%s: %s" % (outcome.task.title, why))
            passed += outcome.failed
    for sentence in [*more, *flaky.overdue()]:
        print("failed: %s" % sentence)
        failed += 1
    if not outcomes:
        print("no test was run")
        failed = 1
    print()
    for line in softened:
        print("flaky: %s" % line)
    print("%d flaky (their runs are in build/runs/)" % len(softened))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


def print_times(run, is_written):
    rows = {}
    for outcome in run.outcomes:
        task, record = outcome.task, outcome.record
        if task.build != "release" and task.name in rows or \
                task.name in ("build", "compat"):
            continue
        if task.build != "release" and task.name in run.rows:
            rows[task.name] = run.rows[task.name]
            continue
        old = run.rows.get(task.name, {})
        rows[task.name] = {
            "kind": table.kind_of(task.name, task.labels),
            "cpu_s": record["cpu_s"], "wall_s": record["wall_s"],
            "tests": outcome.passed + outcome.failed,
            "reason": old.get("reason", "")}
    print("\n%8s %8s %6s  program" % ("CPU s", "wall s", "weight"))
    for outcome in sorted(run.outcomes, key=lambda one: -one.record["cpu_s"]):
        record = outcome.record
        print("%8.2f %8.1f %6.2f  %s" % (
            record["cpu_s"], record["wall_s"],
            record["cpu_s"] / max(record["wall_s"], 0.001),
            outcome.task.title))
    if is_written:
        table.write(TIMES, {**run.rows, **rows})


def say_cost(run):
    cpu = sum(one.record["cpu_s"] for one in run.outcomes)
    print("tests: %.0f CPU s, %.0f s of wall time" % (
        cpu, time.monotonic() - run.begun))


def check_budgets(run):
    """In `all` only: sentences about programs that take twice their budget."""
    late = []
    for outcome in run.outcomes:
        task = outcome.task
        row = run.rows.get(task.name)
        if task.build != "release" or row and row["reason"]:
            continue
        sentence = table.over_budget(
            task.name, table.kind_of(task.name, task.labels),
            outcome.record["cpu_s"], 0.0,
            outcome.passed + outcome.failed, slack=2.0)
        if sentence:
            late.append(sentence)
    return late


def build_release():
    """Before all else, with both CPUs."""
    done = []
    pool = Pool(1, 1, lambda task, record: done.append((task, record)))
    task = replace(plan.build_task("release", os.path.join(
        LOGS, "release-build.log")), nice=0)
    print("building release", flush=True)
    pool.add([task])
    pool.run()
    if done[0][1]["status"] != 0:
        print(read(task.log)[-8000:])
        print("\n0 passed, 1 failed")
        sys.exit(1)


def burn(tasks):
    """Each task 20 times beside six busy loops; returns the outcomes."""
    outcomes, pids = [], []
    for _ in range(LOOPS):
        pid = os.fork()
        if pid == 0:
            while os.getppid() != 1:
                sum(range(100000))
            os._exit(0)
        pids.append(pid)
    try:
        for task in tasks:
            runs = []
            pool = Pool(BURN_TOGETHER, BURN_TOGETHER,
                        lambda one, record, runs=runs: runs.append(
                            Outcome(one, record)))
            pool.add([replace(task, log="%s.burn%d" % (task.log, number))
                      for number in range(BURNS)])
            pool.run()
            green = sum(one.is_good for one in runs)
            print("burn: %s: %d of %d passed" % (task.title, green, BURNS),
                  flush=True)
            outcomes += runs
    finally:
        for pid in pids:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    return outcomes


def burn_s(task):
    """The wall time of a burn. The loops leave a test a quarter of a CPU."""
    return max(task.wall_s, task.cpu_s * 4) * BURNS / BURN_TOGETHER


def burn_changed(run):
    """As many of the changed programs as fit in BURN_S, cheapest first; names
    the others. Returns the runs that failed."""
    changed, left_s, chosen, left_out = changes.files(), BURN_S, [], []
    tasks = [task for task in plan.tasks_of("release", run.rows, LOGS)
             if plan.every_day(task) and "lint" not in task.labels
             and changes.has_changed(task, changed)]
    for task in sorted(tasks, key=burn_s):
        if burn_s(task) <= left_s:
            left_s -= burn_s(task)
            chosen.append(task)
        else:
            left_out.append(task.name)
    if left_out:
        print("burn: no room for %s" % " ".join(left_out))
    return ["%s failed in a burn, see %s" % (one.task.title, one.task.log)
            for one in burn(chosen) if not one.is_good]


def run_verb(arguments, rows, cpus):
    run = Run(rows, cpus)
    builds = plan.PLAN[arguments.verb]
    run.pool.add([task for task in plan.tasks_of("release", rows, LOGS)
                  if builds["release"](task)])
    for name, wanted in builds.items():
        if name != "release":
            run.build(name, wanted)
    if arguments.verb == "chaos":
        run.pool.add(plan.time_tasks(rows, LOGS))
    if arguments.verb == "all" and arguments.compat:
        run.pool.add([Task(
            "debian-13", "compat", ["bash", "run", "compat", plan.COMPAT], ROOT,
            os.path.join(LOGS, "compat.log"), limit_s=3600, nice=5,
            cpu_s=200, wall_s=3000)])
    run.pool.run()
    say_cost(run)
    if arguments.times:
        print_times(run, arguments.verb == "all")
    more = []
    if arguments.verb == "all":
        more = check_budgets(run)
        if not arguments.no_burn:
            more += burn_changed(run)
    return finish(run.outcomes, more)


def run_pattern(arguments, rows, cpus):
    tasks = [task for task in plan.tasks_of("release", rows, LOGS)
             if re.search(arguments.pattern, task.name)
             and "chaos" not in task.labels]
    if not tasks:
        print("run: no test's name matches \"%s\"; ctest --test-dir build -N "
              "lists them" % arguments.pattern)
        return 1
    if arguments.burn:
        outcomes = burn(tasks)
        red = [one for one in outcomes if not one.is_good]
        for one in red[:3]:
            print("\n".join(one.output.splitlines()[-40:]))
        print("%d passed, %d failed" % (len(outcomes) - len(red), len(red)))
        return 1 if red else 0
    run = Run(rows, cpus)
    run.pool.add(tasks)
    run.pool.run()
    if arguments.times:
        print_times(run, False)
    return finish(run.outcomes)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print("run: %s; ./run help lists what there is" % message,
              file=sys.stderr)
        sys.exit(2)


def main():
    parser = Parser(prog="run")
    parser.add_argument("verb", choices=[*plan.PLAN])
    parser.add_argument("pattern", nargs="?")
    parser.add_argument("--burn", action="store_true")
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--no-burn", action="store_true")
    parser.add_argument("--compat", action="store_true")
    arguments = parser.parse_args()
    if arguments.burn and not arguments.pattern:
        parser.error("--burn needs the name of a test: ./run test NAME --burn")
    shutil.rmtree(LOGS, ignore_errors=True)
    os.makedirs(LOGS)
    rows, cpus = table.read(TIMES), os.cpu_count()
    build_release()
    if arguments.pattern:
        return run_pattern(arguments, rows, cpus)
    return run_verb(arguments, rows, cpus)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
