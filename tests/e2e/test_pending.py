#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Handlers that finish their jobs later, under weir run."""

import signal

import e2e
from e2e import (PATIENCE, eventually, expect, expect_in, expect_true,
                 signal_again, test)


def later(place, after, **more):
    options = {"file": place.path("trace"), "after": after, **more}
    return "t=later?" + "&".join("%s=%s" % pair for pair in options.items())


def lines(place):
    try:
        with open(place.path("trace"), encoding="utf-8") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def start_worker(place, after, *args):
    return place.start("run", "--handle", later(place, after), *args)


@test
def jobs_that_threads_finish_are_done_once(place):
    for i in range(50):
        place.add("t", str(i))
    result = place.weir("run", "--until-empty", "--handle",
                        later(place, "20ms"))
    expect(0, result.code, result.err)
    expect(["start %d" % i for i in range(50)],
           sorted(lines(place), key=lambda line: int(line.split()[1])))
    expect(50, place.stats("t")["done_total"])


@test
def sigterm_waits_for_pending_jobs(place):
    place.add("t", "1")
    worker = start_worker(place, "500ms")
    eventually(lambda: lines(place), "the job started")
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=PATIENCE)
    expect(0, worker.returncode)
    expect(["start 1"], lines(place))
    stats = place.stats("t")
    expect([1, 0], [stats["done_total"], stats["running"]])


@test
def a_second_sigterm_gives_pending_jobs_back(place):
    place.add("t", "1")
    worker = start_worker(place, "0ms")
    eventually(lambda: lines(place), "the job started")
    worker.send_signal(signal.SIGTERM)
    while "finishing what runs" not in worker.stderr.readline():
        expect_true(worker.poll() is None, "it waits")
    signal_again(worker)
    _, err = worker.communicate(timeout=PATIENCE)
    expect(0, worker.returncode, err)
    expect(["start 1", "cancel 1 stop"], lines(place))
    stats = place.stats("t")
    expect([0, 1, 0, 0], [stats["done_total"], stats["ready"],
                          stats["running"], stats["crashed_total"]])
    expect(0, place.ok("show", "t", "1")["attempt"])


@test
def what_drain_does_not_wait_for_is_given_back(place):
    with open(place.path("conf"), "w", encoding="utf-8") as file:
        file.write('worker { drain = 100ms }\n'
                   'topic "t" { handler = later options = { "file=%s" } }\n'
                   % place.path("trace"))
    place.add("t", "1")
    worker = place.start("run", "--config", place.path("conf"))
    eventually(lambda: lines(place), "the job started")
    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate(timeout=PATIENCE)
    expect(0, worker.returncode, err)
    expect_in("not finished after 0.1 s; what is left is given back", err)
    expect(1, place.stats("t")["ready"])


@test
def a_pending_job_times_out_and_is_retried(place):
    with open(place.path("conf"), "w", encoding="utf-8") as file:
        file.write('topic "t" { handler = later timeout = 200ms retry = 1h\n'
                   '            options = { "file=%s" } }\n'
                   % place.path("trace"))
    place.add("t", "1")
    worker = place.start("run", "--config", place.path("conf"))
    eventually(lambda: len(lines(place)) == 2, "it was cancelled")
    expect(["start 1", "cancel 1 timeout"], lines(place))
    job = eventually(
        lambda: [one for one in [place.ok("show", "t", "1")]
                 if one["state"] == "scheduled"], "it is scheduled again")[0]
    expect([1, 1, 1], [job["attempt"], job["failures"], job["timeouts"]])
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=PATIENCE)
    expect(0, worker.returncode)


@test
def what_completes_after_its_timeout_is_ignored(place):
    with open(place.path("conf"), "w", encoding="utf-8") as file:
        file.write('topic "t" { handler = later timeout = 100ms retry = 1h\n'
                   '            options = { "file=%s", "after=3s" } }\n'
                   % place.path("trace"))
    place.add("t", "1")
    worker = place.start("run", "--config", place.path("conf"))
    eventually(lambda: len(lines(place)) == 2, "it was cancelled")
    worker.send_signal(signal.SIGTERM)  # ends it when the thread is through
    worker.communicate(timeout=PATIENCE)
    expect(0, worker.returncode)
    stats = place.stats("t")
    expect([0, 1, 1], [stats["done_total"], stats["retried_total"],
                       stats["scheduled"]])


@test
def a_killed_worker_s_pending_jobs_run_elsewhere(place):
    for i in range(5):
        place.add("t", str(i))
    victim = start_worker(place, "0ms", "--lease", "1s")
    eventually(lambda: len(lines(place)) == 5, "all are pending")
    victim.kill()
    victim.wait()
    result = place.weir("run", "--until-empty", "--lease", "1s", "--handle",
                        later(place, "5ms"))
    expect(0, result.code, result.err)
    expect(10, len(lines(place)))
    stats = place.stats("t")
    expect([5, 5], [stats["done_total"], stats["crashed_total"]])


if __name__ == "__main__":
    e2e.main()
