# SPDX-License-Identifier: MIT
"""Jobs with keys and priorities in a cluster whose slots move, key by key, and
stay open for a while."""

import json
import random
import subprocess

from cluster import Cluster, ask, slot_of
from e2e import (eventually, expect, kill, run_together,
                 stop_cleanly, test)
from lanes import (add_jobs, await_ran, await_stats, execute, expect_in_order,
                   hold, keyed, ledger, of_key, ran, set_topic, trace)

SLOT = slot_of("{t}")


def use_cluster(place):
    return Cluster(place, primaries=2)


def names(cluster, pattern="weir:{t}:*"):
    """Keys that the nodes have."""
    return sorted(name.decode() for node in cluster.primaries()
                  for name in ask(node, "KEYS", pattern))


def refusals(cluster):
    """How often nodes sent somebody away."""
    told = "".join(ask(node, "INFO", "errorstats").decode()
                   for node in cluster.running())
    return sum(int(line.partition("count=")[2]) for line in told.split()
               if line.startswith(("errorstat_TRYAGAIN:", "errorstat_ASK:")))


def await_refusal(cluster):
    before = refusals(cluster)
    eventually(lambda: refusals(cluster) > before, "somebody met an open slot")


class Opened:
    """The topic's slot, half of whose keys are at another node; all of them,
    key by key and in any order, at the end."""

    def __init__(self, cluster):
        self.cluster, self.to = cluster, cluster.next_to(SLOT)

    def __enter__(self):
        cluster = self.cluster
        cluster.open_slot(SLOT, self.to)
        self.keys = ask(cluster.owner(SLOT), "CLUSTER", "GETKEYSINSLOT", SLOT,
                        10000)
        random.shuffle(self.keys)
        self.move(len(self.keys) // 2)
        return self

    def move(self, count):
        for key in self.keys[:count]:
            self.cluster.move_keys(SLOT, self.to, [key])
        del self.keys[:count]

    def __exit__(self, kind, *_):
        self.move(len(self.keys))
        self.cluster.move_keys(SLOT, self.to)
        self.cluster.close_slot(SLOT, self.to)


def expect_nothing_stays(place, cluster):
    place.expect_stats("t", ready=0, scheduled=0, running=0)
    expect([], names(cluster, "weir:{t}:on:*") + names(cluster, "weir:{t}:of"))
    place.ok("topic", "delete", "t")
    expect([], names(cluster))


@test
def a_key_runs_one_at_a_time_and_in_order_while_its_slot_moves(place):
    cluster = use_cluster(place)
    set_topic(place, "key_parallel=1")
    levels = ("urgent", "high", "normal", "low", "normal")
    lines = [json.dumps(job) + "\n" for i in range(24)
             for key, level in zip("abcde", levels)
             for job in keyed(key, 1, i, priority=level)]
    producer = place.start("add", "t", "--jsonl", "-", stdin=subprocess.PIPE)
    workers = [execute(place, "w%d" % i) for i in range(3)]
    for move in range(6):
        some = "".join(lines[20 * move:20 * move + 20])
        producer.stdin.write(some[:len(some) // 2])
        producer.stdin.flush()
        ran_before = len(ledger(place))
        eventually(lambda: len(ledger(place)) > ran_before, "some run")
        with Opened(cluster):
            producer.stdin.write(some[len(some) // 2:])
            producer.stdin.flush()
            await_refusal(cluster)
    out, err = producer.communicate()
    expect("added 120, existing 0, refused 0\n", out, err)
    await_stats(place, done_total=120)
    for worker in workers:
        stop_cleanly(worker)
    lines = ledger(place)
    expect(240, len(lines), "starts and ends")
    expect({key: 23 for key in "abcde"}, expect_in_order(lines, []))
    place.expect_stats("t", added_total=120, crashed_total=0)
    expect_nothing_stays(place, cluster)


@test
def priorities_go_first_though_the_slot_moves_between_them(place):
    cluster = use_cluster(place)
    set_topic(place, "ageing=30d")
    place.ok("pause", "t")
    levels = ("low", "normal", "high", "urgent")
    add_jobs(place, [job for level in levels
                     for job in keyed(level, 20, priority=level)])
    with Opened(cluster):
        more = place.start("add", "t", "--jsonl", place.write(
            "more", "".join(json.dumps(job) + "\n" for level in levels
                            for job in keyed(level, 20, 20, priority=level))))
        await_refusal(cluster)
    _, err = more.communicate()
    expect(0, more.returncode, err)
    worker = trace(place, ms=2, flags=("--concurrency", "1"))
    place.ok("resume", "t")
    for count in (10, 60, 110):
        eventually(lambda: len(ran(place)) > count, "some run")
        with Opened(cluster):
            await_refusal(cluster)
    await_ran(place, 160)
    stop_cleanly(worker)
    for level in levels:
        expect(["%s-%d" % (level, i) for i in range(40)],
               of_key(ran(place), level))
    expect([level for level in reversed(levels) for _ in range(40)],
           [job_id.split("-")[0] for job_id in ran(place)])
    expect_nothing_stays(place, cluster)


@test
def what_runs_of_a_key_is_known_where_its_slot_goes(place):
    cluster = use_cluster(place)
    set_topic(place, "key_parallel=1", "lease=1h")
    add_jobs(place, keyed("a", 3))
    hold(place)
    first = trace(place, "held", ("--prefetch", "0"), gate=place.path("gate"))
    await_ran(place, 1, "held")
    second = trace(place)
    with Opened(cluster):
        more = place.start("add", "t", "--id", "b-0", "--key", "b")
        await_refusal(cluster)
    expect(0, more.wait())
    await_ran(place, 1)

    def turn():
        return ask(cluster.owner(SLOT), "ZSCORE", "weir:{t}:turns", "2a")

    before = turn()
    eventually(lambda: turn() != before, "somebody looks whether it may start")
    expect(["b-0"], ran(place), "a key has one that runs already")
    with open(place.path("gate"), "wb") as gate, Opened(cluster):
        gate.write(b"xxx")
        gate.flush()
        await_refusal(cluster)
    await_stats(place, done_total=4)
    for worker in (first, second):
        stop_cleanly(worker)
    expect(["a-0", "a-1", "a-2", "b-0"], sorted(ran(place, "held", "out")))
    expect_nothing_stays(place, cluster)


@test
def a_worker_that_dies_while_the_slot_moves_gives_its_key_back(place):
    cluster = use_cluster(place)
    set_topic(place, "key_parallel=1")
    add_jobs(place, keyed("a", 3))
    first = trace(place, "held", lease="1s", verdict="hold", fail=1)
    await_ran(place, 1, "held")
    with Opened(cluster):
        await_refusal(cluster)
        kill(first)
    second = trace(place)
    await_stats(place, done_total=3)
    stop_cleanly(second)
    expect(["a-0", "a-1", "a-2"], ran(place))
    place.expect_stats("t", crashed_total=1)
    expect_nothing_stays(place, cluster)


@test
def what_a_key_used_of_its_rate_goes_with_its_slot(place):
    cluster = use_cluster(place)
    set_topic(place, "key_rate=1/h burst 2")
    add_jobs(place, keyed("a", 4))
    worker = trace(place)
    await_ran(place, 2)
    with Opened(cluster):
        await_refusal(cluster)
    add_jobs(place, keyed("b", 3))
    await_ran(place, 4)
    expect(["a-0", "a-1", "b-0", "b-1"], ran(place))
    set_topic(place, "key_rate=none")
    await_ran(place, 7)
    stop_cleanly(worker)
    expect_nothing_stays(place, cluster)


@test
def a_topic_with_keys_is_deleted_while_its_slot_moves(place):
    cluster = use_cluster(place)
    set_topic(place, "key_parallel=1", "key_rate=1/h burst 2")
    throttle = {"else": "throttle", "for": "1h"}
    add_jobs(place, [job for i in range(40) for job in keyed(
        "k%d" % i, 2, unique="u%d" % i, **throttle)])
    expect(5, len(place.weir("take", "t", "--limit", "5").out.splitlines()))
    with Opened(cluster):
        deletion = place.start("topic", "delete", "t", "--yes")
        await_refusal(cluster)
    out, err = deletion.communicate()
    expect((0, "deleted 80\n"), (deletion.returncode, out), err)
    expect([], names(cluster))
    add_jobs(place, keyed("k0", 2, unique="u0", **throttle))
    place.expect_stats("t", ready=1, scheduled=1, added_total=2)


@test
def dead_jobs_keep_their_keys_on_their_way_to_another_node(place):
    cluster = use_cluster(place)
    there = cluster.topic(cluster.next_to(SLOT), name="u")
    set_topic(place, "retry=none", "on_dead=" + there, "key_parallel=1")
    place.ok("topic", "set", there, "key_parallel=1")
    add_jobs(place, keyed("a", 3, priority="low") +
             keyed("b", 3, priority="urgent"))
    worker = trace(place, "dies", fail=1, verdict="fail")
    eventually(lambda: ran(place, "dies"), "they die")
    with Opened(cluster):
        await_refusal(cluster)
    eventually(lambda: place.stats(there)["ready"] == 6, "all are there")
    stop_cleanly(worker)
    expect({("a", "low"), ("b", "urgent")},
           {(job["key"], job["priority"]) for job in place.ok("list", there)})
    lines = place.weir("take", there, "--limit", "6", "--lease", "1h").out
    expect(["b-0", "a-0"], [line.split(" ")[1] for line in lines.splitlines()])
    expect_nothing_stays(place, cluster)
    place.ok("topic", "delete", there, "--yes")
    expect([], names(cluster, "weir:{%s}:*" % there))


run_together(2)
