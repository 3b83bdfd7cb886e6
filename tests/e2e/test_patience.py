# SPDX-License-Identifier: MIT
"""The patience clock, and waits that have an end."""

import signal
import subprocess
import sys

import patience
from e2e import await_line, expect, expect_in, test

FOREVER = [sys.executable, "-c", "import sys, time\n"
           "print('begun', file=sys.stderr, flush=True)\n"
           "time.sleep(3600)"]


def refusal(wait, *args):
    """Why this wait gave up."""
    try:
        wait(*args)
    except AssertionError as error:
        return str(error)
    raise AssertionError("the wait has no end")


@test
def the_clock_does_not_count_waits_for_a_cpu(place):
    expect(60, patience.elapsed(60, 0))
    expect(50, patience.elapsed(60, 10))


@test
def the_clock_keeps_a_tenth_of_the_speed_of_the_wall(place):
    expect(6, patience.elapsed(60, 60))
    expect(6, patience.elapsed(60, 500))


@test
def what_the_host_stole_and_what_tasks_waited_is_not_added(place):
    expect(9, patience.waited((1, {"some": 7}), (10, {"some": 12})))
    expect(5, patience.waited((1, {"some": 7}), (2, {"some": 12})))


@test
def waits_of_processes_are_added_also_of_those_that_end(place):
    before = (0, {"1": 3, "2": 8})
    expect(7, patience.waited(before, (0, {"1": 5, "3": 5})))
    expect(0, patience.waited(before, (0, {})))


@test
def the_kernel_gives_all_readings(place):
    stolen, waits = patience.read()
    expect([True, True], [stolen >= 0, all(s >= 0 for s in waits.values())])
    running = subprocess.Popen(FOREVER, stderr=subprocess.DEVNULL)
    place.started.append(running)
    expect_in(str(running.pid), patience.processes())


@test
def a_wait_gives_up_when_its_patience_is_over(place):
    clock = patience.Clock(0.1)
    patience.eventually(clock.is_over, "the clock runs")
    expect("did not come true: never", refusal(
        patience.eventually, lambda: False, "never", 0.1))


@test
def what_came_during_the_last_look_counts(place):
    looks = iter([False, True])
    patience.eventually(lambda: next(looks), "the second look", 0.001)


@test
def a_process_without_an_end_is_killed(place):
    expect_in("does not end", refusal(patience.run, FOREVER, None, 0.1))
    for wait in [patience.wait, lambda process, s: patience.communicate(
            process, None, s)]:
        running = subprocess.Popen(FOREVER, text=True,
                                   stderr=subprocess.PIPE)
        place.started.append(running)
        expect_in("does not end", refusal(wait, running, 0.1))
        expect(-signal.SIGKILL, running.wait())


@test
def a_line_that_does_not_come_ends_the_process(place):
    running = subprocess.Popen(FOREVER, text=True, stderr=subprocess.PIPE)
    place.started.append(running)
    await_line(running, "begun")

    def read():
        with patience.guarded(running, 0.1):
            expect("", running.stderr.read())
    expect_in("does not end", refusal(read))


@test
def text_goes_in_and_out_of_a_program(place):
    copy = [sys.executable, "-c", "import sys, time\ntime.sleep(1.5)\n"
            "sys.stdout.write(sys.stdin.read())"]
    expect("a" * 200000, patience.run(copy, "a" * 200000).stdout)
    expect_in("failed", refusal(
        lambda: patience.run(["false"], check=True)))
