# SPDX-License-Identifier: MIT
"""Jobs of few keys that are added together share packs, and all else that may
become of a job becomes of each of them alone."""

import json
import os

from e2e import (eventually, expect, expect_in, expect_true, kill,
                 run_together, stop_cleanly, terminate, test, wait)
from lanes import (add_jobs, await_ran, await_sleepers, await_stats, client,
                   drain, drain_ready, execute, expect_in_order, fill, hold,
                   hold_runs, keyed, kill_workers_at_work, ledger, let_run,
                   most_at_once, of_key, ran, set_topic, start_held, trace)


def laned(place, topic="t"):
    """How many packs of lanes there are."""
    if place.server_pid() == 0:
        return 0
    return client(place)("HLEN", "weir:{%s}:of" % topic)


def add_packs(place, jobs):
    """Each pack has several."""
    before = laned(place)
    add_jobs(place, jobs)
    expect_true(laned(place) - before < len(jobs) / 4,
                "%d packs have %d jobs" % (laned(place) - before, len(jobs)))


def ids(key, *numbers):
    return ["%s-%d" % (key, i) for i in numbers]


def mixed(keys, count, **more):
    """Of each key in turn."""
    return [job for i in range(count) for key in keys
            for job in keyed(key, 1, i, **more)]


def expect_all_in_order(found, keys, count):
    expect(count * len(keys), len(found))
    for key in keys:
        expect(ids(key, *range(count)), of_key(found, key))


def expect_nothing_stays(place):
    place.expect_stats("t", ready=0, scheduled=0, running=0)
    expect(0, laned(place))
    expect([], client(place)("KEYS", "weir:{t}:on:*"))
    place.ok("topic", "delete", "t", "--yes")
    redis = client(place)
    expect([], [name for name in redis("KEYS", "weir:{t}:*")
                if redis("PTTL", name) == -1])  # others go by themselves


def take(place, count, *flags):
    """{id: token} of jobs that are taken at once, in their order."""
    result = place.weir("take", "t", "--limit", str(count), "--lease", "1h",
                        *flags)
    expect(0 if result.out else 3, result.code, result.err)
    return dict(reversed(line.split(" ")[:2])
                for line in result.out.splitlines())


def as_exported(text):
    """By id; what was due is due when it is imported."""
    jobs = [json.loads(line) for line in text.splitlines()]
    return {job["id"]: {name: value for name, value in job.items()
                        if name != "at" or job["key"] == "c"} for job in jobs}


# --- what waits -------------------------------------------------------------


@test
def jobs_of_a_key_run_in_the_order_in_which_they_were_added(place):
    add_packs(place, mixed("abc", 300))
    place.expect_stats("t", ready=900, scheduled=0)
    expect_all_in_order(drain(place), "abc", 300)
    expect_nothing_stays(place)


@test
def jobs_without_ids_share_packs_of_their_key_too(place):
    add_packs(place, [{"key": "ab"[i % 2], "priority": "high", "body": i}
                      for i in range(200)])
    jobs = place.ok("list", "t", "--limit", "1000")
    expect(200, len({job["id"] for job in jobs}))
    expect({"ab"[i % 2] + str(i) for i in range(200)},
           {job["key"] + str(job["body"]) for job in jobs})
    place.ok("delete", "t", jobs[70]["id"])
    found = drain(place)
    expect({job["id"] for job in jobs} - {jobs[70]["id"]}, set(found))
    expect(199, len(found))


@test
def each_job_of_a_pack_is_listed_and_shown(place):
    add_packs(place, keyed("a", 150, priority="urgent") +
              keyed("b", 150, delay="1h"))
    jobs = place.ok("list", "t", "--limit", "1000")
    expect(sorted(ids("a", *range(150)) + ids("b", *range(150))),
           sorted(job["id"] for job in jobs))
    expect({("a", "urgent", "ready"), ("b", "normal", "scheduled")},
           {(job["key"], job.get("priority", "normal"), job["state"])
            for job in jobs})
    expect(150, len(place.ok("list", "t", "--state", "ready", "--limit",
                             "1000")))
    for i in (0, 1, 77, 149):
        job = place.ok("show", "t", "a-%d" % i)
        expect(["a-%d" % i, "ready", "a"],
               [job[name] for name in ("id", "state", "key")])


