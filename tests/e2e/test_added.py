# SPDX-License-Identifier: MIT
"""When a job was added: told wherever it is, whatever became of it since."""

import json
import os
import time
from urllib.parse import quote

from e2e import expect, expect_in, expect_true, test
from resp import Client

SCRIPT = """#!/bin/sh
tee -a "%s" | grep -q '"attempt":1,' && exit %d
exit 0
"""


def make(place, *options):
    place.ok("topic", "set", "t", *options)


def run_first(place, status, *flags):
    """Let the first run of each job end so, and all others be done."""
    path = place.write("script", SCRIPT % (place.path("jobs"), status))
    os.chmod(path, 0o755)
    place.drain(place.handler("exec", command=quote(path)), flags=flags)


def handled(place):
    """What handlers saw, in order: id, attempt, time of the add."""
    with open(place.path("jobs"), encoding="utf-8") as file:
        jobs = [json.loads(line) for line in file]
    return [(job["id"], job["attempt"], job["added_ms"]) for job in jobs]


def added(place, job_id):
    job = place.ok("show", "t", job_id)
    listed = {one["id"]: one for one in place.ok("list", "t")}
    expect(job, listed[job_id])
    return job["added_ms"]


def is_now(time_ms):
    return abs(time.time() * 1000 - time_ms) < 60000


def age_by(place, job_id, *args):
    """Add a job; the time at which that was."""
    place.add("t", job_id, *args)
    time_ms = added(place, job_id)
    expect_true(is_now(time_ms), "it was added now: %r" % time_ms)
    time.sleep(0.02)  # so that what is added later has another time
    return time_ms


@test
def a_job_keeps_the_time_when_it_is_rescheduled_retried_dies_and_is_requeued(
        place):
    first = age_by(place, "42", "--retry", "10ms", "--delay", "1h")
    place.ok("reschedule", "t", "42", "--delay", "0ms")
    expect(first, added(place, "42"))
    run_first(place, 75)
    expect([("42", 1, first), ("42", 2, first)], handled(place))
    first = age_by(place, "43", "--retry", "none")
    run_first(place, 75)
    expect(first, added(place, "43"))
    expect(first, place.ok("dead", "list", "t")[0]["added_ms"])
    time.sleep(0.02)
    place.ok("dead", "requeue", "t", "43")
    expect(first, added(place, "43"))
    run_first(place, 0)
    expect(("43", 1, first), handled(place)[-1])


@test
def jobs_of_one_pack_that_are_retried_apart_keep_the_time(place):
    place.add_lines("t", 20, '{"id":"%d","retry":"10ms 20ms"}')
    before = {job["id"]: job["added_ms"] for job in place.ok("list", "t")}
    run_first(place, 75)
    got = handled(place)
    expect(40, len(got))
    expect({(job_id, time_ms) for job_id, time_ms in before.items()},
           {(job_id, time_ms) for job_id, _, time_ms in got})


@test
def a_job_without_an_id_is_as_old_as_its_id_says(place):
    job_id = place.ok("add", "t", "--retry", "10ms")["id"]
    first = added(place, job_id)
    run_first(place, 75)
    expect([(job_id, 1, first), (job_id, 2, first)], handled(place))


@test
def a_dead_job_is_new_in_the_topic_that_it_moves_to(place):
    make(place, "on_dead=u")
    first = age_by(place, "42", "--retry", "none")
    run_first(place, 75)
    second = place.ok("show", "u", "42")["added_ms"]
    expect_true(first < second and is_now(second), "%d, %d" % (first, second))


@test
def a_job_of_a_fifo_topic_with_a_delay_keeps_the_time(place):
    make(place, "kind=sync", "delay=300ms")
    place.add("t", "42", "--url", "http://h/")
    place.add("t", "43")
    jobs = {job["id"]: job for job in place.ok("list", "t")}
    for job in jobs.values():
        expect(300, job["due_ms"] - job["added_ms"])
    expect("http://h/", jobs["42"]["url"])
    run_first(place, 75)
    times = {job["id"]: job["added_ms"] for job in jobs.values()}
    expect([("42", 1, times["42"]), ("42", 2, times["42"]),
            ("43", 1, times["43"]), ("43", 2, times["43"])],
           sorted(handled(place)))


@test
def a_job_of_a_fifo_topic_without_a_delay_is_as_old_as_it_is_due(place):
    make(place, "kind=concurrent", "delay=0ms")
    place.add("t", "42")
    job, = place.ok("list", "t")
    expect(job["due_ms"], job["added_ms"])
    run_first(place, 75)
    expect([("42", 1, job["added_ms"]), ("42", 2, job["added_ms"])],
           handled(place))


@test
def an_event_keeps_the_time(place):
    make(place, "kind=bounded", "retry=10ms", "linger=0ms")
    place.add("t", "42", "--group", "g")
    job, = place.ok("list", "t")
    expect_true(is_now(job["added_ms"]), "it was added now: %r" % job)
    run_first(place, 75)
    expect([("42", 1, job["added_ms"]), ("42", 2, job["added_ms"])],
           handled(place))


@test
def an_entry_of_a_stream_was_added_when_its_id_says(place):
    make(place, "kind=stream", "retry=10ms")
    redis = Client(os.path.join(place.data, "redis.sock"))
    redis("XADD", "t", "1700000000123-0", "n", "1")
    run_first(place, 75)
    expect([("1700000000123-0", 1, 1700000000123),
            ("1700000000123-0", 2, 1700000000123)], handled(place))


@test
def an_entry_of_a_list_was_added_nobody_knows_when(place):
    make(place, "kind=list", "retry=none")
    redis = Client(os.path.join(place.data, "redis.sock"))
    redis("RPUSH", "t", "1")
    run_first(place, 75)
    expect([None], [time_ms for _, _, time_ms in handled(place)])
    job, = place.ok("dead", "list", "t")
    expect(None, job["added_ms"])


@test
def lists_for_people_tell_it(place):
    place.add("t", "42", "--retry", "none")
    shown = place.weir("show", "t", "42").out
    expect_in("added     20", shown)
    expect_in("  added 20", place.weir("list", "t").out)
    run_first(place, 75)
    expect_in("  added 20", place.weir("dead", "list", "t").out)
