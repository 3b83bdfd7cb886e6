# SPDX-License-Identifier: MIT
"""Jobs that share a pack though each has a due time of its own: whatever
happens to the pack, each runs at its time, once."""

import os
import time

from e2e import (await_line, end_cleanly, eventually, expect, expect_true,
                 kill, stop_cleanly, terminate, test)
from resp import Client

LEASE_US = 1000000  # of workers that are killed
COUNT, STEP_MS = 12, 40  # in one pack; from one due time to the next


def client(place):
    return Client(os.path.join(place.data, "redis.sock"))


def fill(redis, is_full=1):
    redis("CONFIG", "SET", "maxmemory", is_full)


def names():
    return ["%d" % i for i in range(COUNT)]


def add_pack(place, more="", after_ms=0):
    """Their due times by id. The times are not in order when they are added."""
    lines = ['{"id":"%d","delay":"%dms"%s}' % (i, after_ms + i * STEP_MS, more)
             for i in range(COUNT)]
    place.ok("add", "t", "--jsonl", "-",
             stdin="\n".join(lines[1::2] + lines[::2]))
    expect(1, client(place)("HLEN", "weir:{t}:due"), "packs of such jobs")
    return dues(place)


def dues(place):
    return {job["id"]: job["due_ms"] for job in place.ok("list", "t")}


def trace(place, *flags, name="ran", **options):
    return place.work(place.handler("trace", file=name, **options), flags=flags)


def lines_of(place, name="ran"):
    return {line["id"]: line for line in place.lines(name)}


def await_done(place, count=COUNT):
    eventually(lambda: place.stats("t")["done_total"] == count, "all are done")


def expect_times(place, wanted, name="ran"):
    """None ran early, and its lateness counts from its own due time."""
    lines = lines_of(place, name)
    expect(sorted(wanted), sorted(lines))
    expect(len(wanted), len(place.lines(name)), "runs")
    for job_id, due_ms in wanted.items():
        line = lines[job_id]
        expect_true(line["at_ms"] >= due_ms, "%s is early" % job_id)
        told_ms = line["at_ms"] - line["late_us"] / 1000
        expect_true(abs(told_ms - due_ms) < 1000,
                    "%s was due at %d: %r" % (job_id, due_ms, line))


def expect_nothing_left(place):
    """Of the pack and of what claims held."""
    redis = client(place)
    for key in ("wait", "run", "lease", "due", "held"):
        expect(0, redis("EXISTS", "weir:{t}:" + key), key)


def hold(place, count=COUNT):
    """A worker that has claimed so many and never ends the first one."""
    worker = trace(place, "--lease", "1s", "--concurrency", "1", "--prefetch",
                   str(count), name="held", verdict="hold")
    eventually(lambda: place.stats("t")["running"] >= count, "they are claimed")
    return worker


def sleep_over(wanted):
    time.sleep(max(max(wanted.values()) / 1000 - time.time(), 0) + 0.05)


@test
def each_job_of_a_pack_runs_at_its_time(place):
    wanted = add_pack(place, after_ms=300)
    worker = trace(place)
    await_done(place)
    stop_cleanly(worker)
    expect_times(place, wanted)
    expect([job_id for job_id in names()],
           [line["id"] for line in place.lines("ran")])
    expect_nothing_left(place)


@test
def each_job_keeps_its_due_time_when_a_worker_is_killed(place):
    wanted = add_pack(place)
    sleep_over(wanted)
    kill(hold(place))
    worker = trace(place)
    await_done(place)
    stop_cleanly(worker)
    expect_times(place, wanted)
    for line in place.lines("ran"):
        expect_true(line["late_us"] >= LEASE_US, "late by the lease: %r" % line)
    expect_nothing_left(place)


@test
def a_ttl_counts_from_the_own_due_time_when_a_worker_is_killed(place):
    wanted = add_pack(place, ',"ttl":"4s"')
    time.sleep(0.2)
    victim = trace(place, "--lease", "5s", "--concurrency", "1", "--prefetch",
                   str(COUNT), name="held", verdict="hold")
    eventually(lambda: place.lines("held"), "one runs")
    kill(victim)
    place.drain(place.echo())
    started = len(place.lines("out"))
    place.expect_stats("t", done_total=started,
                       expired_total=len(wanted) - started)
    for line in place.lines("held"):
        expect_true(line["id"] not in lines_of(place, "out"), "it expired")
    expect_nothing_left(place)


def words_of(place, name):
    try:
        with open(place.path(name), encoding="ascii") as file:
            return file.read().split()
    except FileNotFoundError:
        return []


