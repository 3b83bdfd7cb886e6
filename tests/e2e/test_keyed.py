# SPDX-License-Identifier: MIT
"""Jobs with keys and priorities beside all else that may become of a job."""

import os

from e2e import (eventually, expect, expect_in, expect_true, run_together,
                 stop_cleanly, terminate, test, wait)
from lanes import (add_jobs, await_ran, await_sleepers, await_stats, client,
                   drain, drain_ready, fill, keyed, of_key, ran, set_topic,
                   start_held, trace)
from redis_server import Server, refused


@test
def a_retry_and_a_snooze_go_back_to_their_lane(place):
    for verdict in ("retry", "snooze"):
        set_topic(place, "retry=20ms ...", "key_parallel=1")
        add_jobs(place, keyed(verdict, 3) + [
            {"id": verdict + "-p", "priority": "high"}])
        place.drain(place.handler("trace", file=verdict, fail=2,
                                  verdict=verdict))
        ids = ran(place, verdict)
        expect([3] * 4, [ids.count(job_id) for job_id in sorted(set(ids))])
    place.expect_stats("t", ready=0, scheduled=0, running=0, done_total=8)
    expect(0, client(place)("HLEN", "weir:{t}:of"))


@test
def what_waits_for_its_retry_keeps_key_and_priority(place):
    set_topic(place, "retry=1h")
    place.add("t", "a", "--key", "k", "--priority", "urgent")
    worker = trace(place, fail=1)
    await_stats(place, retried_total=1, scheduled=1)
    stop_cleanly(worker)
    job = place.ok("show", "t", "a")
    expect(["k", "urgent"], [job["key"], job["priority"]])
    place.ok("reschedule", "t", "a", "--delay", "0ms")
    expect(["a", "a"], drain(place))


@test
def a_worker_that_stops_gives_jobs_back_to_their_lanes(place):
    jobs = [job for i in range(8) for job in keyed("k%d" % i, 2)]
    set_topic(place, "key_parallel=1")
    add_jobs(place, jobs)
    gate, worker = start_held(place)
    eventually(lambda: place.stats("t")["running"] > 1, "it holds some more")
    terminate(worker)
    os.write(gate, b"x" * 16)
    expect(0, wait(worker))
    place.expect_stats("t", running=0, ready=16 - len(ran(place, "held")))
    drain(place)
    expect(sorted(job["id"] for job in jobs), sorted(ran(place, "held", "out")))
    for i in range(8):
        expect(["k%d-0" % i, "k%d-1" % i],
               of_key(ran(place, "held", "out"), "k%d" % i))
    os.close(gate)


@test
def what_waits_in_a_lane_can_be_deleted_and_put_off(place):
    add_jobs(place, keyed("a", 6))
    place.ok("delete", "t", "a-0")
    place.ok("delete", "t", "a-3")
    place.ok("reschedule", "t", "a-1", "--delay", "1h")
    place.expect_stats("t", ready=3, scheduled=1)
    expect(["a-2", "a-4", "a-5"], [job_id for job_id in drain_ready(place, 3)])
    place.ok("reschedule", "t", "a-1", "--delay", "0ms")
    expect(["a-2", "a-4", "a-5", "a-1"], drain(place))


@test
def a_lane_goes_on_after_a_purge(place):
    add_jobs(place, keyed("a", 600) + keyed("b", 3, priority="low"))
    place.ok("purge", "t", "--yes")
    place.expect_stats("t", ready=0, scheduled=0)
    expect(0, client(place)("HLEN", "weir:{t}:of"))
    add_jobs(place, keyed("a", 2) + keyed("b", 2, priority="low"))
    expect(["a-0", "a-1", "b-0", "b-1"], sorted(drain(place)))


@test
def a_pause_holds_lanes_and_a_resume_lets_them_go_on(place):
    place.ok("pause", "t", "--new")
    add_jobs(place, keyed("a", 3))
    worker = trace(place)
    await_sleepers(place)
    expect([], ran(place))
    place.ok("resume", "t")
    await_ran(place, 3)
    stop_cleanly(worker)


@test
def a_dead_job_that_is_requeued_has_its_key_and_priority(place):
    set_topic(place, "retry=none", "key_rate=1/h burst 1")
    place.add("t", "a-0", "--key", "a", "--priority", "high")
    place.drain(place.handler("trace", file="dies", fail=1, verdict="fail"))
    expect(["failed", "told to fail"], place.dead("a-0"))
    place.ok("dead", "requeue", "t", "a-0")
    job = place.ok("show", "t", "a-0")
    expect(["ready", "a", "high"],
           [job["state"], job["key"], job["priority"]])
    worker = trace(place)
    await_sleepers(place)
    expect([], ran(place), "it waits for a token of its key")
    set_topic(place, "key_rate=none")
    await_ran(place, 1)
    stop_cleanly(worker)


