# SPDX-License-Identifier: MIT
"""pull and finish: jobs that run by two calls end as they end in weir."""

import msgpack
import redis

from cluster import share, slot_of
from e2e import (eventually, expect, expect_in, expect_true, stop_cleanly,
                 test, time_test)
from schedules import moment_of
from wire_producer import record, rising
from wire_puller import Job, Wire

def record_of(wire, job_id):
    return msgpack.unpackb(wire.redis.hget("weir:{t}:rec", job_id))


@test
def a_job_comes_as_it_was_added(place):
    wire = Wire(place)
    wire.push("a", {"n": 2 ** 63 + 5}, "r0", "retry", "1s", "header:k", "v")
    made = wire.push("", -(2 ** 63))
    other, first = sorted(wire.pull(), key=lambda job: job.id)
    expect(("a", msgpack.packb({"n": 2 ** 63 + 5}), 0,
            {"retry": "1s", "headers": {"k": "v"}}),
           (first.id, first.body, first.attempt, first.options))
    expect((made, msgpack.packb(-(2 ** 63)), {}),
           (other.id, other.body, other.options))
    shown = place.ok("show", "t", "a")
    expect(("running", shown["added_ms"]), (shown["state"], first.added))
    expect([1, 1], wire.finish((first, "done"), (other, "done")))
    place.expect_stats("t", done_total=2, running=0)
    left = [name.decode() for name in wire.redis.keys("weir:{t}:*")]
    expect([], [name for name in left if ":p:" in name or "lease" in name])


@test
def verdicts_do_what_those_of_weir_do(place):
    wire = Wire(place)
    place.ok("topic", "set", "t", "retry=40ms 1h", "retry_jitter=50%")
    verdicts = {"retry": ("retry", "", "no luck"), "fail": ("fail", "", "bad"),
                "late": ("timeout", "", "timeout"), "snooze": ("snooze", "9"),
                "own": ("retry", "", "x"), "when": ("retry", "3600000", "y"),
                "odd": ("malformed",)}
    for job_id in verdicts:
        wire.push(job_id, 1, "r0", *(["retry", "none"] if job_id == "own"
                                     else []))
    jobs = wire.pull()
    expect([1] * 7, wire.finish(*[(job,) + verdicts[job.id] for job in jobs]))
    expect(["failed", "bad"], place.dead("fail"))
    expect(["exhausted", "x"], place.dead("own"))
    expect("malformed", place.ok("show", "t", "odd")["reason"])
    expect((1, 1), (place.ok("show", "t", "late")["timeouts"],
                    place.ok("show", "t", "late")["failures"]))
    shown = place.ok("show", "t", "when")
    expect(["retry"], [one["outcome"] for one in shown["attempts"]])
    expect_true(shown["due_ms"] - shown["added_ms"] > 3599000, "its own delay")
    again = {}
    while len(again) < 3:
        again.update({job.id: job for job in wire.pull()})
    expect({"retry", "late", "snooze"}, set(again))
    late = again["retry"].due - wire.look("t", "retry")[2][6]["added_ms"]
    expect_true(20 <= late, "the ladder's first step, %d ms" % late)
    expect((1, 0, 1), (again["retry"].attempt, again["snooze"].attempt,
                       again["snooze"].snoozes))
    expect("no luck", again["retry"].options["error"])
    expect(place.ok("show", "t", "retry")["added_ms"], again["retry"].added)
    wire.finish(*[(job, "retry", "", "again") for job in again.values()])
    attempts = place.ok("show", "t", "retry")["attempts"]
    expect([("no luck", "w1"), ("again", "w1")],
           [(one["error"], one["worker"]) for one in attempts])
    place.expect_stats("t", dead=3, retried_total=6, failed_total=3)


@test
def retries_are_spread_by_the_jitter_of_the_topic(place):
    wire = Wire(place)
    place.ok("topic", "set", "t", "retry=1h", "retry_jitter=10%")
    wire.add("t", [record(n) for n in range(100)], "r0")
    now = wire.ask(100, in_hand=0)
    jobs = [Job(one) for one in now[8]]
    expect([1] * 100, wire.finish(*[(job, "retry") for job in jobs]))
    scores = [score - now[0] / 1000 for _, score in wire.redis.zrange(
        "weir:{t}:wait", 0, -1, withscores=True)]
    expect_true(max(scores) - min(scores) > 360000, "spread")
    expect_true(0.9 * 3600000 <= min(scores) and
                max(scores) < 1.1 * 3600000 + 60000, "not wider")


