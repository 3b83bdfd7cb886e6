# SPDX-License-Identifier: MIT
"""Verdicts that the server has no room for, and jobs that go back unstarted:
neither loses anything to its neighbours, to a stop or to a pause."""

import os

from e2e import (end_cleanly, eventually, expect, expect_true, stop_cleanly,
                 terminate, test)
from resp import Client

ONE = ("--concurrency", "1", "--retry", "1h")


class Gate:
    """A FIFO from which each attempt reads before it ends."""

    def __init__(self, place, name):
        self.path = place.path(name + ".gate")
        os.mkfifo(self.path)

    def open(self):
        """Once somebody reads."""
        with open(self.path, "w", encoding="ascii") as gate:
            gate.write("\n")


class Worker:
    """Runs one job at a time, which holds the loop until its gate opens and
    then some turns more; all of them are to be tried again."""

    def __init__(self, place, *args):
        self.place, self.gate = place, Gate(place, "w")
        handler = place.handler("trace", fail=99, ms=20, file="w",
                                gate=self.gate.path)
        self.process = place.work(handler, flags=ONE + args)

    def await_run(self, job_id):
        eventually(lambda: job_id in ran(self.place, "w"), job_id + " runs")


def ran(place, name):
    return [line["id"] for line in place.lines(name)]


def start_other(place, *args):
    return place.work(place.handler("trace", file="other"), flags=args)


def end(process):
    """None of its verdicts came too late."""
    err = end_cleanly(process)
    expect_true("too late" not in err, err)


def client(place):
    return Client(os.path.join(place.data, "redis.sock"))


def fill(redis, is_full=1):
    redis("CONFIG", "SET", "maxmemory", is_full)


def expect_job(place, job_id, *wanted):
    job = place.ok("show", "t", job_id)
    expect(list(wanted), [job[name] for name in
                          ("state", "attempt", "crashes")], job_id)


def expect_kept(place, retried, returned):
    expect_job(place, retried, "scheduled", 1, 0)
    expect_job(place, returned, "ready", 0, 0)


@test
def a_verdict_waits_for_room_though_its_worker_stops(place):
    for job_id in "ab":
        place.add("t", job_id)
    worker = Worker(place, "--prefetch", "9")
    worker.await_run("a")
    redis = client(place)
    fill(redis)
    terminate(worker.process)
    worker.gate.open()
    eventually(lambda: place.stats("t")["ready"] > 0, "b went back")
    fill(redis, 0)
    end(worker.process)
    expect_kept(place, "a", "b")


def start_beside(place, job_ids):
    """A worker that claims all and runs one at a time beside its loop: a is to
    be tried again, others are done."""
    gates = {job_id: Gate(place, job_id) for job_id in job_ids}
    command = place.write("run", """#!/bin/sh
        id=$(sed 's/.*"id":"\\([abc]\\)".*/\\1/')
        read -r _ <"%s/$id.gate"
        [ "$id" != a ] || exit 75
    """ % place.dir)
    os.chmod(command, 0o755)
    for job_id in job_ids:
        place.add("t", job_id)
    worker = place.work(place.handler("exec", command=command),
                        flags=(*ONE, "--prefetch", "9"))
    eventually(lambda: place.stats("t")["running"] == len(job_ids),
               "all are claimed")
    return worker, gates, client(place)


def is_asleep_in_pause(redis):
    last = redis("ZRANGE", "weir:{t}:idle", 0, 0, "WITHSCORES")
    return last[1:] == [b"-inf"]


@test
def a_verdict_waits_for_room_though_its_topic_is_paused(place):
    worker, gates, redis = start_beside(place, "ab")
    place.ok("pause", "t")
    eventually(lambda: is_asleep_in_pause(redis), "b goes back")
    fill(redis)
    gates["a"].open()
    eventually(lambda: place.stats("t")["ready"] > 0, "b went back")
    fill(redis, 0)
    eventually(lambda: place.stats("t")["running"] == 0, "a is settled")
    terminate(worker)
    end(worker)
    expect_kept(place, "a", "b")


