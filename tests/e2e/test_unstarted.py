# SPDX-License-Identifier: MIT
"""A job that does not start uses no token of `rate` and `key_rate`, and neither
does the tick of a schedule."""

import os

from e2e import (eventually, expect, signal_again, stop_cleanly, terminate,
                 test)
from resp import Client


def client(place):
    return Client(os.path.join(place.data, "redis.sock"))


def set_topic(place, *options):
    place.ok("topic", "set", "t", *options)


def work(place, name="out", flags=(), **options):
    return place.work(place.handler("trace", file=name, **options),
                      flags=("--lease", "1h", *flags))


def await_ran(place, count, name="out"):
    eventually(lambda: len(place.lines(name)) >= count,
               "%d jobs ran" % count)
    expect(count, len(place.lines(name)), "jobs that ran")


def await_expired(place, count):
    eventually(lambda: place.stats("t")["expired_total"] == count,
               "%d jobs expired" % count)


def add_expired(place, count, *flags):
    """They waited for longer than they may, as the topic was paused."""
    place.ok("pause", "t")
    for number in range(count):
        place.add("t", "old%d" % number, "--ttl", "1ms", *flags)


@test
def jobs_that_expired_use_no_token(place):
    set_topic(place, "rate=1/h burst 3")
    add_expired(place, 20)
    place.add_lines("t", 5)
    worker = work(place)
    place.ok("resume", "t")
    await_expired(place, 20)
    await_ran(place, 3)
    eventually(lambda: place.stats("t")["limited"] == "rate", "it is limited")
    stop_cleanly(worker)


@test
def jobs_of_a_key_that_expired_use_no_token_of_it(place):
    set_topic(place, "key_rate=1/h burst 2")
    add_expired(place, 9, "--key", "k")
    for number in range(4):
        place.add("t", str(number), "--key", "k")
    worker = work(place)
    place.ok("resume", "t")
    await_expired(place, 9)
    await_ran(place, 2)
    eventually(lambda: place.stats("t")["limited"] == "key", "it is limited")
    stop_cleanly(worker)


@test
def jobs_that_cannot_be_read_use_no_token(place):
    set_topic(place, "rate=1/h burst 2", "max_dead=10")
    redis = client(place)
    for number in range(4):
        place.add("t", "bad%d" % number)
    for key in redis("KEYS", "weir:{t}:p:*"):
        redis("SET", key, "none")
    place.add_lines("t", 5)
    worker = work(place)
    eventually(lambda: place.stats("t")["dead"] == 4, "four are dead")
    await_ran(place, 2)
    stop_cleanly(worker)


def await_running(place, count):
    eventually(lambda: place.stats("t")["running"] == count, "so many run")


def hold_three(place):
    """A worker runs a job, which does not end, and holds three more."""
    set_topic(place, "rate=1/h burst 4", "timeout=1h")
    place.add_lines("t", 9)
    worker = place.work(place.handler("pending", how="close"),
                        flags=("--lease", "1h", "--concurrency", "1",
                               "--prefetch", "3"))
    await_running(place, 4)
    return worker


def end(worker):
    signal_again(worker)
    expect(0, worker.wait())


@test
def what_a_worker_that_stops_gives_back_uses_no_token(place):
    worker = hold_three(place)
    terminate(worker)
    await_running(place, 1)
    end(worker)
    worker = work(place)
    await_ran(place, 3)
    eventually(lambda: place.stats("t")["limited"] == "rate", "it is limited")
    place.expect_stats("t", running=0, ready=6)
    stop_cleanly(worker)


@test
def who_waits_for_a_token_goes_on_when_another_worker_stops(place):
    worker = hold_three(place)
    other = work(place)
    eventually(lambda: place.stats("t")["limited"] == "rate", "it is limited")
    terminate(worker)
    await_ran(place, 3)
    end(worker)
    stop_cleanly(other)


@test
def what_a_pause_takes_from_a_worker_uses_no_token(place):
    set_topic(place, "rate=1/h burst 20")
    place.add_lines("t", 30)
    worker = work(place, flags=("--prefetch", "20"), ms=100)
    eventually(lambda: place.lines("out"), "a job runs")
    place.ok("pause", "t")
    await_running(place, 0)
    place.ok("resume", "t")
    await_ran(place, 20)
    eventually(lambda: place.stats("t")["limited"] == "rate", "it is limited")
    stop_cleanly(worker)


@test
def ticks_use_no_token_and_wait_for_none(place):
    set_topic(place, "rate=1/h burst 2")
    place.ok("cron", "add", "one", "--topic", "t", "--every", "1s")
    place.ok("cron", "add", "two", "--topic", "t", "--every", "1s")
    worker = work(place)
    await_ran(place, 2)
    eventually(lambda: place.stats("t")["ready"] >= 4, "ticks go on")
    expect(2, len(place.lines("out")), "jobs that ran")
    stop_cleanly(worker)


@test
def ticks_wait_for_no_token_of_a_rate_that_is_set_later(place):
    for name in ("one", "two"):
        place.ok("cron", "add", name, "--topic", "t", "--at", "* * * * * *")
    worker = work(place)
    eventually(lambda: len(place.lines("out")) >= 4, "ticks come")
    place.ok("pause", "t")
    for number in range(3):
        place.add("t", str(number), "--at", "2026-01-01T00:00:00Z")
    set_topic(place, "rate=1/h")
    place.ok("resume", "t")
    eventually(lambda: place.stats("t")["ready"] >= 8, "ticks go on")
    stop_cleanly(worker)
