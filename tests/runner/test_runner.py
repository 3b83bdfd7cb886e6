# SPDX-License-Identifier: MIT
"""The rule for a red test, the pool and the budgets."""

import contextlib
import datetime
import io
import os
import signal
import subprocess
import sys

import changes
import flaky
import main
import table
from e2e import expect, expect_in, expect_true, test
from pool import Pool, Task

BUSY, CALM = 0.5, 0.0  # the part of its time that a run waited for a CPU


def task_of(place, name, script, **options):
    """A program of one test, in bash; its state is in files of the place."""
    command = ["bash", "-c", script + "\necho 1 passed, 0 failed"]
    return Task("release", name, command, place.dir,
                place.path(name + ".log"), **options)


def run(tasks, waits):
    """Runs tasks and sets how long their processes waited for a CPU, in parts
    of the run's time. Returns what the first runs said."""
    outcomes = []

    def ended(task, record):
        record["waited_s"] = waits * record["wall_s"]
        record["psi_s"] = 0.0
        outcomes.append(main.Outcome(task, record))

    pool = Pool(2, 8, ended)
    pool.add(tasks)
    pool.run()
    return outcomes


def finish(place, outcomes, touched="", known=()):
    """(exit status, what was printed) of the end of a run."""
    printed = io.StringIO()
    saved = (flaky.EVIDENCE, flaky.rows, changes.touching)
    flaky.EVIDENCE = place.path("flaky.tsv")
    flaky.rows = lambda path=None: [
        ("2026-01-01", "seen", name, "") for name in known]
    changes.touching = lambda task, changed: touched
    try:
        with contextlib.redirect_stdout(printed):
            status = main.finish(outcomes)
    finally:
        flaky.EVIDENCE, flaky.rows, changes.touching = saved
    return status, printed.getvalue()


# --- the rule for a red test ------------------------------------------------

RED_ONCE = "test -e %s.was || { touch %s.was; echo FAILED a; exit 1; }"


@test
def a_test_that_is_red_once_in_three_on_a_busy_machine_is_flaky(place):
    status, printed = finish(place, run(
        [task_of(place, "once", RED_ONCE % ("x", "x"))], BUSY))
    expect(0, status)
    expect_in("flaky: release once: ", printed)
    expect_in("1 flaky ", printed)
    expect("1 passed, 0 failed", printed.splitlines()[-1])


@test
def a_test_that_is_red_when_calm_fails(place):
    status, printed = finish(place, run(
        [task_of(place, "once", RED_ONCE % ("x", "x"))], CALM))
    expect(1, status)
    expect_in("though no CPU was scarce", printed)
    expect("0 passed, 1 failed", printed.splitlines()[-1])


@test
def a_test_that_is_red_alone_as_well_fails(place):
    status, printed = finish(place, run(
        [task_of(place, "red", "echo FAILED a; exit 1")], BUSY))
    expect(1, status)
    expect_in("it fails alone, too", printed)


@test
def a_program_that_ends_well_before_its_count_fails(place):
    status, printed = finish(place, run(
        [task_of(place, "early", "echo ok a; exit 0")], BUSY))
    expect(1, status)
    expect("0 passed, 1 failed", printed.splitlines()[-1])


@test
def a_test_that_crashes_once_fails(place):
    crash = "test -e was || { touch was; kill -SEGV $$; }; true"
    status, printed = finish(place, run(
        [task_of(place, "crash", crash)], BUSY))
    expect(1, status)
    expect_in("it crashed once", printed)


@test
def a_report_of_a_sanitizer_is_a_crash(place):
    report = "test -e was || { touch was; echo 'ERROR: AddressSanitizer: " \
        "x'; exit 1; }; true"
    status, printed = finish(place, run(
        [task_of(place, "report", report)], BUSY))
    expect(1, status)
    expect_in("it crashed once", printed)