@test
def a_dead_job_that_moves_waits_in_its_lane_there(place):
    set_topic(place, "retry=none", "on_dead=u")
    place.ok("topic", "set", "u", "key_rate=1/h burst 1")
    add_jobs(place, keyed("a", 2, priority="low"))
    place.drain(place.handler("trace", file="dies", fail=1, verdict="fail"))
    eventually(lambda: place.stats("u")["ready"] == 2, "both are there")
    expect([["a", "low"]] * 2, [[job["key"], job["priority"]]
                                for job in place.ok("list", "u")])
    worker = place.work(place.handler("trace", "u", file="out"))
    await_ran(place, 1)
    eventually(lambda: int(client(place)("ZCARD", "weir:{u}:idle")) > 0,
               "it sleeps")
    expect(1, len(ran(place)))
    stop_cleanly(worker)


@test
def jobs_with_keys_count_for_max_pending(place):
    set_topic(place, "max_pending=3")
    add_jobs(place, keyed("a", 3))
    place.weir("add", "t", "--key", "b").expect_complaint(1, "max_pending")
    place.ok("delete", "t", "a-0")
    place.add("t", "b-0", "--key", "b")
    place.expect_stats("t", ready=3, added_total=4)
    expect(["a-1", "a-2", "b-0"], sorted(drain(place)))


@test
def a_job_may_have_a_unique_key_and_a_key(place):
    how = ("--unique", "u", "--key", "k", "--priority", "low")
    place.add("t", "k-0", *how)
    expect(4, place.weir("add", "t", *how).code)
    place.add("t", "k-1", *how, "--else", "replace", "--delay", "1h")
    place.add("t", "k-2", "--unique", "u", "--key", "other", "--else",
              "debounce", "--delay", "1ms")
    eventually(lambda: place.stats("t")["ready"] == 1, "it is due")
    place.expect_stats("t", scheduled=0)
    expect("other", place.ok("show", "t", "k-2")["key"])
    expect(["k-2"], drain(place))
    place.add("t", "k-3", *how)
    expect(["k-2", "k-3"], drain(place))
    expect(0, client(place)("HLEN", "weir:{t}:of"))


@test
def an_id_exists_once_whatever_the_lane(place):
    place.add("t", "a", "--key", "k")
    for more in ((), ("--key", "other"), ("--priority", "high")):
        expect(4, place.weir("add", "t", "--id", "a", *more).code)
    expect(["a"], drain(place))


@test
def a_topic_that_is_deleted_leaves_nothing_of_its_lanes(place):
    set_topic(place, "key_rate=1/h burst 1", "key_parallel=1")
    add_jobs(place, keyed("a", 3) + keyed("b", 1, priority="low"))
    worker = trace(place)
    await_ran(place, 2)
    await_sleepers(place)
    stop_cleanly(worker)
    place.ok("topic", "delete", "t", "--yes")
    expect([], [name for name in client(place)("KEYS", "weir:{t}:*")
                if name not in (b"weir:{t}:meta", b"weir:{t}:seen")])
    add_jobs(place, keyed("a", 3))
    expect(["a-0", "a-1", "a-2"], drain(place)[2:])


@test
def plain_jobs_and_mixed_packs_run_beside_lanes(place):
    jobs = [{"id": "m-%d" % i, "delay": "%dms" % (i * 20)} for i in range(20)]
    jobs += keyed("k", 20, delay="100ms")
    jobs += [{"id": "p-%d" % i} for i in range(20)]
    jobs += [{"id": "h-%d" % i, "priority": "high", "delay": "%dms" % (i * 20)}
             for i in range(20)]
    add_jobs(place, jobs)
    workers = [trace(place, name) for name in ("one", "two")]
    await_stats(place, done_total=80, ready=0, scheduled=0, running=0)
    for worker in workers:
        stop_cleanly(worker)
    expect(sorted(job["id"] for job in jobs), sorted(ran(place, "one", "two")))
    late = [line["late_us"] for name in ("one", "two")
            for line in place.lines(name)]
    expect_true(min(late) >= 0, "one started before it was due")


@test
def a_full_server_refuses_jobs_with_keys_and_has_nothing_of_them(place):
    add_jobs(place, keyed("a", 2))
    redis = client(place)
    names = set(redis("KEYS", "*"))
    fill(redis)
    result = place.weir("add", "t", "--id", "a-2", "--key", "a")
    expect_true(result.code != 0, result.out)
    expect(names, set(redis("KEYS", "*")))
    fill(redis, 0)
    place.expect_stats("t", ready=2)
    place.add("t", "a-2", "--key", "a")
    expect(["a-0", "a-1", "a-2"], drain(place))


