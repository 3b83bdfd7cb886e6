# SPDX-License-Identifier: MIT
"""Keys and priorities beside the bounds of the whole topic, statistics, a topic
that is deleted, max_pending, and those who take jobs by hand."""

import json
import os
import signal

from e2e import (end_cleanly, eventually, expect, expect_in, expect_true,
                 run_together, stop_cleanly, terminate, test)
from lanes import (add_jobs, await_ran, await_sleepers, await_stats, client,
                   drain, execute, fill, hold_runs, keyed, ledger, let_run,
                   most_at_once, of_key, ran, set_topic, start_held, trace)


def take(place, count, *flags):
    """(token, id) of jobs that are taken."""
    result = place.weir("take", "t", "--limit", str(count), *flags)
    expect(0 if result.out else 3, result.code, result.err)
    return [line.split(" ")[:2] for line in result.out.splitlines()]


def take_ids(place, count, *flags):
    """All that may start, though one claim does not bring it; by id."""
    found = {}
    while True:
        some = take(place, count, *flags)
        if not some:
            return found
        found.update((job_id, token) for token, job_id in some)


def settle(place, tokens, *verdict):
    expect(len(tokens), place.ok("settle", "t", *tokens, *verdict)["settled"])


def keys(place):
    return sorted(name.decode() for name in client(place)("KEYS", "weir:{t}:*"))


# --- bounds of the topic ----------------------------------------------------


@test
def no_more_run_than_parallel_lets_and_of_a_key_than_its_bound(place):
    set_topic(place, "parallel=3", "key_parallel=1")
    add_jobs(place, [job for i in range(20) for key in "abcde"
                     for job in keyed(key, 1, i)] +
             [{"id": "plain-%d" % i} for i in range(20)])
    hold_runs(place)
    workers = [execute(place, "w%d" % i, 2) for i in range(3)]
    let_run(place, 3)
    await_stats(place, done_total=120, running=0)
    for worker in workers:
        stop_cleanly(worker)
    lines = ledger(place)
    most = most_at_once(lines)
    expect([1] * 5, [most[key] for key in "abcde"])
    one = [[what, worker, "all-0"] for what, worker, _ in lines]
    expect({"all": 3}, most_at_once(one))
    for key in "abcde":
        expect(["%s-%d" % (key, i) for i in range(20)],
               of_key([job_id for what, _, job_id in lines if what == "start"],
                      key))


@test
def a_key_that_is_full_leaves_the_places_of_its_topic_to_others(place):
    set_topic(place, "parallel=2", "key_parallel=1", "lease=1h")
    add_jobs(place, keyed("a", 5) + keyed("b", 2, priority="low"))
    found = take_ids(place, 5, "--lease", "1h")
    expect(["a-0", "b-0"], sorted(found))
    place.expect_stats("t", running=2, ready=5, limited="parallel")
    set_topic(place, "parallel=none")
    expect({}, take_ids(place, 5))
    place.expect_stats("t", running=2, ready=5, limited="key")
    settle(place, [found["a-0"]], "--done")
    expect(["a-1"], sorted(take_ids(place, 5, "--lease", "1h")))


@test
def the_rate_of_a_topic_and_that_of_its_keys_hold_together(place):
    set_topic(place, "rate=1/h burst 3", "key_rate=1/h burst 2")
    add_jobs(place, keyed("a", 5) + keyed("b", 5) + keyed("c", 1))
    workers = [trace(place, name) for name in ("one", "two")]
    await_ran(place, 3, "one", "two")
    eventually(lambda: place.stats("t")["limited"] == "rate", "it is told")
    place.expect_stats("t", ready=8, running=0, done_total=3)
    ids = ran(place, "one", "two")
    expect_true(max(len(of_key(ids, key)) for key in "abc") < 3, ids)
    set_topic(place, "rate=none")
    await_ran(place, 5, "one", "two")
    await_sleepers(place, 2)
    ids = ran(place, "one", "two")
    expect([2, 2, 1], [len(of_key(ids, key)) for key in "abc"])
    place.expect_stats("t", ready=6, running=0, limited="key")
    set_topic(place, "key_rate=none")
    await_ran(place, 11, "one", "two")
    for worker in workers:
        stop_cleanly(worker)


