# SPDX-License-Identifier: MIT
"""Keys take turns and are bounded, and priorities go first, over all workers of
a topic and whatever becomes of a worker."""

import os
import time

from e2e import (eventually, expect, expect_true, run_together,
                 stop_cleanly, test)
from lanes import (add_jobs, await_ran, await_sleepers, await_stats, client,
                   drain, execute, expect_in_order, hold_runs, keyed,
                   kill_workers_at_work, ledger, let_run, most_at_once, of_key,
                   ran, set_topic, start_held, trace)
from redis_server import Clocked

BIG = int(os.environ.get("WEIR_KEY_JOBS", "10000"))


# --- keys in turn -----------------------------------------------------------


@test
def many_jobs_of_one_key_hold_no_other_key_up(place):
    add_jobs(place, keyed("big", 5000))
    add_jobs(place, [job for i in range(200) for job in keyed("k%d" % i, 1)])
    ids = drain(place)
    expect(5200, len(set(ids)))
    last = max(at for at, job_id in enumerate(ids) if job_id[0] == "k")
    expect_true(last < 500, "the last other key was number %d" % last)


@test
def others_start_at_once_beside_a_key_with_many_jobs(place):
    add_jobs(place, ({"key": "big"} for _ in range(BIG)))
    worker = trace(place)
    eventually(lambda: len(ran(place)) > 100, "it is at work")
    add_jobs(place, [job for i in range(999) for job in keyed("k%d" % i, 1)])
    before = len(ran(place))

    def others():
        return [at for at, job_id in enumerate(ran(place)) if job_id[0] == "k"]

    eventually(lambda: len(others()) == 999, "all others ran")
    expect_true(others()[-1] < before + 5000, "the last was %d after they were "
                "there" % (others()[-1] - before))
    worker.kill()


@test
def keys_that_come_while_one_is_worked_off_have_their_turn(place):
    add_jobs(place, keyed("big", 3000))
    worker = trace(place, ms=1, flags=("--concurrency", "1"))
    eventually(lambda: len(ran(place)) > 50, "it is at work")
    add_jobs(place, [job for i in range(50) for job in keyed("k%d" % i, 2)])
    before = len(ran(place))
    await_ran(place, 3100)
    stop_cleanly(worker)
    at = [i for i, job_id in enumerate(ran(place)) if job_id[0] == "k"]
    expect(100, len(at))
    expect_true(at[-1] < before + 1000, "the last was %d after %d were there"
                % (at[-1] - before, before))


@test
def a_key_that_was_served_goes_behind_all_that_wait(place):
    for key in "abc":
        add_jobs(place, keyed(key, 5))
    served = {"a": 0, "b": 0, "c": 0}
    for job_id in drain(place):
        served[job_id[0]] += 1
        expect_true(max(served.values()) - min(served.values()) <= 2,
                    "%s are served in turn" % ran(place))


# --- key_parallel -----------------------------------------------------------

@test
def a_key_runs_one_at_a_time_and_in_order_though_workers_are_killed(place):
    set_topic(place, "key_parallel=1", "max_crashes=100", "retry=1ms ...")
    keys = ["a", "b", "c", "d"]
    add_jobs(place, [job for i in range(30) for key in keys
                     for job in keyed(key, 1, i, delay="%dms" % i)])
    killed = kill_workers_at_work(place, 5, 120)
    expect({key: 29 for key in keys}, expect_in_order(ledger(place), killed))
    expect(set(), set(client(place)("KEYS", "*:on:*")), "keys that run")


@test
def so_many_of_a_key_run_as_may_and_other_keys_beside_them(place):
    set_topic(place, "key_parallel=2")
    add_jobs(place, keyed("a", 40) + keyed("b", 40))
    hold_runs(place)
    workers = [execute(place, "w%d" % i, 3) for i in range(3)]
    let_run(place, 4)
    await_stats(place, done_total=80)
    for worker in workers:
        stop_cleanly(worker)
    expect({"a": 2, "b": 2}, most_at_once(ledger(place)))


@test
def a_key_that_is_full_holds_neither_others_nor_plain_jobs_up(place):
    set_topic(place, "key_parallel=1")
    add_jobs(place, keyed("a", 3))
    gate, one = start_held(place)
    add_jobs(place, keyed("b", 1) + [{"id": "plain-0"}, {
        "id": "first-0", "priority": "urgent"}])
    two = trace(place)
    await_ran(place, 3)
    await_sleepers(place)
    place.expect_stats("t", running=1, ready=2)
    os.write(gate, b"xxx")
    await_stats(place, done_total=6)
    for worker in (one, two):
        stop_cleanly(worker)
    os.close(gate)


@test
def jobs_of_a_key_count_together_whatever_their_priority(place):
    set_topic(place, "key_parallel=1")
    add_jobs(place, keyed("a", 1, priority="low"))
    gate, one = start_held(place)
    add_jobs(place, keyed("a", 1, 1, priority="urgent") + keyed("a", 1, 2))
    two = trace(place, "held")
    await_sleepers(place)
    expect(["a-0"], ran(place, "held"))
    os.write(gate, b"xxx")
    await_stats(place, done_total=3)
    expect(["a-0", "a-1", "a-2"], ran(place, "held"))
    for worker in (one, two):
        stop_cleanly(worker)
    os.close(gate)