@test
def a_pause_is_seen_though_the_server_is_full(place):
    """The verdict on a is held, b runs, c is claimed."""
    worker, gates, redis = start_beside(place, "abc")
    fill(redis)
    gates["a"].open()
    b_runs = os.open(gates["b"].path, os.O_WRONLY)  # opens when it reads
    redis.pipeline([("CONFIG", "SET", "maxmemory", 0),
                    ("HSET", "weir:{t}:meta", "paused", 1),
                    ("CONFIG", "SET", "maxmemory", 1)])
    eventually(lambda: place.stats("t")["ready"] == 1, "c went back")
    os.write(b_runs, b"\n")
    os.close(b_runs)
    eventually(lambda: place.stats("t")["done_total"] == 1, "b is done")
    fill(redis, 0)
    eventually(lambda: place.stats("t")["running"] == 0, "a is settled")
    terminate(worker)
    end(worker)
    expect_kept(place, "a", "c")


def await_renewals(redis, token):
    """Two, or the lease is lost."""
    def score():
        return redis("ZSCORE", "weir:{t}:lease", token)

    for _ in range(2):
        last = score()
        eventually(lambda: score() != last, "it is renewed or lost")
    expect_true(score() is not None, "the lease is kept")


def hold_up(place, stops):
    """The verdict on a waits for room while b, under a lease of its own, holds
    the loop for longer than that of a lasts."""
    for job_id in "ab":
        place.add("t", job_id)
    worker = Worker(place, "--prefetch", "0", "--lease", "5s")
    worker.await_run("a")
    redis = client(place)
    (token,) = redis("ZRANGE", "weir:{t}:lease", 0, -1)
    fill(redis)
    worker.gate.open()
    worker.await_run("b")
    other = start_other(place, "--lease", "5s")
    if stops:
        terminate(worker.process)
    await_renewals(redis, token)
    fill(redis, 0)
    worker.gate.open()
    eventually(lambda: place.stats("t")["running"] == 0, "both are settled")
    terminate(other)
    end(other)
    if not stops:
        terminate(worker.process)
    end(worker.process)
    expect([], ran(place, "other"))
    for job_id in "ab":
        expect_job(place, job_id, "scheduled", 1, 0)


@test
def what_waits_for_room_is_renewed_while_a_handler_holds_the_loop(place):
    hold_up(place, False)


@test
def what_waits_for_room_is_renewed_in_a_worker_that_stops(place):
    hold_up(place, True)


def now_ms(redis):
    seconds, us = redis("TIME")
    return int(seconds) * 1000 + int(us) // 1000


def return_late(place, is_full):
    """b has a second in which to start and goes back in the last part of it."""
    place.add("t", "a")
    place.add("t", "b", "--ttl", "1s")
    due = place.ok("show", "t", "b")["due_ms"]
    worker = Worker(place, "--prefetch", "9")
    worker.await_run("a")
    redis = client(place)
    eventually(lambda: now_ms(redis) > due + 800, "b is old")
    fill(redis, is_full)
    terminate(worker.process)
    worker.gate.open()
    eventually(lambda: place.stats("t")["ready"] > 0, "b went back")
    eventually(lambda: now_ms(redis) > due + 1000, "b is too old")
    other = start_other(place)
    eventually(lambda: place.stats("t")["ready"] == 0, "it was looked at")
    fill(redis, 0)
    end(worker.process)
    stop_cleanly(other)
    expect([], ran(place, "other"))
    expect(1, place.stats("t")["expired_total"])
    expect_job(place, "a", "scheduled", 1, 0)


@test
def what_goes_back_is_as_old_as_it_was(place):
    return_late(place, 0)


@test
def what_goes_back_to_a_full_server_is_as_old_as_it_was(place):
    return_late(place, 1)
