# SPDX-License-Identifier: MIT
"""Nodes of a cluster die, hand over and get slots while topics of all kinds are
served."""

import os

from account import Account, read_runs
from cluster import ELECTIONS, NODE_TIMEOUT_MS, ask, share, slot_of
from e2e import eventually, expect, expect_true, stop_cleanly, test
from ledger import now_ms
from offsets import Offsets, added, cut_off
from producer import Producer
from traffic import LEASE_MS, LONG_LEASE_MS, Traffic, longest_pause_ms

MOVES = int(os.environ.get("WEIR_CHAOS_MOVES", "2"))
HANDOVERS = int(os.environ.get("WEIR_CHAOS_HANDOVERS", "1"))
OPEN_S = float(os.environ.get("WEIR_CHAOS_OPEN_SECONDS", "1"))
IDS = int(os.environ.get("WEIR_CHAOS_IDS", "100000"))
# Alone on a machine below 1 s; on a busy one what is long says nothing of weir.
PAUSE_MS = int(os.environ.get("WEIR_CHAOS_PAUSE_MS", "60000"))
AWAY_S = float(os.environ.get("WEIR_CHAOS_AWAY_SECONDS", "1"))


def use(place):
    """Three primaries, each with a replica. What is stopped here begins again
    with what it had."""
    return share(place, replicas=1, args=("--appendonly", "yes",
                                          "--appendfsync", "no"))


def served(place, cluster, **args):
    """Traffic on the first node of the URL."""
    return Traffic(place, cluster, cluster.primaries()[0], **args)


@test
def slots_that_move_to_and_fro_lose_and_repeat_nothing(place):
    cluster = use(place)
    traffic = served(place, cluster, lease_ms=LONG_LEASE_MS)
    for _ in range(MOVES):
        for topic in traffic.topics:
            cluster.move_slot(topic.slot, cluster.next_to(topic.slot))
    traffic.goes_on("the moves")
    traffic.expect_each_once()
    expect_true(longest_pause_ms(traffic.topics[0].runs()) < PAUSE_MS,
                "it goes on soon")


@test
def a_topic_of_many_ids_moves_with_a_short_pause(place):
    cluster = use(place)
    topic = cluster.topic(cluster.primaries()[0], name="ids")
    # Nodes stand still while they give and take: they must not be given up.
    cluster.set("cluster-node-timeout", 15000)
    expect(IDS, place.ok("add", topic, "--jsonl", "-", stdin="".join(
        '{"id":"x%d","delay":"1h"}\n' % i for i in range(IDS)))["added"])
    producer = Producer(place, cluster.url(), topic, 200,
                        lambda number: '{"id":"%d"}' % number)
    worker = place.work(place.handler("ledger", topic, file="record"))

    def runs():
        if not os.path.exists(place.path("record")):
            return []
        with open(place.path("record"), encoding="utf-8") as file:
            return read_runs("w", file.read())

    eventually(lambda: len(runs()) > 200, "it runs")
    open_ms = 0
    for _ in range(2):
        begin = now_ms()
        cluster.move_slot(slot_of(topic), cluster.next_to(slot_of(topic)))
        open_ms = max(open_ms, now_ms() - begin)
        count = len(runs())
        eventually(lambda: len(runs()) > count + 200, "it goes on")
    jobs = producer.end()
    eventually(lambda: len(runs()) >= len(jobs), "all run")
    account = Account(jobs, runs(), {}, [])
    pause_ms = longest_pause_ms(runs())
    print("%d ids moved twice: %s, longest move %d ms, longest pause %d ms"
          % (IDS, account.summary(), open_ms, pause_ms))
    expect([[], []], [account.wrong[:5], account.repeated])
    expect_true(pause_ms - open_ms < PAUSE_MS, "it goes on soon")
    place.expect_stats(topic, scheduled=IDS, ready=0)
    stop_cleanly(worker)
    place.ok("purge", topic, "--yes")  # nodes would copy them for long
    cluster.set("cluster-node-timeout", NODE_TIMEOUT_MS)


