# SPDX-License-Identifier: MIT
"""The history of a job: the attempts that did not finish it."""

import json
import os
import time

from e2e import (TEST_PLUGINS, eventually, expect, expect_in, expect_true, kill,
                 test)
from resp import Client

MOST = 8
FAILING = "flaky?fail=99"
HOSTILE = "\x1b[31m<b>\u202e\n\x00"


def kept(job):
    """Those of a job as it was shown; what is true of all is checked."""
    got = job.get("attempts", [])
    times = [one["ended_ms"] for one in got]
    outcomes = [one["outcome"] for one in got]
    expect_true(len(got) <= MOST, "%d are kept" % len(got))
    expect(sorted(times), times)
    expect_true(all(abs(time.time() * 1000 - ms) < 600000 for ms in times),
                "they ended now: %r" % times)
    expect_true(outcomes.count("crash") <= job["crashes"] and
                outcomes.count("timeout") <= job["timeouts"],
                "they fit the counters: %r" % job)
    return got


def attempts(place, job_id, topic="t"):
    return kept(place.ok("show", topic, job_id))


def outcomes(place, job_id, topic="t"):
    return [one["outcome"] for one in attempts(place, job_id, topic)]


def crash(place):
    """A worker that its first job ends."""
    plugin = os.path.join(TEST_PLUGINS, "crash_one.so")
    result = place.weir("run", "--handle", "t=" + plugin, "--until-empty")
    expect_true(result.code < 0, "it crashed: %d" % result.code)


def run_until(place, handler, condition, what):
    worker = place.work(handler)
    try:
        return eventually(condition, what)
    finally:
        kill(worker)


@test
def a_dead_job_tells_them_with_time_reason_and_worker(place):
    place.add("t", "1", "--retry", "10ms 10ms")
    place.drain("t=" + FAILING)
    job = place.ok("show", "t", "1")
    expect([("retry", "flaky: attempt %d of 99 that fail" % i)
            for i in (1, 2, 3)],
           [(one["outcome"], one["error"]) for one in kept(job)])
    worker, = {one["worker"] for one in job["attempts"]}
    expect_true(job["added_ms"] <= job["attempts"][0]["ended_ms"] and
                job["attempts"][2]["ended_ms"] <= job["due_ms"],
                "it was added, ran, and died: %r" % job)
    expect([job], place.ok("dead", "list", "t"))
    shown = place.weir("show", "t", "1").out
    expect_in("\nattempts  20", shown)
    expect_in("Z  retry    %s  flaky: attempt 3 of 99 that fail\n" % worker,
              shown)


@test
def the_last_eight_are_kept(place):
    place.add("t", "1", "--retry", " ".join(["10ms"] * 12))
    place.drain("t=" + FAILING)
    expect(["flaky: attempt %d of 99 that fail" % i for i in range(6, 14)],
           [one["error"] for one in attempts(place, "1")])


@test
def a_job_that_did_not_fail_has_none_and_a_snooze_is_none(place):
    place.add("t", "1")
    expect([], attempts(place, "1"))
    run_until(place, "t=flaky?verdict=snooze&delay=1h",
              lambda: place.ok("show", "t", "1")["snoozes"] == 1, "it snoozes")
    expect([], attempts(place, "1"))


@test
def a_filter_asks_for_the_last_one(place):
    place.add_lines("t", 3, '{"id":"%d","retry":"none"}')
    place.drain("t=flaky?verdict=fail")
    got = place.ok("dead", "list", "t", "--where",
                   '.attempts[-1].outcome == "fail" and .id != "1"')
    expect(["0", "2"], sorted(job["id"] for job in got))


@test
def a_timeout_is_one_on_the_loop_and_off_it(place):
    for topic, handler in (
            ("t", place.handler(TEST_PLUGINS + "/trace.so", file="trace",
                                ms="3000")),
            ("u", place.handler("exec", "u", command="sleep%2060"))):
        place.ok("topic", "set", topic, "timeout=100ms", "retry=none")
        place.add(topic, "1")
        place.drain(handler)
        one, = attempts(place, "1", topic)
        expect(("timeout", "timeout"), (one["outcome"], one["error"]))
        expect_true(one["worker"], "%s tells whose it was" % topic)


@test
def each_crash_has_its_own_time_and_worker(place):
    place.ok("topic", "set", "t", "lease=1s", "max_crashes=3")
    place.add("t", "1", "--retry", "none")
    crash(place)
    crash(place)
    place.drain("t=" + FAILING)
    job = place.ok("show", "t", "1")
    expect((2, ["crash", "crash", "retry"]),
           (job["crashes"], outcomes(place, "1")))
    first, second, last = kept(job)
    expect(3, len({first["worker"], second["worker"], last["worker"]}))
    expect_true(first["ended_ms"] < second["ended_ms"] < last["ended_ms"],
                "each has its time")


@test
def a_job_that_died_of_crashes_has_them_all(place):
    place.ok("topic", "set", "t", "lease=1s", "max_crashes=2")
    place.add("t", "1")
    for _ in range(3):  # the first one blames no job
        crash(place)
    place.drain("t=" + FAILING)
    job = place.ok("show", "t", "1")
    expect(("dead", "crashed"), (job["state"], job["reason"]))
    workers = [one["worker"] for one in kept(job)]
    expect((3, 3), (len(workers), len(set(workers) - {None})))