@test
def a_worker_on_a_full_server_goes_on_with_its_lanes_when_there_is_room(place):
    set_topic(place, "key_parallel=1")
    add_jobs(place, keyed("a", 5) + keyed("b", 5))
    gate, worker = start_held(place)
    redis = client(place)
    fill(redis)
    os.write(gate, b"x" * 10)
    fill(redis, 0)
    await_stats(place, done_total=10)
    stop_cleanly(worker)
    for key in "ab":
        expect(["%s-%d" % (key, i) for i in range(5)],
               of_key(ran(place, "held"), key))
    os.close(gate)


@test
def stats_count_what_waits_and_runs_in_lanes(place):
    add_jobs(place, keyed("a", 3) + keyed("b", 2, delay="1h", priority="low"))
    place.expect_stats("t", scheduled=2, ready=3, running=0, added_total=5)
    token = place.weir("take", "t").out.split(" ")[0]
    place.expect_stats("t", scheduled=2, ready=2, running=1)
    place.ok("settle", "t", token, "--retry", "--delay", "1h")
    place.expect_stats("t", scheduled=3, ready=2, running=0)
    expect(["a", "a", "a", "b", "b"],
           sorted(job["key"] for job in place.ok("list", "t")))


@test
def what_is_exported_and_imported_keeps_its_key(place):
    add_jobs(place, keyed("a", 2, priority="urgent"))
    jobs = place.write("jobs", place.weir("export", "t").out)
    place.ok("purge", "t", "--yes")
    expect(0, place.weir("import", "t", jobs).code)
    expect([["a", "urgent"]] * 2, [[job["key"], job["priority"]]
                                   for job in place.ok("list", "t")])


@test
def the_key_is_found_in_the_body_where_the_topic_says_so(place):
    set_topic(place, "key=body.user.id", "key_parallel=1")
    place.add("t", "0", "--body", '{"user":{"id":7}}')
    place.add("t", "1", "--body", '{"user":{"id":7}}', "--key", "own")
    place.add("t", "2", "--body", '{"user":null}', "--priority", "high")
    place.add("t", "3", "--body", '{"user":{"id":"7"}}')
    expect(["7", "own", None, "7"], [place.ok("show", "t", str(i)).get("key")
                                     for i in range(4)])
    expect(["0", "1", "2", "3"], sorted(drain(place)))


@test
def a_user_with_the_printed_rights_may_use_keys_and_bounds(place):
    server = Server(place)
    admin = server.guard(place.ok("doctor", "--acl")["acl"])
    place.env["WEIR_REDIS"] = server.url_of("weir:pw")
    set_topic(place, "key_parallel=1", "key_rate=100/s", "retry=1ms ...")
    add_jobs(place, keyed("a", 3) + keyed("b", 3, priority="high"))
    place.drain(place.handler("trace", file="out", fail=1))
    add_jobs(place, keyed("a", 3))
    place.ok("delete", "t", "a-1")
    place.ok("purge", "t", "--yes")
    place.ok("topic", "delete", "t", "--yes")
    expect([], refused(admin))


# --- what is refused --------------------------------------------------------


@test
def what_is_wrong_with_a_key_or_a_priority_is_told(place):
    place.env["WEIR_REDIS"] = "redis://127.0.0.1:1"
    add = ("add", "t")
    place.weir(*add, "--priority", "top").expect_complaint(
        2, '--priority: "top"', "urgent, high, normal or low")
    place.weir(*add, "--key", "").expect_complaint(2, "--key", "1 to 2048")
    place.weir(*add, "--key", "k" * 2049).expect_complaint(2, "2049", "2048")


@test
def lines_with_a_wrong_key_or_priority_are_named(place):
    lines = ('{"key":""}\n{"priority":"top"}\n{"key":1}\n'
             '{"key":"k","priority":"low"}\n')
    result = place.weir("add", "t", "--jsonl", "-", stdin=lines)
    expect(1, result.code)
    expect("added 1, existing 0, refused 3\n", result.out)
    for word in ("stdin:1: key", "stdin:2: priority", "stdin:3: key"):
        expect_in(word, result.err)


@test
def other_kinds_have_no_keys_of_jobs(place):
    for kind, more in (("bounded", ("--group", "g")), ("list", ())):
        place.ok("topic", "set", kind, "kind=" + kind)
        for flag in (("--key", "k"), ("--priority", "low")):
            result = place.weir("add", kind, *more, *flag)
            result.expect_complaint(2, "of kind " + kind, flag[0][2:])
        place.weir("topic", "set", kind, "key_parallel=1").expect_complaint(
            2, "key_parallel")


@test
def options_of_keys_that_are_wrong_are_refused(place):
    for option, word in (("key_parallel=0", "1 to 1000"),
                         ("key_parallel=1001", "1 to 1000"),
                         ("key_rate=5", "100/s burst 20"),
                         ("ageing=1", "1s to 30d"), ("ageing=999ms", "30d"),
                         ("key=order", "body.order")):
        place.weir("topic", "set", "t", option).expect_complaint(
            2, option.split("=")[0], word)


run_together(3)