@test
def the_last_eight_attempts_are_kept_and_texts_cut(place):
    wire = Wire(place)
    wire.push("a", 1, "r0", "retry", "1ms ...")
    for number in range(11):
        job, = eventually(wire.pull, "it is due")
        expect([1], wire.finish((job, "retry", "0", "%d " % number +
                                 "ä" * 200)))
    shown = place.ok("show", "t", "a")
    expect(["3", "10"], [shown["attempts"][at]["error"].split()[0]
                         for at in (0, -1)])
    expect((8, 11), (len(shown["attempts"]), shown["attempt"]))
    expect(199, len(shown["error"].encode()))


@test
def a_repeat_of_a_finish_changes_nothing(place):
    wire = Wire(place)
    wire.add("t", [record(n) for n in range(6)], "r0")
    jobs = wire.pull()
    told = list(zip(jobs, ("done", "retry", "fail", "snooze", "back"),
                    ("", "9999", "", "9999", "")))
    expect([1] * 5, wire.finish(*told))
    before = wire.digest()
    expect([0, 0, 0, 0, 1], wire.finish(*told))
    expect(before, wire.digest())
    expect([1, 0], wire.finish((jobs[5], "done"), (jobs[5], "fail")))
    place.expect_stats("t", done_total=2, dead=1, ready=1, scheduled=2)


@test
def verdicts_after_the_lease_do_not_count(place):
    wire = Wire(place)
    wire.add("t", [record(n) for n in range(3)], "r0", ["a", "b", "c"])
    jobs = wire.pull()
    place.ok("delete", "t", "a")
    wire.end_leases()
    other, = wire.pull(worker="w2")
    told = [(job, verdict, "0") for job, verdict in
            zip(jobs, ("done", "retry", "fail"))]
    expect([0] * 3, wire.finish(*told))
    expect([1], wire.finish((other, "done")))
    place.expect_stats("t", done_total=1, dead=0, ready=1)