@test
def a_snooze_tells_the_crashes_before_it(place):
    place.ok("topic", "set", "t", "lease=1s", "max_crashes=3")
    place.add("t", "1")
    crash(place)
    run_until(place, "t=flaky?verdict=snooze&delay=1h",
              lambda: place.ok("show", "t", "1")["snoozes"] == 1, "it snoozes")
    expect(["crash"], outcomes(place, "1"))


@test
def a_timeout_on_the_loop_tells_the_crashes_before_it(place):
    place.ok("topic", "set", "t", "lease=1s", "max_crashes=3",
             "timeout=100ms", "retry=none")
    place.add("t", "1")
    crash(place)
    place.drain(place.handler(TEST_PLUGINS + "/trace.so", file="trace",
                              ms="3000"))
    expect(["crash", "timeout"], outcomes(place, "1"))


@test
def a_job_that_died_of_crashes_has_them_alone(place):
    place.ok("topic", "set", "t", "lease=1s", "max_crashes=1")
    place.add("t", "1")
    crash(place)
    crash(place)
    place.drain("t=flaky")
    job = place.ok("show", "t", "1")
    expect(("crashed", ["crash", "crash"]),
           (job["reason"], [one["outcome"] for one in kept(job)]))


@test
def a_job_that_is_requeued_or_moves_keeps_them(place):
    place.ok("topic", "set", "t", "retry=none")
    place.add("t", "1")
    place.drain("t=flaky?verdict=fail")
    before = attempts(place, "1")
    place.ok("dead", "requeue", "t", "1")
    expect(before, attempts(place, "1"))
    place.ok("topic", "set", "t", "on_dead=d")
    place.drain("t=" + FAILING)
    expect(["fail", "retry"], outcomes(place, "1", "d"))


@test
def an_event_and_a_job_of_a_fifo_topic_have_them(place):
    place.ok("topic", "set", "bounded", "kind=bounded", "retry=1h",
             "linger=0ms")
    place.ok("topic", "set", "sync", "kind=sync", "delay=100ms")
    place.add("bounded", "1", "--group", "g")
    place.add("sync", "1")
    for topic in ("bounded", "sync"):
        def retried():
            return next((one for one in place.ok("list", topic)
                         if one["attempt"] > 0), None)
        job = run_until(place, "%s=%s" % (topic, FAILING), retried, "a retry")
        runs = range(max(1, job["attempt"] - MOST + 1), job["attempt"] + 1)
        expect([("retry", "flaky: attempt %d of 99 that fail" % i)
                for i in runs],
               [(one["outcome"], one["error"]) for one in kept(job)])


@test
def what_leaves_a_list_takes_its_last_one_along(place):
    place.ok("topic", "set", "t", "kind=list", "on_retry=later",
             "on_dead=graves")
    redis = Client(os.path.join(place.data, "redis.sock"))
    for topic, outcome in (("later", "retry"), ("graves", "fail")):
        place.ok("topic", "set", topic, "kind=delay")
        redis("RPUSH", "t", "1")
        job, = run_until(place, "t=flaky?verdict=" + outcome,
                         lambda: place.ok("list", topic), "in " + topic)
        expect([outcome], [one["outcome"] for one in kept(job)])


@test
def they_travel_and_hostile_ones_are_escaped(place):
    past = {"attempts": [{"at": "2026-01-02T03:04:05.678Z", "outcome": "fail",
                          "error": HOSTILE, "worker": "w"},
                         {"at": "2026-01-02T03:04:06Z", "outcome": "crash"}]}
    path = place.write("jobs", json.dumps({"id": "1", "past": past}))
    place.ok("import", "t", path)
    job = place.ok("show", "t", "1")
    expect([{"ended_ms": 1767323045678, "outcome": "fail", "error": HOSTILE,
             "worker": "w"},
            {"ended_ms": 1767323046000, "outcome": "crash", "error": None,
             "worker": None}], job["attempts"])
    shown = place.weir("show", "t", "1").out
    expect_in("Z  fail     w  \\x1b[31m<b>", shown)
    expect_in("\n          2026-01-02T03:04:06.000Z  crash\n", shown)
    line = json.loads(place.weir("export", "t").out)
    expect("2026-01-02T03:04:06.000Z", line["past"]["attempts"][1]["at"])
    expect(HOSTILE, line["past"]["attempts"][0]["error"])


@test
def what_is_no_attempt_is_refused(place):
    one = '{"at":"2026-01-02T03:04:05Z","outcome":"fail"}'
    for value, words in (
            ("1", "an array of up to 8"),
            ("[1]", "they are objects"),
            ("[{}]", "an outcome at least"),
            ('[{"outcome":"lost"}]', "retry, timeout, fail or crash"),
            ('[{"outcome":"fail","at":"soon"}]', "soon"),
            ('[{"outcome":"fail","error":1}]', "in double quotes"),
            ('[{"outcome":"fail","why":"x"}]', "at, outcome, error and worker"),
            ("[%s]" % ",".join([one] * 9), "an array of up to 8")):
        path = place.write("jobs", '{"past":{"attempts":%s}}' % value)
        result = place.weir("import", "t", path)
        expect([1, "added 0, existing 0, refused 1\n"],
               [result.code, result.out], value)
        expect_in("past: attempts", result.err)
        expect_in(words, result.err)