@test
def a_ledger_that_counts_wrong_once_fails(place):
    wrong = "test -e was || { touch was; echo '1 job was lost'; exit 1; }"
    status, printed = finish(place, run(
        [task_of(place, "ledger_x", wrong)], BUSY))
    expect(1, status)
    expect_in("it counted jobs wrong", printed)


@test
def a_flaky_test_that_the_change_touched_fails(place):
    status, printed = finish(place, run(
        [task_of(place, "once", RED_ONCE % ("x", "x"))], BUSY),
        touched="core/flow.c")
    expect(1, status)
    expect_in("the change touched core/flow.c", printed)


@test
def a_test_that_was_flaky_before_fails(place):
    status, printed = finish(place, run(
        [task_of(place, "once", RED_ONCE % ("x", "x"))], BUSY),
        known=["once"])
    expect(1, status)
    expect_in("tests/flaky.tsv already", printed)


@test
def two_flaky_tests_in_one_run_fail(place):
    status, printed = finish(place, run(
        [task_of(place, name, RED_ONCE % (name, name))
         for name in ("x", "y")], BUSY))
    expect(1, status)
    expect_in("two tests were flaky in one run", printed)
    expect("0 passed, 2 failed", printed.splitlines()[-1])


@test
def without_pressure_there_is_no_credit(place):
    outcomes = run([task_of(place, "once", RED_ONCE % ("x", "x"))], BUSY)
    outcomes[0].record["psi_s"] = None
    status, _ = finish(place, outcomes)
    expect(1, status)


@test
def each_run_of_a_red_test_is_kept(place):
    finish(place, run([task_of(place, "once", RED_ONCE % ("x", "x"))], BUSY))
    with open(place.path("flaky.tsv"), encoding="utf-8") as file:
        rows = [line.split("\t") for line in file]
    expect(["failed", "passed", "passed"], [row[3] for row in rows])
    for row in rows:
        expect_true(os.path.exists(row[-1].strip()), "its log is there")


@test
def no_test_at_all_is_a_failure(place):
    status, printed = finish(place, [])
    expect(1, status)
    expect_in("no test was run", printed)


@test
def a_quarantine_has_five_names_and_fourteen_days(place):
    path = place.write("known.tsv", "".join(
        "2026-01-%02d\tquarantine\tt%d\twhy\n" % (day, day)
        for day in range(1, 7)))
    day = datetime.date(2026, 1, 14)
    expect(["6 names are in quarantine, and 5 are the most"],
           flaky.overdue(path, day))
    expect(2, len(flaky.overdue(path, day + datetime.timedelta(2))))


@test
def quarantine_excuses_no_ledger_and_no_crash(place):
    red, crash = run([task_of(place, "red", "exit 1"),
                      task_of(place, "crash", "kill -SEGV $$")], BUSY)
    if red.task.name == "crash":
        red, crash = crash, red
    expect_true(flaky.is_excused("x", red, {"x"}), "a red test")
    expect_true(not flaky.is_excused("x", crash, {"x"}), "no crash")
    expect_true(not flaky.is_excused("ledger_x", red, {"ledger_x"}),
                "no ledger")


# --- running ----------------------------------------------------------------

@test
def cpu_time_counts_what_a_program_left_behind(place):
    orphan = "setsid bash -c 'for ((i = 0; i < 200000; i++)); do :; done; " \
        "sleep 60' & sleep 1"
    [outcome] = run([task_of(place, "orphan", orphan)], BUSY)
    expect_true(outcome.is_good, outcome.output)
    expect_true(outcome.record["cpu_s"] > 0.1,
                "%r CPU s" % outcome.record["cpu_s"])


@test
def what_a_program_left_is_killed(place):
    left = "setsid sleep 1000 & echo $! >pid"
    run([task_of(place, "left", left)], BUSY)
    with open(place.path("pid"), encoding="utf-8") as file:
        expect_true(not os.path.exists("/proc/%d" % int(file.read())),
                    "it is killed")


