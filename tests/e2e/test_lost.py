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