@test
def what_a_stopped_worker_gives_back_keeps_its_due_times(place):
    wanted = add_pack(place)
    sleep_over(wanted)
    worker = place.work(place.handler("later", file="held", until="end"),
                        flags=("--lease", "1m", "--concurrency", "1",
                               "--prefetch", str(COUNT)))
    eventually(lambda: place.stats("t")["running"] == COUNT, "all are claimed")
    eventually(lambda: words_of(place, "held")[1:], "one runs")
    terminate(worker)
    await_line(worker, "finishing what runs")
    place.write("end", "")
    end_cleanly(worker)
    first = words_of(place, "held")[1]
    left = {key: due for key, due in wanted.items() if key != first}
    expect(left, dues(place))
    worker = trace(place)
    await_done(place)
    stop_cleanly(worker)
    expect_times(place, left)
    expect_nothing_left(place)


@test
def a_pause_holds_the_jobs_of_a_pack_that_become_due(place):
    wanted = add_pack(place, after_ms=1000)
    place.ok("pause", "t")
    worker = trace(place)
    redis = client(place)
    eventually(lambda: redis("ZCARD", "weir:{t}:idle") > 0, "it serves")
    sleep_over(wanted)
    expect([], place.lines("ran"))
    place.expect_stats("t", ready=COUNT, scheduled=0)
    place.ok("resume", "t")
    await_done(place)
    stop_cleanly(worker)
    expect_times(place, wanted)
    expect_nothing_left(place)


@test
def jobs_of_a_pack_count_as_ready_one_by_one(place):
    wanted = add_pack(place, after_ms=200)
    seen = set()

    def is_over():
        stats = place.stats("t")
        expect(COUNT, stats["ready"] + stats["scheduled"])
        seen.add(stats["ready"])
        return stats["ready"] == COUNT
    eventually(is_over, "all are ready")
    expect_true(time.time() * 1000 >= max(wanted.values()), "not before")
    worker = trace(place)
    await_done(place)
    stop_cleanly(worker)
    place.expect_stats("t", ready=0, scheduled=0)


@test
def a_job_deleted_within_a_pack_leaves_the_others(place):
    wanted = add_pack(place, after_ms=200)
    for job_id in ("0", "5", "11"):
        place.ok("delete", "t", job_id)
        del wanted[job_id]
    expect(wanted, dues(place))
    worker = trace(place)
    await_done(place, len(wanted))
    stop_cleanly(worker)
    expect_times(place, wanted)
    expect_nothing_left(place)


@test
def a_job_deleted_while_its_pack_runs_leaves_the_others(place):
    wanted = add_pack(place)
    sleep_over(wanted)
    victim = hold(place)
    for job_id in ("1", "7"):
        place.ok("delete", "t", job_id)
        del wanted[job_id]
    kill(victim)
    worker = trace(place)
    await_done(place, len(wanted))
    stop_cleanly(worker)
    expect_times(place, wanted)
    expect_nothing_left(place)


@test
def a_job_rescheduled_within_a_pack_has_its_new_time(place):
    wanted = add_pack(place, after_ms=400)
    place.ok("reschedule", "t", "6", "--delay", "1ms")
    place.ok("reschedule", "t", "0", "--delay", "1200ms")
    place.ok("reschedule", "t", "11", "--delay", "1h")
    moved = dues(place)
    for job_id in ("0", "6", "11"):
        expect_true(moved[job_id] != wanted[job_id], job_id + " moved")
        wanted[job_id] = moved[job_id]
    expect(wanted, moved)
    worker = trace(place)
    await_done(place, COUNT - 1)
    stop_cleanly(worker)
    del wanted["11"]
    expect_times(place, wanted)
    place.expect_stats("t", scheduled=1)
    place.ok("delete", "t", "11")
    expect_nothing_left(place)


@test
def a_full_server_gives_out_the_jobs_of_a_pack(place):
    wanted = add_pack(place, after_ms=300)
    worker = trace(place, name="first")
    redis = client(place)
    fill(redis)
    await_done(place)
    fill(redis, 0)
    stop_cleanly(worker)
    expect_times(place, wanted, "first")
    expect_nothing_left(place)


@test
def a_full_server_takes_back_the_jobs_of_a_pack(place):
    wanted = add_pack(place)
    sleep_over(wanted)
    victim = hold(place)
    redis = client(place)
    fill(redis)
    kill(victim)
    worker = trace(place)
    await_done(place)
    fill(redis, 0)
    stop_cleanly(worker)
    expect_times(place, wanted)
    expect_nothing_left(place)


