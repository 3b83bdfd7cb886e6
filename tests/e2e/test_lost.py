# SPDX-License-Identifier: MIT
"""Packs that are gone from the server, each one alone."""

import os

from e2e import eventually, expect, expect_in, kill, test
from resp import Client


def server(place):
    return Client(os.path.join(place.data, "redis.sock"))


@test
def a_job_whose_pack_was_lost_is_counted_and_its_id_is_free(place):
    place.add("t", "a")
    redis = server(place)
    pack, = redis("KEYS", "weir:{t}:p:*")
    redis("DEL", pack)
    expect_in("jobs are lost", place.drain(place.echo()).err)
    place.expect_stats("t", lost_total=1, done_total=0, ready=0, running=0)
    place.add("t", "a")
    place.drain(place.echo())
    place.expect_stats("t", lost_total=1, done_total=1)


@test
def until_empty_ends_where_a_key_of_lanes_was_lost(place):
    place.weir("add", "other")  # starts the server
    redis = server(place)
    for lost in ("lane:2k", "turns", "of", "on:k", "rates", "ids", "held",
                 "idle", "meta", "wait", "run", "lease", "due", "seen"):
        redis("FLUSHALL")
        place.ok("add", "t", "--key", "k", "--id", "a")
        redis("DEL", "weir:{t}:" + lost)
        place.drain(place.echo())


def run_and_kill(place):
    """A worker dies with a job in hand."""
    before = len(place.lines("starts"))
    worker = place.work(place.handler("trace", fail=9, verdict="hold",
                                      file="starts"))
    eventually(lambda: len(place.lines("starts")) > before, "it started")
    kill(worker)


def expect_ends(place, redis, lost, ran):
    """weir run --until-empty ends after the key was lost, and these ran."""
    before = len(place.lines("out"))
    redis("DEL", "weir:{t}:" + lost)
    place.stats("t")
    for claim in redis("ZRANGE", "weir:{t}:lease", "0", "-1"):
        redis("ZADD", "weir:{t}:lease", "1", claim)
    place.drain(place.echo())
    expect((lost, ran), (lost, len(place.lines("out")) - before))


@test
def until_empty_ends_where_a_key_of_a_list_was_lost(place):
    place.weir("add", "other")  # starts the server
    redis = server(place)
    for lost, ran, gone in (("lease", 2, 0), ("held", 0, 2), ("run", 0, 0),
                            ("past", 2, 0)):
        redis("FLUSHALL")
        place.ok("topic", "set", "t", "kind=list", "lease=1h")
        redis("RPUSH", "t", "1", "2")
        run_and_kill(place)
        expect_ends(place, redis, lost, ran)
        expect((lost, gone), (lost, place.stats("t")["lost_total"]))


@test
def until_empty_ends_where_a_key_of_a_bounded_topic_was_lost(place):
    place.weir("add", "other")  # starts the server
    redis = server(place)
    for lost, ran, gone in (("lease", 2, 0), ("out", 1, 1), ("l:a", 1, 1),
                            ("g:b", 1, 1), ("rot", 1, 1), ("seen", 2, 0)):
        redis("FLUSHALL")
        place.ok("topic", "set", "t", "kind=bounded", "lease=1h", "batch=1")
        place.ok("add", "t", "--group", "a")
        run_and_kill(place)
        place.ok("add", "t", "--group", "b")
        expect_ends(place, redis, lost, ran)
        expect((lost, gone), (lost, place.stats("t")["lost_total"]))
