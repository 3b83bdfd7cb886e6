# SPDX-License-Identifier: MIT
"""weir topic delete: a topic that is gone from everywhere, and what keeps it."""

import re

from e2e import (await_line, eventually, expect, expect_in, expect_true,
                 stop_cleanly, test)
from resp import Client

KINDS = ("delay", "list", "stream", "bounded", "concurrent", "sync")


def keys(place, topic="t"):
    """What the server still has of it."""
    client = Client(place.path("data") + "/redis.sock")
    return sorted(key.decode() for key in client("KEYS", "weir:{%s}:*" % topic))


def add_one(place, kind):
    how = ["--jsonl", "-"] if kind == "bounded" else ["--body", "1"]
    stdin = '{"group":"g","body":1}\n' if kind == "bounded" else None
    place.ok("topic", "set", "t", "kind=" + kind)
    place.ok("add", "t", *how, stdin=stdin)


def expect_gone(place):
    place.weir("stats", "t").expect_complaint(3, 'there is no topic "t"')
    place.weir("topic", "show", "t").expect_complaint(3, "there is no topic")
    expect([], [name for name in place.ok("topic", "list")["topics"]
                if name == "t"])
    expect([], keys(place))


@test
def a_topic_without_jobs_is_gone_from_everywhere(place):
    for kind in KINDS:
        add_one(place, kind)
        place.drain("t=echo")
        place.ok("topic", "set", "t", "concurrency=3")
        expect({"topic": "t", "deleted": 0}, place.ok("topic", "delete", "t"))
        expect_gone(place)


@test
def one_that_holds_jobs_stays_unless_it_is_to_go(place):
    for kind in KINDS:
        add_one(place, kind)
        place.weir("topic", "delete", "t").expect_complaint(
            2, 'topic delete would delete 1 job of topic "t"; give --yes')
        stats = place.stats("t")
        expect(1, stats["ready"] + stats["scheduled"])
        expect(1, place.ok("topic", "delete", "t", "--yes")["deleted"])
        expect_gone(place)


@test
def one_that_does_not_exist_is_told_with_what_is_meant(place):
    place.ok("topic", "set", "order.close", "ttl=1h")
    place.weir("topic", "delete", "order.clos").expect_complaint(
        3, 'there is no topic "order.clos"; did you mean "order.close"?')


@test
def one_that_is_served_stays_until_its_workers_end(place):
    for kind in ("delay", "bounded", "concurrent"):
        add_one(place, kind)
        worker = place.work("t=echo")
        eventually(lambda: place.stats("t")["done_total"] == 1, "it runs")
        eventually(lambda: "serves it" in place.weir("topic", "delete",
                                                     "t").err, "it sleeps")
        result = place.weir("topic", "delete", "t", "--yes")
        expect(1, result.code, result.err)
        expect_true(re.search('topic "t" stays: worker [^ @]+ serves it, stop '
                              "that one first\n$", result.err), result.err)
        stop_cleanly(worker)
        place.ok("topic", "delete", "t")
        expect_gone(place)


@test
def one_that_is_made_again_begins_anew_and_its_tokens_go_on(place):
    add_one(place, "delay")
    place.drain("t=echo")
    place.ok("topic", "set", "t", "retry=1s", "max_pending=1")
    place.ok("pause", "t")
    client = Client(place.path("data") + "/redis.sock")
    last = int(client("HGET", "weir:{t}:meta", "claimed"))
    place.ok("topic", "delete", "t")
    for job_id in "12":
        place.add("t", job_id)
    expect({}, place.ok("topic", "show", "t")["options"])
    place.drain("t=echo")
    place.expect_stats("t", done_total=2, added_total=2, ready=0)
    expect(["t"], place.ok("topic", "list")["topics"])
    expect_true(int(client("HGET", "weir:{t}:meta", "claimed")) > last, last)


@test
def it_may_be_of_another_kind_then(place):
    for kind in KINDS + KINDS[:1]:
        add_one(place, kind)
        place.drain("t=echo")
        place.expect_stats("t", kind=kind, done_total=1)
        place.ok("topic", "delete", "t")


@test
def one_whose_name_alone_is_left_can_be_deleted_again(place):
    place.ok("topic", "set", "t", "ttl=1h")
    client = Client(place.path("data") + "/redis.sock")
    client("DEL", *("weir:{t}:" + name for name in ("meta", "ids", "options")))
    expect(["t"], place.ok("topic", "list")["topics"])
    place.ok("topic", "delete", "t")
    expect([], place.ok("topic", "list")["topics"])
    place.weir("topic", "delete", "t").expect_complaint(3, "there is no topic")


@test
def jobs_on_their_way_to_another_topic_keep_it(place):
    place.ok("topic", "set", "t", "retry=none", "on_dead=u")
    place.ok("topic", "set", "u", "max_pending=1")
    place.add("u", "1")
    place.add("t", "1")
    worker = place.work("t=flaky?fail=9")
    await_line(worker, "is full")
    stop_cleanly(worker)
    expect(1, place.stats("t")["relaying"])
    result = place.weir("topic", "delete", "t", "--yes")
    expect(1, result.code, result.err)
    expect_in("it holds jobs, or some on their way to other topics", result.err)
    expect(1, place.stats("t")["relaying"])


@test
def of_another_prefix_it_stays(place):
    address = "unix://" + place.path("data") + "/redis.sock?prefix=%s"
    place.ok("topic", "list")  # starts the server
    for prefix in ("shop", "shop:eu"):
        place.env["WEIR_REDIS"] = address % prefix
        place.add("t", "1")
    place.ok("topic", "delete", "t", "--yes")
    expect([], place.ok("topic", "list")["topics"])
    place.env["WEIR_REDIS"] = address % "shop"
    expect(1, place.stats("t")["ready"])
