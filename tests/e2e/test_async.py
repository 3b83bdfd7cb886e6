# SPDX-License-Identifier: MIT
"""Handlers that finish later, on the worker's loop or in threads of theirs."""

import os
import signal

from e2e import (await_line, eventually, expect, expect_in, kill, signal_again,
                 stop_cleanly, test, wait)


def running(place, **options):
    """A worker that has started the only job of its topic."""
    worker = place.work(place.handler("pending", **options))
    eventually(lambda: place.stats("t")["running"] == 1, "the job runs")
    return worker


@test
def runs_are_finished_from_timers_and_from_threads(place):
    for how in ("timer", "thread"):
        place.add_lines("t", 300)
        place.drain(place.handler("pending", how=how, after="20ms"))
        expect(0, place.stats("t")["dead"])
    expect(600, place.stats("t")["done_total"])


@test
def many_runs_are_pending_at_once(place):
    place.add_lines("t", 200)
    worker = place.work(place.handler("later", file="runs", until="end"))
    eventually(lambda: place.stats("t")["running"] == 200, "all are pending")
    place.write("end", "")
    eventually(lambda: place.stats("t")["done_total"] == 200, "all are done")
    stop_cleanly(worker)


@test
def a_worker_that_stops_waits_for_what_is_pending(place):
    place.add("t", "1")
    worker = running(place, how="thread", after="3s")
    stop_cleanly(worker)
    expect(1, place.stats("t")["done_total"])


@test
def a_run_that_is_finished_twice_is_finished_once_and_named(place):
    place.add("t", "1")
    place.add("u", "1")
    result = place.drain(place.handler("pending", how="twice"),
                         "u=pending?how=timer&after=500ms")
    expect_in("a run was completed that is over", result.err)
    expect(1, place.stats("t")["done_total"])


@test
def a_run_that_is_finished_after_its_timeout_was_retried(place):
    config = place.write("weir.conf",
                         'topic "t" { handler = pending  timeout = 100ms\n'
                         '  options = { "how=late", "after=10ms" }\n'
                         '  retry = "1s" }\n'
                         'topic "u" { handler = pending\n'
                         '  options = { "after=3s" } }\n')
    place.add("t", "1")
    place.add("u", "1")
    result = place.drain(flags=("--config", config))
    expect_in("a run was completed that is over", result.err)
    shown = place.ok("show", "t", "1")
    expect(["dead", 2, "timeout"],
           [shown["state"], shown["timeouts"], shown["error"]])


@test
def what_a_plugin_leaves_behind_is_named(place):
    place.add("t", "1")
    result = place.drain(place.handler("pending", how="timer", leak="yes"))
    expect_in("t: plugin pending was closed and left 1 timers and 1 watched "
              "descriptors behind; they are stopped", result.err)


@test
def a_run_that_is_finished_when_the_reactor_is_gone_is_ignored(place):
    place.add("t", "1")
    worker = running(place, how="close")
    worker.send_signal(signal.SIGTERM)
    await_line(worker, "finishing what runs")
    signal_again(worker)
    expect(0, wait(worker))
    place.expect_stats("t", done_total=0, ready=1)


@test
def handlers_that_block_run_on_threads_beside_the_loop(place):
    config = place.write("weir.conf", """
worker { threads = 20 }
topic "t" { handler = blocking  options = "until=%s" }
topic "u" { handler = pending  options = "after=1ms" }
""" % place.path("go"))
    place.add_lines("t", 40)
    place.add("u", "1")
    worker = place.work(flags=("--config", config, "--until-empty"))
    eventually(lambda: place.stats("u")["done_total"] == 1, "the other topic")
    eventually(lambda: len(os.listdir("/proc/%d/task" % worker.pid)) > 20,
               "20 threads block at once")
    expect(0, place.stats("t")["done_total"])
    place.write("go", "")
    expect(0, wait(worker))
    expect(40, place.stats("t")["done_total"])


@test
def what_threads_had_when_a_worker_died_runs_again(place):
    place.add_lines("t", 30)
    worker = place.work("t=blocking?for=100ms", flags=("--lease", "1s"))
    eventually(lambda: place.stats("t")["done_total"] > 5, "it works")
    kill(worker)
    place.drain("t=blocking?for=1ms")
    place.expect_stats("t", done_total=30, dead=0)
