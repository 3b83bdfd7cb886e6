# SPDX-License-Identifier: MIT
"""Handlers that finish later, on the worker's loop or in threads of theirs."""

import os
import signal
import time

from e2e import (PATIENCE, eventually, expect, expect_in, expect_true, main,
                 signal_again, stop_cleanly, test)


def pending(**options):
    return "t=pending?" + "&".join("%s=%s" % item for item in options.items())


def add_lines(place, count, *args):
    lines = "".join('{"id":"%d"}\n' % i for i in range(count))
    place.ok("add", "t", "--jsonl", "-", *args, stdin=lines)


def drained(place, *args):
    result = place.weir("run", "--until-empty", *args)
    expect(0, result.code, "exit code, stderr %r" % result.err)
    return result


def running(place, *args):
    """A worker that has started the only job of its topic."""
    worker = place.start("run", *args)
    eventually(lambda: place.stats("t")["running"] == 1, "the job runs")
    return worker


@test
def runs_are_finished_from_timers_and_from_threads(place):
    for how in ("timer", "thread"):
        add_lines(place, 300)
        drained(place, "--handle", pending(how=how, after="20ms"))
        expect(0, place.stats("t")["dead"])
    expect(600, place.stats("t")["done_total"])


@test
def many_runs_are_pending_at_once(place):
    add_lines(place, 200)
    start = time.monotonic()
    drained(place, "--handle", pending(how="timer", after="500ms"))
    # One at a time they take 100 s.
    expect_true(time.monotonic() - start < 50, "they overlapped")
    expect(200, place.stats("t")["done_total"])


@test
def a_worker_that_stops_waits_for_what_is_pending(place):
    place.add("t", "1")
    worker = running(place, "--handle", pending(how="thread", after="3s"))
    stop_cleanly(worker)
    expect(1, place.stats("t")["done_total"])


@test
def a_run_that_is_finished_twice_is_finished_once_and_named(place):
    place.add("t", "1")
    place.add("u", "1")
    result = drained(place, "--handle", pending(how="twice"),
                     "--handle", "u=pending?how=timer&after=500ms")
    expect_in("a run was completed that is over", result.err)
    expect(1, place.stats("t")["done_total"])


@test
def a_run_that_is_finished_after_its_timeout_was_retried(place):
    config = place.path("weir.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write('topic "t" { handler = pending  timeout = 100ms\n'
                   '  options = { "how=late", "after=10ms" }\n'
                   '  retry = "1s" }\n'
                   'topic "u" { handler = pending\n'
                   '  options = { "after=3s" } }\n')
    place.add("t", "1")
    place.add("u", "1")
    result = drained(place, "--config", config)
    expect_in("a run was completed that is over", result.err)
    shown = place.ok("show", "t", "1")
    expect(["dead", 2, "timeout"],
           [shown["state"], shown["timeouts"], shown["error"]])


@test
def what_a_plugin_leaves_behind_is_named(place):
    place.add("t", "1")
    result = drained(place, "--handle", pending(how="timer", leak="yes"))
    expect_in("t: plugin pending was closed and left 1 timers and 1 watched "
              "descriptors behind; they are stopped", result.err)


@test
def a_run_that_is_finished_when_the_reactor_is_gone_is_ignored(place):
    place.add("t", "1")
    worker = running(place, "--handle", pending(how="close"))
    worker.send_signal(signal.SIGTERM)
    eventually(lambda: os.read(worker.stderr.fileno(), 4096).find(
        b"finishing what runs") >= 0, "it was told")
    signal_again(worker)
    expect(0, worker.wait(PATIENCE))
    expect([0, 1], [place.stats("t")[name] for name in ("done_total", "ready")])


@test
def handlers_that_block_run_on_threads_beside_the_loop(place):
    config = place.path("weir.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write('worker { threads = 20 }\n'
                   'topic "t" { handler = blocking  options = "for=2s" }\n'
                   'topic "u" { handler = pending  options = "after=1ms" }\n')
    add_lines(place, 40)
    place.add("u", "1")
    worker = place.start("run", "--config", config, "--until-empty")
    eventually(lambda: place.stats("u")["done_total"] == 1, "the other topic")
    expect_true(place.stats("t")["done_total"] < 40, "the loop did not wait")
    expect(0, worker.wait(PATIENCE))  # one at a time they take 80 s
    expect(40, place.stats("t")["done_total"])


@test
def what_threads_had_when_a_worker_died_runs_again(place):
    add_lines(place, 30)
    worker = place.start("run", "--handle", "t=blocking?for=100ms",
                         "--lease", "1s")
    eventually(lambda: place.stats("t")["done_total"] > 5, "it works")
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    drained(place, "--handle", "t=blocking?for=1ms")
    expect([30, 0], [place.stats("t")[name]
                     for name in ("done_total", "dead")])


if __name__ == "__main__":
    main()
