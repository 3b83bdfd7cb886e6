# SPDX-License-Identifier: MIT
"""`rate` and `parallel` hold over all workers of a topic, wherever they are
said, and whatever becomes of a worker."""

import os
import signal

from e2e import (eventually, expect, expect_in, expect_true, kill,
                 run_together, stop_cleanly, terminate, test)
from resp import Client


def client(place):
    return Client(os.path.join(place.data, "redis.sock"))


def work(place, name="out", flags=(), lease="1h", **options):
    return place.work(place.handler("trace", file=name, **options),
                      flags=("--lease", lease, *flags))


def ran(place, *names):
    return sum(len(place.lines(name)) for name in names)


def await_ran(place, count, *names):
    eventually(lambda: ran(place, *names) >= count, "%d jobs ran" % count)
    expect(count, ran(place, *names), "jobs that ran")


def limited(place, by):
    return eventually(lambda: place.stats("t")["limited"] == by,
                      "what is ready waits for its %s" % by)


def set_topic(place, *options):
    place.ok("topic", "set", "t", *options)


def await_sleeper(place):
    eventually(lambda: int(client(place)("ZCARD", "weir:{t}:idle")) > 0,
               "a worker sleeps")


def hold(place, name="gate"):
    """A gate that handlers wait at; it is opened by writing to it."""
    os.mkfifo(place.path(name))
    return os.open(place.path(name), os.O_RDWR)


def configure(place):
    return place.write("weir.conf", 'topic "t" { handler = trace options = '
                       '"file=%s" rate = "1/h burst 3" }\n' % place.path("out"))


@test
def a_stored_rate_holds_over_all_workers(place):
    set_topic(place, "rate=1/h burst 7")
    place.add_lines("t", 50)
    workers = [work(place, "out%d" % i) for i in range(3)]
    await_ran(place, 7, "out0", "out1", "out2")
    limited(place, "rate")
    place.expect_stats("t", ready=43, running=0, done_total=7)
    for worker in workers:
        stop_cleanly(worker)
    place.expect_stats("t", ready=43, done_total=7)


@test
def a_rate_of_the_configuration_holds_and_what_is_stored_beats_it(place):
    place.add_lines("t", 50)
    worker = place.work(flags=("--config", configure(place)))
    await_ran(place, 3, "out")
    set_topic(place, "rate=none")
    await_ran(place, 50, "out")
    stop_cleanly(worker)


@test
def a_rate_of_the_configuration_is_known_to_a_full_server(place):
    place.add_lines("t", 9)
    end_one(place)
    client(place)("CONFIG", "SET", "maxmemory", 1)
    worker = place.work(flags=("--config", configure(place)))
    limited(place, "rate")
    place.expect_stats("t", ready=5, done_total=4)
    stop_cleanly(worker)


def end_one(place):
    """The server has been met, and there are no limits."""
    expect(0, place.weir("settle", "t", place.weir("take", "t").out.split()[0],
                         "--done").code)


@test
def who_is_configured_without_a_rate_ends_the_one_that_was(place):
    place.add_lines("t", 20)
    worker = place.work(flags=("--config", configure(place)))
    await_ran(place, 3, "out")
    stop_cleanly(worker)
    worker = work(place)
    await_ran(place, 20, "out")
    expect(None, client(place)("HGET", "weir:{t}:meta", "limits"))
    stop_cleanly(worker)


@test
def who_has_no_rate_ends_the_one_that_was_though_it_meets_a_pause(place):
    place.add_lines("t", 20)
    worker = place.work(flags=("--config", configure(place)))
    await_ran(place, 3, "out")
    stop_cleanly(worker)
    place.ok("pause", "t")
    worker = work(place)
    await_sleeper(place)
    place.ok("resume", "t")
    await_ran(place, 20, "out")
    stop_cleanly(worker)


@test
def who_takes_and_settles_by_hand_leaves_a_rate_as_it_is(place):
    place.add_lines("t", 2)
    worker = place.work(flags=("--config", configure(place)))
    await_ran(place, 2, "out")
    stop_cleanly(worker)
    place.add("t", "a")
    redis = client(place)
    for verb in (("take", "t"), ("settle", "t", "TOKEN", "--done")):
        result = place.weir(*[token if word == "TOKEN" else word
                              for word in verb])
        expect(0, result.code, result.err)
        token = result.out.split(" ")[0]
        expect(b"1/h burst 3|", redis("HGET", "weir:{t}:meta", "limits"))
    place.expect_stats("t", done_total=3)


@test
def a_rate_that_is_raised_is_noticed_by_who_waits(place):
    set_topic(place, "rate=1/h")
    place.add_lines("t", 9)
    worker = work(place)
    await_ran(place, 1, "out")
    set_topic(place, "rate=1000/s")
    await_ran(place, 9, "out")
    stop_cleanly(worker)


@test
def retries_use_tokens_like_other_starts(place):
    set_topic(place, "rate=1/h burst 3", "retry=1ms ...")
    place.add("t", "a")
    worker = work(place, fail=100)
    await_ran(place, 3, "out")
    limited(place, "rate")
    stop_cleanly(worker)
    place.expect_stats("t", retried_total=3, ready=1)


@test
def jobs_that_come_one_by_one_wait_for_their_tokens(place):
    set_topic(place, "rate=1/h burst 3")
    worker = work(place)
    for number in range(6):
        place.add("t", str(number))
        if number < 3:
            await_ran(place, number + 1, "out")
    limited(place, "rate")
    expect(3, ran(place, "out"), "jobs that ran")
    stop_cleanly(worker)