@test
def jobs_of_a_pack_are_deleted_put_off_and_run_now_one_by_one(place):
    add_packs(place, keyed("a", 40) + keyed("b", 40))
    gone = ids("a", 0, 7, 8, 39) + ids("b", 20)
    for job_id in gone:
        place.ok("delete", "t", job_id)
        expect(3, place.weir("show", "t", job_id).code)
    late = ids("a", 1, 15) + ids("b", 0)
    for job_id in late:
        place.ok("reschedule", "t", job_id, "--delay", "1h")
    place.expect_stats("t", ready=72, scheduled=3)
    found = drain_ready(place, 72)
    for key in "ab":
        expect([job_id for job_id in ids(key, *range(40))
                if job_id not in gone + late], of_key(found, key))
    for job_id in late:
        place.ok("reschedule", "t", job_id, "--delay", "0ms")
    eventually(lambda: place.stats("t")["ready"] == 3, "they are due")
    expect(sorted(late), sorted(drain(place)[72:]))
    expect_nothing_stays(place)


@test
def jobs_of_packs_are_deleted_and_put_off_by_what_is_true_of_them(place):
    add_packs(place, [dict(job, body={"n": at}) for at, job in
                      enumerate(mixed("ab", 50))])
    place.ok("delete", "t", "--where", ".body.n % 3 == 0")
    place.ok("reschedule", "t", "--where", ".body.n % 3 == 1", "--delay", "1h")
    place.expect_stats("t", ready=33, scheduled=33)
    expect(["%s-%d" % ("ab"[n % 2], n // 2) for n in range(2, 100, 3)],
           sorted(drain_ready(place, 33), key=lambda job_id: (
               int(job_id[2:]) * 2 + "ab".index(job_id[0]))))


@test
def what_is_exported_of_packs_comes_back_the_same(place):
    set_topic(place, "retry=none")
    add_packs(place, keyed("dead", 30))
    place.drain(place.handler("trace", file="dies", fail=1, verdict="fail"))
    add_packs(place, keyed("a", 150, priority="urgent") + keyed("b", 150) +
              keyed("c", 30, at="2033-05-18T03:33:20.125Z"))
    text = place.weir("export", "t").out
    expect(360, len(text.splitlines()))
    place.ok("purge", "t", "--yes")
    expect(0, laned(place))
    jobs = place.write("jobs", text)
    result = place.weir("import", "t", jobs)
    expect([0, "added 360, existing 0, refused 0\n"], [result.code, result.out])
    expect(as_exported(text), as_exported(place.weir("export", "t").out))
    expect(4, place.weir("import", "t", jobs).code)
    place.expect_stats("t", ready=300, scheduled=30, dead=30)
    expect_all_in_order(drain_ready(place, 300), "ab", 150)


@test
def a_purge_deletes_packs_that_wait_and_run(place):
    set_topic(place, "key_parallel=4")
    add_packs(place, keyed("a", 100) + keyed("b", 100))
    gate, worker = start_held(place)
    eventually(lambda: place.stats("t")["running"] > 4, "it holds some more")
    expect({"topic": "t", "deleted": 200}, place.ok("purge", "t", "--yes"))
    place.expect_stats("t", ready=0, scheduled=0, running=0)
    expect(0, laned(place))
    expect([], client(place)("KEYS", "weir:{t}:on:*"))
    add_packs(place, keyed("c", 20))
    os.write(gate, b"x" * 40)
    eventually(lambda: of_key(ran(place, "held"), "c") ==
               ids("c", *range(20)), "it goes on")
    await_stats(place, ready=0, running=0)
    stop_cleanly(worker)
    os.close(gate)


@test
def a_pause_holds_packs_of_keys_and_a_resume_lets_them_go_on(place):
    place.ok("pause", "t", "--new")
    add_packs(place, mixed("ab", 60))
    worker = trace(place)
    await_sleepers(place)
    expect([], ran(place))
    place.expect_stats("t", ready=120, running=0)
    place.ok("resume", "t")
    await_ran(place, 120)
    stop_cleanly(worker)
    expect_all_in_order(ran(place), "ab", 60)


@test
def as_many_jobs_of_a_pack_as_may_wait_are_added(place):
    set_topic(place, "max_pending=30")
    lines = "".join(json.dumps(job) + "\n" for job in keyed("a", 50))
    result = place.weir("add", "t", "--jsonl", "-", stdin=lines)
    expect([1, "added 30, existing 0, refused 20\n"],
           [result.code, result.out])
    expect_in("max_pending", result.err)
    place.expect_stats("t", ready=30)
    place.ok("delete", "t", "a-29")
    place.add("t", "b-0", "--key", "b")
    expect(ids("a", *range(29)) + ["b-0"],
           sorted(drain(place), key=lambda job_id: (job_id[0],
                                                    int(job_id[2:]))))
    expect_nothing_stays(place)


@test
def ids_that_exist_are_left_out_of_packs_of_keys(place):
    add_packs(place, keyed("a", 20, 10))
    lines = "".join(json.dumps(job) + "\n" for job in keyed("a", 40))
    result = place.weir("add", "t", "--jsonl", "-", stdin=lines)
    expect([4, "added 20, existing 20, refused 0\n"],
           [result.code, result.out])
    found = drain(place)
    expect(ids("a", *range(10, 30), *range(10), *range(30, 40)), found)
    expect_nothing_stays(place)


# --- what runs --------------------------------------------------------------


@test
def stats_add_up_while_parts_of_packs_are_settled(place):
    set_topic(place, "key_parallel=6", "retry=none")
    add_packs(place, mixed("ab", 20))
    found = {}
    while len(found) < 12:
        some = take(place, 5)
        expect_true(some, "they may run")
        found.update(some)
    expect(sorted(ids("a", *range(6)) + ids("b", *range(6))), sorted(found))
    expect({}, take(place, 5))
    place.expect_stats("t", ready=28, running=12, limited="key")
    for job_id, verdict in (("a-0", ["--done"]), ("a-3", ["--fail"]),
                            ("b-5", ["--snooze", "1h"]), ("b-2", ["--done"])):
        expect(1, place.ok("settle", "t", found[job_id], *verdict)["settled"])
    place.ok("delete", "t", "b-1")
    place.expect_stats("t", ready=28, scheduled=1, running=7, dead=1,
                       done_total=2)
    more = {}
    for _ in range(5):
        more.update(take(place, 9))
    expect(ids("a", 6, 7) + ids("b", 6, 7, 8), sorted(more))
    place.expect_stats("t", ready=23, scheduled=1, running=12)
    expect(3, place.weir("settle", "t", found["b-1"], "--done").code)
    left = [token for job_id, token in {**found, **more}.items()
            if job_id not in ("a-0", "a-3", "b-5", "b-2", "b-1")]
    expect(12, place.ok("settle", "t", *left, "--done")["settled"])
    expect(23, len(drain_ready(place, 23)))
    place.ok("purge", "t", "--yes")
    expect_nothing_stays(place)


@test
def packs_whose_jobs_are_retried_and_snoozed_go_back_to_their_lanes(place):
    for verdict in ("retry", "snooze"):
        set_topic(place, "retry=20ms ...", "key_parallel=8")
        jobs = [dict(job, id="%s-%s" % (job["id"], verdict))
                for job in mixed("ab", 60)]
        add_packs(place, jobs)
        place.drain(place.handler("trace", file=verdict, fail=2,
                                  verdict=verdict))
        found = ran(place, verdict)
        expect({job["id"]: 3 for job in jobs},
               {job_id: found.count(job_id) for job_id in set(found)})
        place.expect_stats("t", ready=0, scheduled=0, running=0)
        expect(0, laned(place))
    expect_nothing_stays(place)


@test
def dead_jobs_of_packs_are_requeued_into_packs_of_their_lanes(place):
    set_topic(place, "retry=none")
    add_packs(place, mixed("ab", 40, priority="low"))
    place.drain(place.handler("trace", file="dies", fail=1, verdict="fail"))
    place.expect_stats("t", dead=80, ready=0)
    expect(0, laned(place))
    place.ok("dead", "requeue", "t", "a-7", "b-7")
    expect({"topic": "t", "requeued": 78},
           place.ok("dead", "requeue", "t", "--all"))
    expect_true(laned(place) < 20, "%d packs" % laned(place))
    expect({("a", "low"), ("b", "low")},
           {(job["key"], job["priority"])
            for job in place.ok("list", "t", "--limit", "1000")})
    expect(sorted(job["id"] for job in mixed("ab", 40)), sorted(drain(place)))
    expect_nothing_stays(place)


@test
def dead_jobs_of_packs_that_move_share_packs_of_their_lanes_there(place):
    set_topic(place, "retry=none", "on_dead=u")
    place.ok("topic", "set", "u", "key_parallel=2", "lease=1h")
    add_packs(place, mixed("ab", 60, priority="high"))
    place.drain(place.handler("trace", file="dies", fail=1, verdict="fail"))
    eventually(lambda: place.stats("u")["ready"] == 120, "all are there")
    expect_nothing_stays(place)
    expect({("a", "high"), ("b", "high")},
           {(job["key"], job["priority"])
            for job in place.ok("list", "u", "--limit", "1000")})
    taken = [line.split(" ")[1] for _ in range(3) for line in place.weir(
        "take", "u", "--limit", "9", "--lease", "1h").out.splitlines()]
    expect(["a", "a", "b", "b"], sorted(job_id[0] for job_id in taken))
    place.expect_stats("u", running=4, ready=116)


def followers(count):
    return sorted("%s-%d" % (key, i) for key in "abc" for i in range(count))


@test
def jobs_of_keys_that_follow_into_another_topic_share_packs_there(place):
    place.ok("topic", "set", "u", "key_parallel=1")
    add_jobs(place, [{"id": str(i)} for i in range(100)])
    place.drain(place.handler("follows", to="u"))
    eventually(lambda: place.stats("u")["ready"] == 300, "all are there")
    expect_true(laned(place, "u") < 75, "%d packs" % laned(place, "u"))
    expect({(job_id, job_id[0]) for job_id in followers(100)},
           {(job["id"], job["key"])
            for job in place.ok("list", "u", "--limit", "1000")})
    place.drain(place.handler("trace", "u", file="out"))
    expect(followers(100), sorted(ran(place)))
    expect(0, laned(place, "u"))
    expect_nothing_stays(place)


@test
def jobs_of_keys_that_follow_in_their_topic_share_packs(place):
    set_topic(place, "key_parallel=2")
    add_jobs(place, [{"id": str(i)} for i in range(100)])
    place.drain(place.handler("follows", to="t"))
    place.expect_stats("t", done_total=400, ready=0, scheduled=0)
    expect_nothing_stays(place)


@test
def those_that_follow_are_there_once_though_their_worker_is_killed(place):
    add_jobs(place, [{"id": str(i)} for i in range(3000)])
    worker = place.work(place.handler("follows", to="u"),
                        flags=("--lease", "1s", "--concurrency", "8"))
    eventually(lambda: place.stats("t")["done_total"] > 100, "it is at work")
    kill(worker)
    worker = place.work(place.handler("follows", to="u"),
                        flags=("--concurrency", "8"))
    await_stats(place, ready=0, scheduled=0, running=0)
    eventually(lambda: place.stats("u")["ready"] == 9000, "all are there")
    stop_cleanly(worker)
    place.drain(place.handler("trace", "u", file="out"))
    expect(followers(3000), sorted(ran(place)))
    expect(0, laned(place, "u"))


@test
def places_of_a_key_count_the_jobs_of_its_packs(place):
    set_topic(place, "key_parallel=3")
    add_packs(place, mixed("ab", 40))
    hold_runs(place)
    workers = [execute(place, "w%d" % i, 2) for i in range(2)]
    let_run(place, 6)
    await_stats(place, done_total=80, running=0)
    for worker in workers:
        stop_cleanly(worker)
    expect({"a": 3, "b": 3}, most_at_once(ledger(place)))
    expect_nothing_stays(place)


@test
def tokens_of_a_key_count_the_jobs_of_its_packs(place):
    set_topic(place, "key_rate=1/h burst 7")
    add_packs(place, mixed("ab", 30))
    workers = [trace(place, name) for name in ("one", "two")]
    await_ran(place, 14, "one", "two")
    await_sleepers(place, 2)
    found = ran(place, "one", "two")
    expect([7, 7], [len(of_key(found, key)) for key in "ab"])
    place.expect_stats("t", ready=46, running=0, limited="key")
    set_topic(place, "key_rate=none")
    await_ran(place, 60, "one", "two")
    for worker in workers:
        stop_cleanly(worker)
    expect(60, len(set(ran(place, "one", "two"))))


@test
def bounds_of_a_topic_count_the_jobs_of_packs_of_keys(place):
    set_topic(place, "parallel=5", "rate=1/h burst 20")
    add_packs(place, mixed("ab", 30))
    workers = [execute(place, "w%d" % i, 1) for i in range(2)]
    await_stats(place, done_total=20, running=0, limited="rate")
    set_topic(place, "rate=none")
    await_stats(place, done_total=60, running=0)
    for worker in workers:
        stop_cleanly(worker)
    one = [[what, worker, "all-0"] for what, worker, _ in ledger(place)]
    expect_true(most_at_once(one)["all"] <= 5, "five run at once at most")


# --- whose worker goes ------------------------------------------------------


@test
def a_key_of_packs_runs_in_order_though_workers_are_killed(place):
    set_topic(place, "key_parallel=1", "max_crashes=100", "retry=1ms ...")
    keys = ["a", "b", "c", "d"]
    add_packs(place, mixed(keys, 30))
    killed = kill_workers_at_work(place, 4, 120)
    expect({key: 29 for key in keys}, expect_in_order(ledger(place), killed))
    expect_nothing_stays(place)


@test
def no_job_of_a_pack_is_lost_with_the_worker_that_has_a_part_of_it(place):
    set_topic(place, "max_crashes=100", "key_parallel=20")
    add_packs(place, mixed("abc", 100))
    gate = hold(place)
    for i in range(3):
        worker = trace(place, "held", lease="1s", gate=place.path("gate"))
        eventually(lambda: len(ran(place, "held")) > 4 * i, "it runs one")
        os.write(gate, b"x" * 3)
        eventually(lambda: len(ran(place, "held")) > 4 * i + 3, "it runs more")
        kill(worker)
    worker = trace(place)
    await_stats(place, ready=0, scheduled=0, running=0, dead=0)
    stop_cleanly(worker)
    expect({job["id"] for job in mixed("abc", 100)},
           set(ran(place, "held", "out")))
    place.expect_stats("t", done_total=300)
    expect_nothing_stays(place)
    os.close(gate)


@test
def a_worker_that_stops_gives_parts_of_packs_back(place):
    set_topic(place, "key_parallel=6")
    add_packs(place, mixed("ab", 30))
    gate, worker = start_held(place)
    eventually(lambda: place.stats("t")["running"] > 6, "it holds some more")
    terminate(worker)
    os.write(gate, b"x" * 60)
    expect(0, wait(worker))
    place.expect_stats("t", running=0, ready=60 - len(ran(place, "held")))
    expect([], client(place)("KEYS", "weir:{t}:on:*"))
    drain(place)
    expect_all_in_order(ran(place, "held", "out"), "ab", 30)
    expect_nothing_stays(place)
    os.close(gate)


# --- a full server ----------------------------------------------------------


@test
def a_full_server_refuses_packs_of_keys_and_has_nothing_of_them(place):
    add_packs(place, keyed("a", 20))
    redis = client(place)
    names = set(redis("KEYS", "*"))
    fill(redis)
    lines = "".join(json.dumps(job) + "\n" for job in keyed("a", 20, 20))
    result = place.weir("add", "t", "--jsonl", "-", stdin=lines)
    expect_true(result.code != 0, result.out)
    expect(names, set(redis("KEYS", "*")))
    fill(redis, 0)
    place.expect_stats("t", ready=20)
    add_packs(place, keyed("a", 20, 20))
    expect_all_in_order(drain(place), "a", 40)
    expect_nothing_stays(place)


@test
def parts_of_packs_are_taken_and_settled_on_a_full_server(place):
    set_topic(place, "key_parallel=5")
    add_packs(place, mixed("ab", 20))
    fill(client(place))
    done = []
    while len(done) < 40:
        found = take(place, 3)
        expect_true(found, "%d were taken" % len(done))
        settled = place.ok("settle", "t", *found.values(), "--done")["settled"]
        expect(len(found), settled)
        done += found
    fill(client(place), 0)
    expect_all_in_order(done, "ab", 20)
    expect_nothing_stays(place)


@test
def a_worker_stops_on_a_full_server_and_its_parts_of_packs_go_back(place):
    set_topic(place, "key_parallel=6")
    add_packs(place, mixed("ab", 30))
    gate, worker = start_held(place)
    eventually(lambda: place.stats("t")["running"] > 6, "it holds some more")
    fill(client(place))
    terminate(worker)
    os.write(gate, b"x" * 60)
    expect(0, wait(worker))
    place.expect_stats("t", running=0, ready=60 - len(ran(place, "held")))
    fill(client(place), 0)
    drain(place)
    expect_all_in_order(ran(place, "held", "out"), "ab", 30)
    expect_nothing_stays(place)
    os.close(gate)


@test
def a_worker_on_a_full_server_goes_on_with_its_packs_of_keys(place):
    set_topic(place, "key_parallel=2")
    add_packs(place, mixed("ab", 30))
    gate, worker = start_held(place)
    fill(client(place))
    os.write(gate, b"x" * 30)
    await_ran(place, 31, "held")
    fill(client(place), 0)
    os.write(gate, b"x" * 30)
    await_stats(place, done_total=60, running=0)
    stop_cleanly(worker)
    expect_all_in_order(ran(place, "held"), "ab", 30)
    os.close(gate)


run_together(3)