@test
def of_a_pack_beyond_max_pending_the_last_due_are_refused(place):
    place.ok("topic", "set", "t", "max_pending=5")
    lines = ['{"id":"%d","delay":"%dms"}' % (i, 300 + i * STEP_MS)
             for i in range(COUNT)]
    result = place.weir("add", "t", "--jsonl", "-", "--json",
                        stdin="\n".join(lines))
    expect((5, 0, COUNT - 5), tuple(result.json[name] for name in
                                    ("added", "existing", "refused")))
    wanted = dues(place)
    expect(names()[:5], sorted(wanted))
    worker = trace(place)
    await_done(place, 5)
    stop_cleanly(worker)
    expect_times(place, wanted)
    expect_nothing_left(place)


@test
def an_id_twice_in_a_pack_is_added_once(place):
    lines = ['{"id":"%d","delay":"%dms"}' % (i % 6, 300 + i * STEP_MS)
             for i in range(COUNT)]
    result = place.weir("add", "t", "--jsonl", "-", "--json",
                        stdin="\n".join(lines))
    expect((6, 6, 0), tuple(result.json[name] for name in
                            ("added", "existing", "refused")))
    wanted = dues(place)
    expect(names()[:6], sorted(wanted))
    worker = trace(place)
    await_done(place, 6)
    stop_cleanly(worker)
    expect_times(place, wanted)
    expect_nothing_left(place)


@test
def jobs_of_a_pack_that_die_go_where_on_dead_says(place):
    place.ok("topic", "set", "t", "retry=none", "on_dead=grave")
    add_pack(place, after_ms=200)
    worker = trace(place, fail=9, verdict="fail")
    eventually(lambda: place.stats("t")["failed_total"] == COUNT, "all died")
    eventually(lambda: place.stats("t")["relaying"] == 0, "all were told")
    stop_cleanly(worker)
    expect(sorted(names()),
           sorted(job["id"] for job in place.ok("list", "grave")))
    expect_nothing_left(place)


@test
def retries_of_a_pack_run_at_their_times(place):
    add_pack(place, ',"retry":"300ms 300ms"')
    worker = trace(place, fail=2, verdict="retry")
    await_done(place)
    stop_cleanly(worker)
    expect(3 * COUNT, len(place.lines("ran")))
    for line in place.lines("ran"):
        expect_true(line["late_us"] >= 0, "not early: %r" % line)
    place.expect_stats("t", retried_total=2 * COUNT)
    expect_nothing_left(place)


@test
def a_purge_takes_the_jobs_of_a_pack(place):
    wanted = add_pack(place)
    sleep_over(wanted)
    victim = hold(place, 3)
    place.ok("purge", "t", "--yes")
    expect_nothing_left(place)
    kill(victim)


def expect_dead_until_requeued(place):
    """Nothing tells when the jobs are due, so none runs by itself."""
    worker = trace(place)
    eventually(lambda: place.stats("t")["dead"] == COUNT, "all are dead")
    expect({"malformed"}, {job["reason"] for job in
                           place.ok("dead", "list", "t")})
    expect(0, place.stats("t")["done_total"])
    place.ok("dead", "requeue", "t", "--all")
    await_done(place)
    stop_cleanly(worker)
    expect(sorted(names()), sorted(line["id"] for line in place.lines("ran")))


@test
def due_times_that_somebody_removed_lose_no_job(place):
    add_pack(place, after_ms=300)
    client(place)("DEL", "weir:{t}:due")
    expect_dead_until_requeued(place)
    expect_nothing_left(place)


@test
def due_times_that_somebody_cut_off_lose_no_job(place):
    add_pack(place, after_ms=300)
    redis = client(place)
    name, = redis("HKEYS", "weir:{t}:due")
    redis("HSET", "weir:{t}:due", name, b"123")
    expect_dead_until_requeued(place)
    expect_nothing_left(place)


@test
def what_claims_held_may_be_removed_by_somebody(place):
    wanted = add_pack(place)
    sleep_over(wanted)
    victim = hold(place)
    client(place)("DEL", "weir:{t}:held")
    kill(victim)
    worker = trace(place)
    await_done(place)
    stop_cleanly(worker)
    expect(sorted(names()), sorted(line["id"] for line in place.lines("ran")))
    expect_nothing_left(place)


@test
def a_key_of_another_type_in_the_place_of_due_times_loses_no_job(place):
    wanted = add_pack(place, after_ms=300)
    redis = client(place)
    redis("RENAME", "weir:{t}:due", "kept")
    redis("SET", "weir:{t}:due", "text")
    worker = trace(place)
    sleep_over(wanted)
    result = place.weir("add", "t", "--jsonl", "-",
                        stdin='{"delay":"1s"}\n{"delay":"2s"}')
    expect(1, result.code)
    expect(["WRONGTYPE" in line for line in result.sentences], [True])
    expect([], place.lines("ran"))
    redis("RENAME", "kept", "weir:{t}:due")
    await_done(place)
    stop_cleanly(worker)
    expect_times(place, wanted)
    expect_nothing_left(place)