@test
def a_job_of_a_key_that_waits_uses_no_token_of_its_topic(place):
    set_topic(place, "rate=1/h burst 2", "key_parallel=1", "lease=1h")
    add_jobs(place, keyed("a", 4))
    gate, worker = start_held(place)
    other = trace(place)
    await_sleepers(place)
    place.expect_stats("t", running=1, ready=3, limited="key")
    add_jobs(place, keyed("b", 1))
    await_ran(place, 1)
    expect(["b-0"], ran(place), "the second token was there for it")
    os.write(gate, b"xxxx")
    await_stats(place, done_total=2, running=0, limited="rate")
    for one in (worker, other):
        stop_cleanly(one)
    os.close(gate)


ODD = ("a b", "a\nb", "}", "{x}", "\u00e9", "0", "k" * 2048, "*",
       "[a]", "%d", "|", " ")


@test
def a_key_is_any_text(place):
    set_topic(place, "key_parallel=1", "key_rate=1/h burst 2")
    add_jobs(place, [{"id": "%d-%d" % (at, i), "key": key, "priority": "high",
                      "unique": "%d%s" % (i, key[:99])}
                     for i in range(3) for at, key in enumerate(ODD)])
    expect(sorted(ODD * 3), sorted(job["key"] for job in place.ok("list", "t")))
    for i in range(2):
        found = take_ids(place, len(ODD), "--lease", "1h")
        expect(sorted("%d-%d" % (at, i) for at in range(len(ODD))),
               sorted(found))
        settle(place, found.values(), "--done")
    expect({}, take_ids(place, 1))
    set_topic(place, "key_rate=none")
    expect(len(ODD), len(drain(place)))
    place.ok("topic", "delete", "t")
    expect([], keys(place))