@test
def a_slot_that_is_left_open_is_waited_for(place):
    cluster = use(place)
    traffic = served(place, cluster, lease_ms=LONG_LEASE_MS)
    for topic in traffic.topics[:-1]:
        to = cluster.next_to(topic.slot)
        cluster.open_slot(topic.slot, to)
        keys = ask(cluster.owner(topic.slot), "CLUSTER", "GETKEYSINSLOT",
                   topic.slot, 3)
        cluster.move_keys(topic.slot, to, keys[:1])
        topic.to = to
    traffic.waits(traffic.topics[:-1], OPEN_S)
    traffic.goes_on("slots were opened", traffic.topics[-1:])
    for topic in traffic.topics[:-1]:
        cluster.move_keys(topic.slot, topic.to)
        cluster.close_slot(topic.slot, topic.to)
    traffic.goes_on("they were closed")
    traffic.expect_each_once()


@test
def a_primary_that_hands_over_loses_and_repeats_nothing(place):
    cluster = use(place)
    traffic = served(place, cluster, lease_ms=LONG_LEASE_MS)
    given_up = []  # meanwhile servers let clients wait
    for _ in range(HANDOVERS):
        given_up += cluster.fail_over(
            cluster.replica_of(cluster.owner(traffic.slot)))
        traffic.goes_on("the failover")
    traffic.expect_each_once()
    pause_ms = longest_pause_ms(traffic.topics[0].runs(), given_up)
    print("%d of %d handovers were given up by servers, the longest pause of "
          "the others: %d ms" % (len(given_up), HANDOVERS + len(given_up),
                                 pause_ms))
    expect_true(pause_ms < PAUSE_MS, "it goes on soon")


@test
def a_primary_that_stands_still_is_left(place):
    cluster = use(place)
    traffic = served(place, cluster)
    cluster.set(*ELECTIONS)
    old = cluster.owner(traffic.slot)
    begin = now_ms()
    old.pause()
    cluster.await_promoted(old, traffic.slot)
    promoted = now_ms()
    for t in traffic.topics:
        traffic.goes_on("the failover", [t])
        print(t.name, now_ms() - begin)
    print("taken over after %d ms, all topics go on after %d ms"
          % (promoted - begin, now_ms() - begin))
    old.resume()
    cluster.await_well()
    traffic.note("stop", begin - 1000, now_ms() + LEASE_MS)
    for account in traffic.end():
        if account.kind in ("delay", "bounded"):
            expect([], account.wrong[:5], account.name)


@test
def a_node_is_added_and_another_one_forgotten(place):
    cluster = use(place)
    traffic = served(place, cluster, lease_ms=LONG_LEASE_MS)
    node = cluster.add()
    for topic in traffic.topics:
        cluster.move_slot(topic.slot, node)
    traffic.goes_on("a node was added")
    for topic in traffic.topics:
        cluster.move_slot(topic.slot, cluster.primaries()[0])
    cluster.forget(node)
    traffic.goes_on("a node was forgotten")
    traffic.expect_each_once()


@test
def a_minority_waits_until_the_others_are_back(place):
    cluster = use(place)
    traffic = served(place, cluster, lease_ms=LONG_LEASE_MS)
    own = cluster.owner(traffic.slot)
    others = [node for node in cluster.nodes if node is not own and
              not node.is_gone]
    for node in others:
        node.pause()
    eventually(lambda: not own.is_ok(), "it is alone")
    traffic.waits(traffic.topics, AWAY_S)
    for node in others:
        node.resume()
    cluster.await_well()
    traffic.goes_on("the others are back")
    traffic.expect_each_once()


def bury(cluster, primary):
    """With its replica: nobody has its slots until both are back."""
    replica = cluster.replica_of(primary)
    for node in replica, primary:
        node.kill()
    return primary, replica