@test
def who_waits_for_tokens_does_not_ask_all_the_time(place):
    set_topic(place, "rate=50/s burst 2")
    place.add_lines("t", 100)
    redis = client(place)
    redis("CONFIG", "RESETSTAT")
    names = ["out%d" % i for i in range(4)]
    workers = [work(place, name) for name in names]
    await_ran(place, 100, *names)
    calls = redis.script_calls()
    print("%d calls of scripts for 100 jobs of 4 workers" % calls)
    expect_true(calls < 500, "%d calls" % calls)
    for worker in workers:
        stop_cleanly(worker)


@test
def no_more_jobs_run_than_may(place):
    gate = hold(place)
    set_topic(place, "parallel=2")
    place.add_lines("t", 5)
    names = ["out%d" % i for i in range(4)]
    one = ("--concurrency", "1", "--prefetch", "0")  # who waits holds no other
    workers = [work(place, name, one, gate=place.path("gate"))
               for name in names]
    for count in range(2, 6):
        await_ran(place, count, *names)
        place.expect_stats("t", running=2, ready=5 - count)
        os.write(gate, b"x")
    os.write(gate, b"x")
    eventually(lambda: place.stats("t")["done_total"] == 5, "all are done")
    for worker in workers:
        stop_cleanly(worker)
    os.close(gate)


@test
def who_waits_goes_on_when_a_worker_that_stops_ends_its_job(place):
    gate = hold(place)
    set_topic(place, "parallel=1")
    place.add_lines("t", 2)
    one = work(place, "one", gate=place.path("gate"))
    await_ran(place, 1, "one")
    two = work(place, "two")
    limited(place, "parallel")
    await_sleeper(place)
    terminate(one)
    os.write(gate, b"x")
    await_ran(place, 1, "two")
    expect(0, one.wait())
    stop_cleanly(two)
    os.close(gate)


@test
def who_waits_goes_on_when_what_runs_is_deleted(place):
    gate = hold(place)
    set_topic(place, "parallel=1")
    place.add_lines("t", 2)
    one = work(place, "one", gate=place.path("gate"))
    await_ran(place, 1, "one")
    two = work(place, "two")
    limited(place, "parallel")
    await_sleeper(place)
    place.ok("delete", "t", place.lines("one")[0]["id"])
    await_ran(place, 1, "two")
    os.write(gate, b"x")
    for worker in (one, two):
        stop_cleanly(worker)
    os.close(gate)


@test
def the_place_of_a_killed_worker_is_free_when_its_lease_is_over(place):
    gate = hold(place)
    set_topic(place, "parallel=1")
    place.add_lines("t", 3)
    one = work(place, "one", gate=place.path("gate"))
    await_ran(place, 1, "one")
    two = work(place, "two")
    limited(place, "parallel")
    os.kill(one.pid, signal.SIGSTOP)
    expect(0, ran(place, "two"), "jobs that ran")
    kill(one)
    expect(0, ran(place, "two"), "jobs that ran")
    redis = client(place)
    (token,) = redis("ZRANGE", "weir:{t}:lease", 0, -1)
    redis("ZADD", "weir:{t}:lease", "XX", 1, token)
    await_ran(place, 3, "two")
    stop_cleanly(two)
    os.close(gate)


@test
def a_timeout_makes_room(place):
    gate = hold(place)
    set_topic(place, "parallel=1", "timeout=100ms", "retry=1h")
    place.add_lines("t", 2)
    one = work(place, "one", gate=place.path("gate"))
    await_ran(place, 1, "one")
    two = work(place, "two")
    await_ran(place, 1, "two")
    os.write(gate, b"x")
    for worker in (one, two):
        stop_cleanly(worker)
    os.close(gate)


@test
def a_topic_that_is_paused_and_limited_runs_nothing(place):
    set_topic(place, "rate=1/h burst 2", "parallel=5")
    place.ok("pause", "t")
    place.add_lines("t", 9)
    worker = work(place)
    await_sleeper(place)
    place.ok("resume", "t")
    await_ran(place, 2, "out")
    limited(place, "rate")
    place.ok("purge", "t", "--yes")
    place.expect_stats("t", ready=0, limited=None)
    stop_cleanly(worker)


@test
def a_topic_whose_worker_waits_for_a_token_is_not_deleted(place):
    set_topic(place, "rate=1/h")
    place.add_lines("t", 3)
    worker = work(place)
    await_ran(place, 1, "out")
    limited(place, "rate")
    result = place.weir("topic", "delete", "t", "--yes")
    expect(1, result.code, result.err)
    expect_in("serves it", result.err)
    stop_cleanly(worker)


@test
def a_topic_that_is_made_anew_has_no_limits(place):
    set_topic(place, "rate=1/h burst 2", "parallel=1")
    place.add_lines("t", 2)
    place.drain(place.handler("trace", file="out"))
    place.ok("topic", "delete", "t", "--yes")
    place.add_lines("t", 9)
    place.drain(place.handler("trace", file="out"))
    expect(11, ran(place, "out"), "jobs that ran")


@test
def what_is_no_rate_is_refused_with_what_to_write(place):
    for value in ("100", "100/", "0/s", "100/y", "100/s burst", "100/s burst 0",
                  "100/s burst 5 x", "1/0s", "-1/s", "1000001/s", "100/sm"):
        place.weir("topic", "set", "t", "rate=" + value).expect_complaint(
            2, "rate", "100/s burst 20")
    place.weir("topic", "set", "t", "parallel=0").expect_complaint(
        2, "parallel", "1 to 1000000", "none")
    set_topic(place, "rate=6/10s burst 3", "parallel=none")
    set_topic(place, "kind=list", "rate=", "parallel=")
    result = place.weir("topic", "set", "t", "rate=1/s")
    expect(2, result.code)
    expect_in("delay", result.err)


run_together(3)