@test
def a_run_beyond_its_timeout_lets_the_next_one_of_its_key_start(place):
    set_topic(place, "key_parallel=1", "timeout=300ms", "retry=1h")
    add_jobs(place, keyed("a", 2))
    worker = place.work(place.handler("later", file="out", until="end"),
                        flags=("--concurrency", "4"))

    def lines():
        try:
            with open(place.path("out"), encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    eventually(lambda: "start a-1" in lines(), "the next one runs")
    expect(["start a-0", "cancel a-0 timeout", "start a-1"], lines()[:3])
    await_stats(place, running=0, scheduled=2, retried_total=2)
    place.write("end", "")
    stop_cleanly(worker)
    expect([], client(place)("KEYS", "weir:{t}:on:*"))


@test
def the_bounds_of_keys_hold_on_a_full_server(place):
    set_topic(place, "key_parallel=1")
    add_jobs(place, keyed("a", 3) + keyed("b", 2, priority="high"))
    fill(client(place))
    ((first, first_id),) = take(place, 1, "--lease", "1h")
    ((second, second_id),) = take(place, 5, "--lease", "1h")
    expect(["b-0", "a-0"], [first_id, second_id])
    expect([], take(place, 5, "--lease", "1h"))
    settle(place, [second], "--done")
    ((_, third_id),) = take(place, 5, "--lease", "1h")
    expect("a-1", third_id)
    fill(client(place), 0)
    expect([], take(place, 5, "--lease", "1h"))
    settle(place, [first], "--done")
    ((_, fourth_id),) = take(place, 5, "--lease", "1h")
    expect("b-1", fourth_id)


@test
def the_rate_of_a_key_holds_on_a_full_server(place):
    set_topic(place, "key_rate=1/h burst 2")
    add_jobs(place, keyed("a", 5))
    fill(client(place))
    expect(2, len(take_ids(place, 1, "--lease", "1h")))
    fill(client(place), 0)
    expect({}, take_ids(place, 1, "--lease", "1h"))


@test
def what_was_held_of_keys_comes_back_on_a_full_server(place):
    """With a key or a priority alone, too."""
    add_jobs(place, [{"id": "a-0", "priority": "high"}])
    ((_, first),) = take(place, 1, "--lease", "300ms")
    add_jobs(place, keyed("a", 1, 1) + [{"id": "plain-0"}])
    fill(client(place))
    eventually(lambda: place.stats("t")["lease_ended_ms"] is not None,
               "its lease is over")
    expect(["a-0", "a-1", "plain-0"], sorted(take_ids(place, 5, "--lease",
                                                      "1h")))
    expect("a-0", first)
    place.expect_stats("t", running=3, ready=0, crashed_total=1)


@test
def what_did_not_start_of_keys_goes_back_on_a_full_server(place):
    add_jobs(place, [{"id": str(i), "priority": "high"} for i in range(8)])
    worker = place.work(place.handler("later", file="out", until="end"),
                        flags=("--concurrency", "1", "--prefetch", "9"))
    await_stats(place, running=8)
    fill(client(place))
    terminate(worker)
    await_stats(place, running=1, ready=7)
    place.write("end", "")
    end_cleanly(worker)
    fill(client(place), 0)
    expect(7, len(drain(place, "rest")))


@test
def on_a_full_server_a_key_that_is_full_is_looked_at_again(place):
    set_topic(place, "key_parallel=1")
    add_jobs(place, keyed("a", 2))
    ((first, _),) = take(place, 5, "--lease", "1h")
    fill(client(place))
    redis = client(place)

    def has_its_turn():
        second, us = redis("TIME")
        turn = int(redis("ZSCORE", "weir:{t}:turns", "2a")) % 2 ** 45
        return turn < int(second) * 1000 + int(us) // 1000

    eventually(has_its_turn, "the time has come to look")
    expect([], take(place, 5))
    settle(place, [first], "--done")
    ((_, job_id),) = take(place, 5)
    expect("a-1", job_id)


BOUNDS = """topic "t" { handler = trace options = "file=%s" %s }
"""


@test
def bounds_of_keys_in_a_file_hold_and_a_reload_changes_them(place):
    add_jobs(place, keyed("a", 5) + keyed("b", 1))
    path = place.write("weir.conf", BOUNDS % (
        place.path("out"), 'key_rate = "1/h burst 2"'))
    worker = place.start("run", "--config", path)
    await_ran(place, 3)
    await_sleepers(place)
    place.expect_stats("t", ready=3, done_total=3)
    place.write("weir.conf", BOUNDS % (place.path("out"),
                                       'key_rate = "1/h burst 4"'))
    worker.send_signal(signal.SIGHUP)
    await_ran(place, 5)
    place.write("weir.conf", BOUNDS % (place.path("out"), ""))
    worker.send_signal(signal.SIGHUP)
    await_ran(place, 6)
    stop_cleanly(worker)
    expect(["a-%d" % i for i in range(5)], of_key(ran(place), "a"))


# --- statistics, deletion, max_pending --------------------------------------


@test
def stats_add_up_while_jobs_of_keys_come_and_go(place):
    set_topic(place, "key_parallel=1", "retry=none")
    add_jobs(place, [job for i in range(4) for job in keyed("k%d" % i, 5)] +
             keyed("late", 3, delay="1h", priority="high"))
    place.expect_stats("t", ready=20, scheduled=3, running=0)
    found = take_ids(place, 20, "--lease", "1h")
    expect(["k0-0", "k1-0", "k2-0", "k3-0"], sorted(found))
    place.expect_stats("t", ready=16, scheduled=3, running=4)
    settle(place, [found["k0-0"]], "--fail")
    settle(place, [found["k1-0"]], "--snooze", "1h")
    settle(place, [found["k2-0"]], "--done")
    place.ok("delete", "t", "k3-0")
    place.ok("delete", "t", "k0-1")
    place.ok("delete", "t", "late-0")
    place.ok("reschedule", "t", "late-1", "--delay", "0ms")
    eventually(lambda: place.stats("t")["ready"] == 16, "it is due")
    place.expect_stats("t", ready=16, scheduled=2, running=0, dead=1,
                       added_total=23, done_total=1, failed_total=1)
    found = take_ids(place, 20, "--lease", "1h")
    expect(["k0-2", "k1-1", "k2-1", "k3-1", "late-1"], sorted(found))
    place.expect_stats("t", ready=11, scheduled=2, running=5)
    expect({"topic": "t", "deleted": 19}, place.ok("purge", "t", "--yes"))
    place.expect_stats("t", ready=0, scheduled=0, running=0, dead=0)
    result = place.weir("settle", "t", found["k0-2"], "--done")
    expect(3, result.code, result.err)
    expect([], client(place)("KEYS", "weir:{t}:on:*"))


@test
def a_topic_of_3000_keys_leaves_nothing_when_it_is_deleted(place):
    set_topic(place, "key_parallel=1", "key_rate=1/h burst 1")
    add_jobs(place, [job for i in range(3000) for job in keyed(
        "k%d" % i, 2, priority=("urgent", "high", "normal", "low")[i % 4])])
    running = sum(len(take(place, 1000, "--lease", "1h")) for _ in range(2))
    expect_true(running > 500, "%d run" % running)
    expect(running, place.stats("t")["running"])
    expect({"topic": "t", "deleted": 6000},
           place.ok("topic", "delete", "t", "--yes"))
    expect([], keys(place))
    add_jobs(place, keyed("k0", 2))
    expect(["k0-0", "k0-1"], drain(place))


@test
def two_producers_of_jobs_with_keys_add_no_more_than_may_wait(place):
    set_topic(place, "max_pending=100")
    producers = []
    for name in "ab":
        lines = place.write(name, "".join(
            json.dumps({"id": "%s-%d" % (name, i), "key": "k%d" % (i % 7),
                        "priority": ("high", "low")[i % 2]}) + "\n"
            for i in range(300)))
        producers.append(place.start("add", "t", "--jsonl", lines, "--json"))
    told = []
    for producer in producers:
        out, err = producer.communicate()
        told.append(json.loads(out))
        expect(1, producer.returncode, err)
        expect_in("max_pending", err)
    expect(100, sum(one["added"] for one in told), told)
    expect(500, sum(one["refused"] for one in told), told)
    place.expect_stats("t", ready=100, added_total=100)
    expect(len(client(place)("KEYS", "weir:{t}:p:*")),
           client(place)("HLEN", "weir:{t}:of"))
    running = take(place, 10, "--lease", "1h")
    add_jobs(place, keyed("more", 10))
    place.weir("add", "t", "--key", "more").expect_complaint(1, "max_pending")
    settle(place, [token for token, _ in running], "--done")
    expect(100, len(drain(place)))
    expect(0, client(place)("HLEN", "weir:{t}:of"))
    place.expect_stats("t", ready=0, running=0, done_total=110)


# --- by hand, beside a worker -----------------------------------------------


@test
def a_shell_and_a_worker_share_keys_one_job_of_each_at_a_time(place):
    set_topic(place, "key_parallel=1")
    add_jobs(place, keyed("a", 3) + keyed("b", 3))
    mine = dict(reversed(one) for one in take(place, 1, "--lease", "1h"))
    expect(["a-0"], sorted(mine))
    worker = trace(place)
    await_ran(place, 3)
    await_sleepers(place)
    expect(["b-0", "b-1", "b-2"], ran(place))
    expect([], take(place, 5))
    settle(place, [mine["a-0"]], "--done")
    await_ran(place, 5)
    await_stats(place, done_total=6, running=0)
    stop_cleanly(worker)
    expect(["a-1", "a-2"], ran(place)[3:])


@test
def each_verdict_by_hand_lets_the_next_job_of_its_key_start(place):
    set_topic(place, "key_parallel=1", "retry=1h")
    add_jobs(place, keyed("a", 6, priority="urgent"))
    for verdict in (("--done",), ("--retry",), ("--snooze", "1h"), ("--fail",),
                    ("--retry", "--delay", "1h")):
        found = take_ids(place, 5, "--lease", "1h")
        expect(1, len(found), found)
        settle(place, found.values(), *verdict)
    expect(["a-5"], sorted(take_ids(place, 5, "--lease", "1h")))
    place.expect_stats("t", running=1, scheduled=3, dead=1, done_total=1)


@test
def what_a_shell_took_and_left_comes_back_before_its_key_goes_on(place):
    set_topic(place, "key_parallel=1")
    add_jobs(place, keyed("a", 2))
    ((token, job_id),) = take(place, 5, "--lease", "300ms")
    expect("a-0", job_id)
    worker = trace(place)
    await_ran(place, 2)
    stop_cleanly(worker)
    expect(["a-0", "a-1"], ran(place))
    expect(3, place.weir("settle", "t", token, "--done").code)
    place.expect_stats("t", done_total=2, crashed_total=1, running=0)
    expect([], client(place)("KEYS", "weir:{t}:on:*"))


@test
def a_take_that_waits_is_woken_when_its_key_is_free(place):
    set_topic(place, "key_parallel=1")
    add_jobs(place, keyed("a", 2))
    gate, worker = start_held(place)
    waiting = place.start("take", "t", "--wait", "1h", "--lease", "1h")
    await_sleepers(place)
    place.ok("delete", "t", "a-0")
    out, err = waiting.communicate()
    expect((0, "a-1"), (waiting.returncode, out.split(" ")[1]), err)
    os.write(gate, b"x")
    stop_cleanly(worker)
    os.close(gate)


run_together(3)