@test
def who_waits_for_a_key_goes_on_when_what_runs_is_deleted(place):
    set_topic(place, "key_parallel=1")
    add_jobs(place, keyed("a", 2))
    gate, one = start_held(place)
    two = trace(place)
    await_sleepers(place)
    place.ok("delete", "t", "a-0")
    await_ran(place, 1)
    os.write(gate, b"x")
    for worker in (one, two):
        stop_cleanly(worker)
    os.close(gate)


@test
def a_bound_of_keys_that_is_set_holds_for_workers_that_run(place):
    add_jobs(place, keyed("a", 1))
    gate, one = start_held(place, ("--prefetch", "0"))
    set_topic(place, "key_parallel=1")
    add_jobs(place, keyed("a", 6, 1) + keyed("b", 6))
    workers = [execute(place, "w%d" % i) for i in range(2)]
    await_stats(place, done_total=12)
    os.write(gate, b"x")
    await_stats(place, done_total=13)
    for worker in (one, *workers):
        stop_cleanly(worker)
    expect({"a": 1, "b": 1}, most_at_once(ledger(place)))
    os.close(gate)


# --- key_rate ---------------------------------------------------------------


@test
def a_rate_of_keys_bounds_each_key_over_all_workers(place):
    set_topic(place, "key_rate=1/h burst 3")
    add_jobs(place, keyed("a", 10) + keyed("b", 2) + [{"id": "plain-0"},
                                                      {"id": "plain-1"}])
    names = ["out%d" % i for i in range(3)]
    workers = [trace(place, name) for name in names]
    await_ran(place, 7, *names)
    await_sleepers(place, 3)
    ids = ran(place, *names)
    expect([3, 2, 2], [len(of_key(ids, key)) for key in ("a", "b", "plain")])
    add_jobs(place, keyed("b", 3, 2))
    await_ran(place, 8, *names)
    set_topic(place, "key_rate=none")
    await_ran(place, 17, *names)
    for worker in workers:
        stop_cleanly(worker)


@test
def tokens_of_a_key_come_one_by_one(place):
    set_topic(place, "key_rate=10/s burst 1")
    began = time.time()
    add_jobs(place, keyed("a", 11))
    worker = trace(place)
    await_ran(place, 11)
    expect_true(time.time() - began > 0.99, "they came too early")
    stop_cleanly(worker)


@test
def who_waits_for_the_token_of_a_key_sleeps_until_it_comes(place):
    set_topic(place, "key_rate=50/s burst 2")
    add_jobs(place, keyed("a", 100))
    redis = client(place)
    redis("CONFIG", "RESETSTAT")
    names = ["out%d" % i for i in range(4)]
    workers = [trace(place, name) for name in names]
    await_ran(place, 100, *names)
    calls = redis.script_calls()
    print("%d calls of scripts for 100 jobs of 4 workers" % calls)
    expect_true(calls < 700, "%d calls" % calls)
    for worker in workers:
        stop_cleanly(worker)


# --- priorities -------------------------------------------------------------

AHEAD = {"urgent": 2, "high": 1, "normal": 0, "low": -1}


def mixed_priorities(count, first=0):
    return [{"id": "%s-%d" % (level, i), "priority": level}
            for i in range(first, first + count) for level in reversed(AHEAD)]


@test
def of_what_is_ready_the_higher_priority_goes_first(place):
    add_jobs(place, mixed_priorities(10) + [{"id": "normal-p"}])
    add_jobs(place, keyed("low", 3, 20, priority="low") +
             keyed("urgent", 3, 20, priority="urgent"))
    levels = [job_id.split("-")[0] for job_id in drain(place)]
    expect(["urgent"] * 13 + ["high"] * 10 + ["normal"] * 11 + ["low"] * 13,
           levels)


@test
def what_waits_for_long_goes_before_higher_priorities(place):
    server = Clocked(place)
    set_topic(place, "ageing=1s")
    place.ok("pause", "t")
    for i in range(6):
        add_jobs(place, mixed_priorities(2, 2 * i))
        server.advance(700)
    dues = {job["id"]: job["due_ms"] for job in place.ok("list", "t")}
    expect(48, len(dues))
    place.ok("resume", "t")
    turns = [dues[job_id] - 1000 * AHEAD[job_id.split("-")[0]]
             for job_id in drain(place)]
    expect(sorted(turns), turns)
    ids = ran(place)
    expect_true(ids.index("low-0") < ids.index("urgent-11"), "low ones starve")


def add_urgent(place, first, count):
    add_jobs(place, [{"id": "u%d" % i, "priority": "urgent"}
                     for i in range(first, first + count)])
    return first + count


@test
def a_stream_of_urgent_jobs_does_not_starve_a_low_one(place):
    set_topic(place, "ageing=1s")
    worker = trace(place, ms=5, flags=("--prefetch", "0"))
    count = low = 0
    while len(ran(place)) == count + low:  # or urgent ones still waited
        count, low = add_urgent(place, count, 300), low + 1
        place.add("t", "slow%d" % low, "--priority", "low")
        while "slow%d" % low not in ran(place):
            expect_true(count < 100000, "the low one waits for ever")
            if count + low - len(ran(place)) < 200:
                count = add_urgent(place, count, 200)
            time.sleep(0.01)
    place.ok("purge", "t", "--yes")
    stop_cleanly(worker)


run_together(3)