def revive(cluster, nodes):
    for node in nodes:
        node.start()
    cluster.await_well()


def without_a_primary(place, coverage, other_goes_on):
    cluster = use(place)
    cluster.set("cluster-require-full-coverage", coverage)
    traffic = served(place, cluster, lease_ms=LONG_LEASE_MS)
    old = cluster.owner(traffic.slot)
    begin = now_ms()
    dead = bury(cluster, old)
    other = cluster.running()[0]
    eventually(lambda: "fail" in next(
        line[2] for line in other.lines() if line[0] == old.id).split(","),
               "it is noticed")
    eventually(lambda: other.is_ok() == other_goes_on, "it is said")
    if other_goes_on:
        traffic.waits(traffic.topics[:-1], AWAY_S)
        traffic.goes_on("another node died", traffic.topics[-1:])
    else:
        traffic.waits(traffic.topics, AWAY_S)
    revive(cluster, dead)
    cluster.set("cluster-require-full-coverage", "yes")
    traffic.goes_on("all are back")
    traffic.note("kill", begin - 1000, now_ms())
    return traffic.end()


@test
def without_a_primary_nobody_is_served_where_all_slots_are_required(place):
    for account in without_a_primary(place, "yes", False):
        expect([], account.wrong[:5], account.name)


@test
def without_a_primary_the_others_are_served_where_this_is_wanted(place):
    accounts = without_a_primary(place, "no", True)
    for account in accounts:
        expect([], account.wrong[:5], account.name)
    expect([], accounts[-1].repeated, accounts[-1].name)


@test
def a_killed_primary_loses_nothing(place):
    cluster = use(place)
    traffic = served(place, cluster, rate=300)
    old = cluster.owner(traffic.slot)
    replica = cluster.replica_of(old)
    offsets = Offsets(old, replica)
    cut_off(old, replica)
    known = added(replica, traffic.topic)
    eventually(lambda: added(old, traffic.topic) > known, "an add is taken")
    forgotten = added(old, traffic.topic) - known
    killed = now_ms()
    old.kill()
    cluster.take_over(old)
    promoted = now_ms()
    eventually(lambda: added(replica, traffic.topic) > known, "an add is taken")
    first = now_ms()
    cut = offsets.known_until(replica)
    print("taken over after %d ms, first add after %d ms, of the last %d ms "
          "nothing was heard, %d adds of the first topic"
          % (promoted - killed, first - killed, killed - cut, forgotten))
    expect_true(forgotten > 0, "something was forgotten")
    expect_true(first - promoted < PAUSE_MS, "it goes on soon")
    traffic.note("kill", cut, now_ms() + LEASE_MS)
    traffic.goes_on("the failover")
    ask(replica, "CONFIG", "SET", "masterauth", "")
    old.start()
    cluster.await_well()
    for account in traffic.end():
        if account.kind in ("delay", "bounded"):
            expect([], account.wrong[:5], account.name)
        # Of the other kinds adds are not said again: what nobody heard of.
        expect_true(len(account.lost) <= account.rate *
                    (killed - cut + 100) / 1000, "%s: %d are lost"
                    % (account.name, len(account.lost)))
        for before, after in account.repeated:
            # A verdict that was lost is said again: on a busy machine when the
            # lease has ended, and somebody else has the job.
            has_ended = (account.kind in ("delay", "bounded", "concurrent") and
                         after.start >= before.start + LEASE_MS)
            expect_true(before.start >= cut or has_ended,
                        "%s: %s ran at %d and at %d, though its claim was known: "
                        "the server that took over heard of all until %d"
                        % (account.name, before.job, before.start, after.start,
                           cut))
            # What has no lease may be taken before and start behind.
            expect_true(after.token > before.token or
                        account.kind in ("list", "stream", "sync"),
                        "%s: token %d behind %d" % (before.job, after.token,
                                                    before.token))
