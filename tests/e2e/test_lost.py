# SPDX-License-Identifier: MIT
"""Packs that are gone from the server, each one alone."""

import os

from e2e import expect_in, test
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