@test
def a_program_that_does_not_end_is_stopped_and_fails(place):
    [outcome] = run([task_of(place, "hangs", "sleep 1000", limit_s=0.2)], BUSY)
    expect_true(not outcome.is_good, "it failed")
    expect_in("took more than 0.2 s", outcome.output)


@test
def what_yields_to_tests_does_not_yield_without_them(place):
    """Only root, whose tests these are here, may raise a priority."""
    wait = "for ((i = 0; i < 500 && $(nice) != 0; i++)); do sleep 0.1; done; "
    outcomes = run([task_of(place, "build", wait + "nice", nice=10),
                    task_of(place, "test", "sleep 0.5")], BUSY)
    expect([True, True], [one.is_good for one in outcomes])
    if os.getuid() == 0:
        expect("0\n1 passed", outcomes[1].output[:10])


@test
def tasks_with_one_lock_do_not_run_side_by_side(place):
    script = "mkdir lock && sleep 0.1 && rmdir lock"
    outcomes = run([task_of(place, "a%d" % i, script, lock="memory",
                            cpu_s=0.01) for i in range(4)], BUSY)
    expect([True] * 4, [one.is_good for one in outcomes])


@test
def a_program_that_is_not_there_fails(place):
    [outcome] = run([Task("release", "none", ["./none"], place.dir,
                          place.path("none.log"))], BUSY)
    expect_true(not outcome.is_good, "it failed")
    expect_in("none: ", outcome.output)


# --- the table, the change --------------------------------------------------

@test
def the_table_is_read_as_it_was_written(place):
    rows = {"e2e_x": {"kind": "driven", "cpu_s": 1.25, "wall_s": 4.5,
                      "tests": 7, "reason": "waits"}}
    table.write(place.path("times.tsv"), rows)
    expect(rows, table.read(place.path("times.tsv")))


@test
def a_program_above_its_budget_is_named(place):
    expect(None, table.over_budget("x", "unit", 0.15, 1.0, 10))
    expect_in("0.25 CPU s, budget 0.20",
              table.over_budget("x", "unit", 0.25, 1.0, 10))
    expect_in("budget 0.80", table.over_budget("x", "redis", 0.9, 1.0, 99))
    expect_in("10.0 s of wall time",
              table.over_budget("x", "driven", 0.1, 10.0, 3))


@test
def a_program_begins_with_default_signals_also_below_nohup(place):
    done = subprocess.run(
        ["nohup", sys.executable, "-B", "-c",
         "import os, supervise\n"
         "print(supervise.finish(*supervise.start(['sh', '-c', 'kill -HUP $$'], "
         "dict(os.environ), '/', '%s', 60))['status'])" % place.path("log")],
        cwd=os.path.dirname(main.__file__), capture_output=True, text=True)
    expect("%d\n" % -signal.SIGHUP, done.stdout)


@test
def the_change_touches_the_tests_of_what_it_changed(place):
    folder = os.path.join(main.ROOT, "build", "tests", "redis")
    task = Task("release", "redis_delay_oom", [os.path.join(
        main.ROOT, "build", "tests", "test_redis_delay_oom")], folder, "")
    own = "tests/redis/delay/test_delay_oom.c"
    expect({own}, changes.sources(task))
    for covered in (own, "adapters/redis/delay/delay.c", "core/oom.h",
                    "adapters/redis/delay/delay_oom.c"):
        expect(covered, changes.touching(task, {covered}))
    for other in ("docs/scale.md", "core/heap.c", "core/redis.h",
                  "adapters/redis/delay/keys.c"):
        expect("", changes.touching(task, {other}))


@test
def what_is_above_its_budget_in_the_table_has_a_reason(place):
    late = [table.over_budget(name, row["kind"], row["cpu_s"], row["wall_s"],
                              row["tests"])
            for name, row in table.read(main.TIMES).items()
            if not row["reason"]]
    expect([], [sentence for sentence in late if sentence])
