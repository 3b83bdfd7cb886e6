# SPDX-License-Identifier: MIT
"""Handlers that finish their jobs later, under weir run."""

import signal

from e2e import (await_line, end_cleanly, eventually, expect, expect_in, kill,
                 signal_again, stop_cleanly, test)


def later(place, after):
    return place.handler("later", file="trace", after=after)


def lines(place):
    try:
        with open(place.path("trace"), encoding="utf-8") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


@test
def jobs_that_threads_finish_are_done_once(place):
    place.add_many("t", 50)
    place.drain(later(place, "20ms"))
    expect(["start %d" % i for i in range(50)],
           sorted(lines(place), key=lambda line: int(line.split()[1])))
    expect(50, place.stats("t")["done_total"])


@test
def sigterm_waits_for_pending_jobs(place):
    place.add("t", "1")
    worker = place.work(later(place, "500ms"))
    eventually(lambda: lines(place), "the job started")
    stop_cleanly(worker)
    expect(["start 1"], lines(place))
    place.expect_stats("t", done_total=1, running=0)


@test
def sigterm_amid_large_bodies_loses_and_repeats_none(place):
    body = "x" * 300000
    place.add_lines("t", 40, '{"id":"%d","body":"' + body + '"}')
    worker = place.work(later(place, "100ms"), flags=("--concurrency", "4"))
    eventually(lambda: lines(place), "a job started")
    stop_cleanly(worker)
    place.expect_stats("t", done_total=len(lines(place)), running=0)
    place.drain(later(place, "10ms"))
    expect(sorted("start %d" % i for i in range(40)), sorted(lines(place)))
    place.expect_stats("t", done_total=40, running=0, ready=0)


@test
def a_second_sigterm_gives_pending_jobs_back(place):
    place.add("t", "1")
    worker = place.work(later(place, "0ms"))
    eventually(lambda: lines(place), "the job started")
    worker.send_signal(signal.SIGTERM)
    await_line(worker, "finishing what runs")
    signal_again(worker)
    err = end_cleanly(worker)
    expect(["start 1", "cancel 1 stop"], lines(place))
    place.expect_stats("t", done_total=0, ready=1, running=0, crashed_total=0)
    expect(0, place.ok("show", "t", "1")["attempt"])


@test
def what_drain_does_not_wait_for_is_given_back(place):
    place.write("conf",
                'worker { drain = 100ms }\n'
                'topic "t" { handler = later options = { "file=%s" } }\n'
                % place.path("trace"))
    place.add("t", "1")
    worker = place.work(flags=("--config", place.path("conf")))
    eventually(lambda: lines(place), "the job started")
    err = stop_cleanly(worker)
    expect_in("not finished after 0.1 s; what is left is given back", err)
    expect(1, place.stats("t")["ready"])


@test
def a_pending_job_times_out_and_is_retried(place):
    place.write("conf",
                'topic "t" { handler = later timeout = 200ms retry = 1h\n'
                '            options = { "file=%s" } }\n'
                % place.path("trace"))
    place.add("t", "1")
    worker = place.work(flags=("--config", place.path("conf")))
    eventually(lambda: len(lines(place)) == 2, "it was cancelled")
    expect(["start 1", "cancel 1 timeout"], lines(place))
    job = eventually(
        lambda: [one for one in [place.ok("show", "t", "1")]
                 if one["state"] == "scheduled"], "it is scheduled again")[0]
    expect([1, 1, 1], [job["attempt"], job["failures"], job["timeouts"]])
    stop_cleanly(worker)


@test
def what_completes_after_its_timeout_is_ignored(place):
    place.write("conf",
                'topic "t" { handler = later timeout = 100ms retry = 1h\n'
                '            options = { "file=%s", "after=3s" } }\n'
                % place.path("trace"))
    place.add("t", "1")
    worker = place.work(flags=("--config", place.path("conf")))
    eventually(lambda: len(lines(place)) == 2, "it was cancelled")
    worker.send_signal(signal.SIGTERM)  # ends it when the thread is through
    end_cleanly(worker)
    place.expect_stats("t", done_total=0, retried_total=1, scheduled=1)


@test
def a_killed_worker_s_pending_jobs_run_elsewhere(place):
    place.add_many("t", 5)
    victim = place.work(later(place, "0ms"), flags=("--lease", "1s"))
    eventually(lambda: len(lines(place)) == 5, "all are pending")
    kill(victim)
    place.drain(later(place, "5ms"))
    expect(10, len(lines(place)))
    place.expect_stats("t", done_total=5, crashed_total=5)