@test
def a_lease_is_that_of_the_topic_and_ends_with_its_last_job(place):
    wire = Wire(place)
    place.ok("topic", "set", "t", "lease=7m", "timeout=1h30m")
    wire.add("t", [record(n) for n in range(3)], "r0")
    answer = wire.ask(2)
    expect((420000, 5400000), tuple(answer[5:7]))
    lease, = wire.redis.zrange("weir:{t}:lease", 0, -1, withscores=True)
    expect(420000, lease[1] - answer[0] // 1000)
    expect(answer[1], int(lease[0]))
    keys = [wire.key("t", name) for name in (b"lease", b"held")]
    expect([], wire.run("renew", keys, [420000, answer[1]]))
    jobs = [Job(one) for one in answer[8]]
    wire.finish((jobs[0], "done"))
    expect(1, wire.redis.zcard("weir:{t}:lease"))
    wire.finish((jobs[1], "retry", "1"))
    expect(0, wire.redis.zcard("weir:{t}:lease"))
    expect(0, wire.redis.hlen("weir:{t}:held"))


@test
def suspects_come_alone_and_their_start_is_noted(place):
    wire = Wire(place)
    wire.add("t", [record(n) for n in range(4)], "r0")
    expect(4, len(wire.pull()))
    wire.end_leases()
    wire.push("new", 1)
    answer = wire.ask()
    suspect, = [Job(one) for one in answer[8]]
    expect((1, 0, 1), (answer[7], answer[2], suspect.crashes))
    expect_in(suspect.handle.split()[1],
              wire.redis.hget("weir:{t}:started", "w1"))
    expect(["new"], [job.id for job in wire.pull(in_hand=2)])
    answer = wire.ask(in_hand=2)
    expect(([], 100000), (answer[8], answer[2]))
    expect(1, len(wire.pull(worker="w2")))
    expect([1], wire.finish((suspect, "retry", "3600000", "slow")))
    attempts = place.ok("show", "t", suspect.id)["attempts"]
    expect(["crash", "retry"], [one["outcome"] for one in attempts])
    expect(2, len(wire.pull()) + len(wire.pull()))


@test
def what_kills_workers_dies_and_what_was_beside_it_does_not(place):
    wire = Wire(place)
    place.ok("topic", "set", "t", "max_crashes=2")
    wire.add("t", [record(n) for n in range(20)], "r0")
    rounds, done = 0, 0
    while place.stats("t")["dead"] == 0:
        rounds += 1
        expect_true(rounds < 10, "it dies at last")
        for job in wire.pull():
            if msgpack.unpackb(job.body) == 7:
                wire.end_leases()  # the process is gone
                break
            done += wire.finish((job, "done"))[0]
    while done < 19:
        for job in wire.pull():
            done += wire.finish((job, "done"))[0]
    dead, = place.ok("dead", "list", "t")
    expect(("crashed", 7), (dead["reason"], dead["body"]))
    place.expect_stats("t", done_total=19, dead=1, running=0, ready=0)


@test
def what_must_not_run_never_comes(place):
    wire = Wire(place)
    odd = [record(1), b"xx", record(2, retry=5), record(3, ttl_ms=1),
           b"\x99\2", b"\xdc\0\x08\1\0\0\0\0\0\xc0\7", record(4, headers=[1]),
           record(5, headers={})]
    wire.add("t", odd, "r0")
    name, _, _, _ = wire.add("t", [record(6), record(7)], "r0", ["a|b", "ok"])
    key = "weir:{t}:p:" + name.decode()
    wire.redis.set(key, wire.redis.get(key).replace(b"a|b", b"a\x01b"))
    for data in (None, b"W1", b"W9" + b"\0" * 30, b"hello"):
        name, _, _, _ = wire.add("t", [record("x"), record("y")], "r0")
        wire.redis.delete("weir:{t}:p:" + name.decode())
        if data:
            wire.redis.set("weir:{t}:p:" + name.decode(), data)
    time_to_go = wire.stats("t")["time"] + 5
    eventually(lambda: wire.stats("t")["time"] > time_to_go, "one expires")
    bodies = [msgpack.unpackb(job.body) for job in wire.pull_all()]
    expect([1, 7, 5, 7], bodies)
    reasons = {job["id"]: job["reason"] for job in place.ok("dead", "list",
                                                            "t")}
    expect({"malformed"}, set(reasons.values()))
    expect(8, len(reasons))
    place.expect_stats("t", expired_total=1, lost_total=2, running=4,
                       scheduled=3)


@test
def jobs_of_mixed_packs_come_in_their_time_and_go_back_to_it(place):
    wire = Wire(place)
    wire.ask(1)
    wire.add("t", [record(n) for n in range(40)],
             rising(b"s", [n * 4 for n in range(40)]))
    first, = eventually(lambda: wire.pull(1), "the first is due")
    wire.finish((first, "back"))
    seen = []
    while len(seen) < 40:
        answer = wire.ask(16)
        jobs = [Job(one) for one in answer[8]]
        for job in jobs:
            expect_true(job.due <= answer[0] // 1000, "not early")
        half = [job for at, job in enumerate(jobs) if at % 2 and job not in
                seen]
        wire.finish(*[(job, "back" if job in half else "done")
                      for job in jobs])
        seen += [job.id for job in jobs if job not in half]
    expect((40, 40), (len(seen), len(set(seen))))
    place.expect_stats("t", done_total=40, ready=0, running=0)
    expect(0, wire.redis.exists("weir:{t}:due"))


@test
def an_answer_has_about_four_mebibytes(place):
    wire = Wire(place)
    for number in range(9):
        wire.push(str(number), "x" * 1000000)
    jobs = wire.pull(9)
    expect(5, len(jobs))
    place.expect_stats("t", ready=4, running=5)
    expect([1, 1, 1, 1, 1], wire.finish(*[(job, "retry", "0") for job in
                                          jobs]))
    found = wire.pull_all(1)
    expect(9, len({job.id for job in found}))
    result = wire.finish(*[(job, "fail") for job in found])
    expect([1] * 5 + [2] * 4, result)
    expect([1] * 4, wire.finish(*[(job, "fail") for job in found[5:]]))
    place.expect_stats("t", dead=9)


@test
def a_full_server_takes_what_needs_no_room(place):
    wire = Wire(place)
    wire.add("t", [record(n) for n in range(6)], "r0")
    jobs = wire.pull(5)
    wire.redis.config_set("maxmemory", 1)
    told = list(zip(jobs, ("done", "retry", "fail", "snooze", "back"),
                    ("", "9999", "", "9999", "")))
    expect([1, 2, 2, 2, 1], wire.finish(*told))
    expect(2, len(wire.pull(5)))
    wire.redis.config_set("maxmemory", 0)
    expect([0, 1, 1, 1, 1], wire.finish(*told))
    place.expect_stats("t", done_total=1, dead=1, scheduled=2)


@test
def more_dead_jobs_than_are_kept_push_out_the_oldest(place):
    wire = Wire(place)
    place.ok("topic", "set", "t", "max_dead=2")
    for job_id in "abc":
        wire.push(job_id, 1)
        wire.finish((wire.pull()[0], "fail"))
    expect({"b", "c"}, {job["id"] for job in place.ok("dead", "list", "t")})


@test
def a_topic_that_is_paused_or_not_its_own_is_told(place):
    wire = Wire(place)
    wire.push("a", 1)
    place.ok("pause", "t")
    answer = wire.ask()
    expect((-1, 1, []), (answer[2], answer[4], answer[8]))
    place.ok("resume", "t")
    job, = wire.pull()
    expect([1], wire.finish((job, "done")))
    place.ok("topic", "set", "t", "on_dead=u")
    try:
        wire.ask()
        expect_true(False, "it is refused")
    except redis.ResponseError as error:
        expect("the topic has on_dead: weir itself serves it", str(error))
    place.ok("topic", "set", "t", "on_dead=none")
    expect([], wire.ask()[8])
    place.ok("topic", "delete", "t")
    place.ok("topic", "set", "t", "kind=list")
    expect([-1, b"list"], wire.ask())


@test
def who_pulls_is_woken(place):
    wire = Wire(place)
    listener = wire.redis.pubsub()
    listener.subscribe("weir:wake:w1")
    eventually(listener.get_message, "it subscribes")
    expect(-1, wire.ask()[2])
    place.add("t", "a")
    message = eventually(listener.get_message, "it is woken")
    expect(b"t", message["data"].split()[0])
    expect(["a"], [job.id for job in wire.pull()])


@test
def the_limits_of_a_topic_hold_and_who_waits_is_woken(place):
    wire = Wire(place)
    place.ok("topic", "set", "t", "parallel=1", "rate=1/h burst 2")
    for job_id in "abc":
        wire.push(job_id, 1)
    ears = wire.redis.pubsub()
    ears.subscribe("weir:wake:w2")
    eventually(ears.get_message, "it hears")
    [first] = wire.pull()
    expect([], wire.pull(worker="w2"))
    expect([1], wire.finish((first, "done")))
    expect(b"t", eventually(ears.get_message, "it is woken")["data"][:1])
    [second] = wire.pull(worker="w2")
    expect([1], wire.finish((second, "done")))
    expect([], wire.pull())
    expect("rate", place.stats("t")["limited"])


@test
def a_tick_of_a_schedule_leaves_its_place_to_jobs_and_goes_to_weir(place):
    wire = Wire(place)
    place.ok("topic", "set", "t", "parallel=1", "lease=1h")
    wire.push("a", 1)
    place.ok("cron", "add", "c", "--topic", "t", "--every", "1h")
    wire.redis.zadd("weir:{t}:wait", {  # it is due first
        wire.redis.hget("weir:{t}:ids", "c@next") + b"0000": 1})
    [job] = wire.pull_all(1)
    expect("a", job.id)
    expect(1, wire.redis.zcard("weir:{t}:lease"))
    expect([1], wire.finish((job, "done")))
    expect(0, place.stats("t")["crashed_total"])
    worker = place.start("run", "--handle", "t=echo")
    eventually(lambda: float(wire.redis.zscore(
        "weir:{t}:wait", wire.redis.hget("weir:{t}:ids", "c@next") + b"0000")
        or 0) > wire.redis.time()[0] * 1000 + 60000, "its next time is set")
    stop_cleanly(worker)


@time_test
def a_dense_schedule_has_each_time_beside_one_who_pulls(place):
    wire, pulled = Wire(place), []
    place.ok("cron", "add", "c", "--topic", "t", "--every", "2s")
    worker = place.work(place.echo())

    def moments():
        for job in wire.pull(1):
            pulled.append(job.id)
            wire.finish((job, "done"))
        ran = [line["id"] for line in place.lines("out")]
        return sorted(map(moment_of, pulled + ran))

    eventually(lambda: len(moments()) >= 8, "there are 8 jobs")
    stop_cleanly(worker)
    got = moments()
    expect([2000] * (len(got) - 1),
           [after - before for before, after in zip(got, got[1:])])


@test
def who_pulls_one_by_one_is_woken_by_its_own_finish(place):
    wire = Wire(place)
    place.ok("topic", "set", "t", "parallel=1", "lease=1h")
    wire.push("a", 1)
    wire.push("b", 1)
    ears = wire.redis.pubsub()
    ears.subscribe("weir:wake:w1")
    eventually(ears.get_message, "it hears")
    answer = wire.ask(1)
    expect((1, 0), (len(answer[8]), answer[2]))
    expect([], wire.pull(1, in_hand=1))
    expect([1], wire.finish((Job(answer[8][0]), "done")))
    expect(b"t", eventually(ears.get_message, "it is woken")["data"][:1])
    answer = wire.ask(1)
    expect((1, 0), (len(answer[8]), answer[2]))
    expect([1], wire.finish((Job(answer[8][0]), "done")))
    expect(-1, wire.ask(1)[2])
    place.add("t", "c")
    expect(b"t", eventually(ears.get_message, "it is woken")["data"][:1])


@test
def what_ends_while_it_is_pulled_makes_room(place):
    wire = Wire(place)
    place.ok("topic", "set", "t", "parallel=1", "lease=1h")
    for _ in range(3):
        wire.push("", 1)
    ears = wire.redis.pubsub()
    ears.subscribe("weir:wake:w2")
    eventually(ears.get_message, "it hears")
    wire.redis.zadd("weir:{t}:idle", {"w2": "+inf"})
    gone = wire.redis.zrange("weir:{t}:wait", 0, 0)[0][:12].decode()
    wire.redis.delete("weir:{t}:p:" + gone)
    answer = wire.ask(10)
    expect(([], 0), (answer[8], answer[2]))
    expect(b"t", eventually(ears.get_message, "it is woken")["data"][:1])
    expect(1, len(wire.pull(10)))


@test
def hostile_calls_are_refused_and_do_nothing(place):
    wire = Wire(place)
    wire.add("t", [record(n) for n in range(3)], "r0", ["a", "b", "c"])
    handle = wire.pull(1)[0].handle.decode()
    before = wire.digest()
    pulls = ([0, "w", 0, ""], [1025, "w", 0, ""], ["1e2", "w", 0, ""],
             [1, "w x", 0, ""], [1, "w" * 51, 0, ""], [1, "w", 3, ""],
             [1, "w", 0, "zz"], [1, "w", 0], [1, "w", 0, "", ""], [1], [])
    token, node, slot, due, ended, _ = handle.split(" ")
    handles = ("", "x", handle + "\n", handle + "é", "-" + handle,
               " ".join((token, node[:12] + "0100", slot, due, ended, "")),
               " ".join((token, node, "256", due, ended, "")),
               " ".join((token, node + "00", slot, due, ended, "")),
               " ".join((token, "/" + node[1:], slot, due, ended, "")),
               " ".join(("9" * 15, node, slot, due, ended, "")),
               " ".join((token, node, slot, "9" * 15, ended, "")))
    finishes = [["w", one, "done", "", ""] for one in handles]
    finishes += [["w", handle, "Done", "", ""], ["w", handle, "done", ""],
                 ["w", handle, "snooze", "", ""], ["w x"], [],
                 ["w", handle, "retry", "-1", ""],
                 ["w", handle, "retry", "1" * 14, ""],
                 ["w"] + [handle, "done", "", ""] * 1025]
    for script, calls in (("pull", pulls), ("finish", finishes)):
        for args in calls:
            try:
                expect("an error", wire.run(script, wire.all, args))
            except redis.ResponseError as error:
                expect_true(str(error).startswith("the "), str(error))
        for keys in (wire.all[:12], wire.all[::-1], wire.all * 2,
                     [b"x"] * 13, wire.all[:12] + [b"weir:{u}:absent"]):
            try:
                expect("an error", wire.run(script, keys, [1, "w", 0, ""]))
            except redis.ResponseError as error:
                expect_true("keys are not" in str(error), str(error))
    expect(before, wire.digest())
    forged = " ".join((token, node[:12] + "0202", "2", due, ended, "c"))
    expect([0], wire.run("finish", wire.all, ["w", forged, "done", "", ""]))
    expect("ready", place.ok("show", "t", "c")["state"])


@test
def a_key_of_another_type_stops_a_call_before_it_changes_anything(place):
    wire = Wire(place)
    for key in ("wait run lease meta dead rec options started").split():
        wire.redis.flushall()
        wire.ask()  # meets the server
        wire.add("t", [record(1)], "r0", ["a"])
        wire.redis.delete("weir:{t}:" + key)
        wire.redis.set("weir:{t}:" + key, "x")
        before = wire.digest()
        try:
            expect(key, wire.ask())
        except redis.ResponseError as error:
            expect_in("WRONGTYPE", str(error))
        expect((key, before), (key, wire.digest()))
    for key, told in (("run", ("done",)), ("ids", ("fail",)),
                      ("rec", ("fail",)),
                      ("dead", ("fail",)), ("options", ("fail",))):
        wire.redis.flushall()
        wire.add("t", [record(1)], "r0", ["a"])
        job, = wire.pull()
        wire.redis.delete("weir:{t}:" + key)
        wire.redis.set("weir:{t}:" + key, "x")
        before = wire.digest()
        try:
            expect(key, wire.finish((job,) + told))
        except redis.ResponseError as error:
            expect_in("WRONGTYPE", str(error))
        expect((key, before), (key, wire.digest()))


@test
def workers_of_weir_and_others_share_the_jobs_of_a_pack(place):
    wire = Wire(place)
    wire.add("t", [record(n) for n in range(256)], "r0",
             ["id-%d" % n for n in range(256)])
    mine = wire.pull(100)
    half = mine[:50]
    for token in wire.redis.zrange("weir:{t}:lease", 0, -1):
        wire.redis.zadd("weir:{t}:lease", {token: 2 ** 43})
    expect([1] * 50, wire.finish(*[(job, "back") for job in mine[50:]]))
    place.ok("topic", "set", "t", "lease=1h")
    worker = place.work(place.echo())
    eventually(lambda: place.stats("t")["done_total"] == 206, "its share")
    stop_cleanly(worker)
    theirs = [line["id"] for line in place.lines("out")]
    expect([1] * 50, wire.finish(*[(job, "done") for job in half]))
    expect(256, len(set(theirs + [job.id for job in half])))
    place.expect_stats("t", done_total=256, ready=0, running=0)
    expect(0, len(wire.redis.keys("weir:{t}:p:*")))
    expect(1, wire.redis.hlen("weir:{t}:ids"))


@test
def while_its_slot_moves_a_topic_is_left_alone(place):
    cluster = share(place)
    node = cluster.nodes[0]
    topic = cluster.topic(node)
    slot = slot_of("{%s}" % topic)
    other = cluster.next_to(slot)
    wire = Wire(place, node.path, topic)
    for number in range(3):
        wire.push("", number)
    jobs = wire.pull(2)
    told = [(jobs[0], "done"), (jobs[1], "retry", "0", "no luck")]
    cluster.open_slot(slot, other)
    keys = [key.decode() for key in wire.redis.keys("*{%s}*" % topic)]

    def refused(call, *args):
        try:
            expect("an error", call(*args))
        except redis.RedisError as error:
            return str(error)

    packs = [key for key in keys if ":p:" in key]
    before = wire.digest()
    for moved in ([], packs[:1], packs, [key for key in keys
                                         if key.endswith(":run")]):
        if moved:
            cluster.move_keys(slot, other, [key for key in moved])
            before = wire.digest()
        for call in ((wire.ask,), (wire.finish, *told)):
            answer = refused(*call)
            expect_true("ASK" in answer or "TRYAGAIN" in answer or
                        str(slot) in answer or "multiple keys" in answer,
                        answer)
        expect(before, wire.digest())
    cluster.move_keys(slot, other)
    cluster.close_slot(slot, other)
    there = Wire(place, other.path, topic)
    expect([1, 1], there.finish(*told))
    expect(2, len(there.pull()))
