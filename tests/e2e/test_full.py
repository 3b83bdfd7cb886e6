# SPDX-License-Identifier: MIT
"""What users are told of a server that is full."""

import os

from e2e import (eventually, expect, expect_in, expect_true, signal_again,
                 terminate, test)
from resp import Client


def client(place):
    return Client(os.path.join(place.data, "redis.sock"))


def fill(place):
    redis = client(place)
    redis("CONFIG", "SET", "maxmemory", 1)
    return redis


@test
def commands_say_that_the_server_is_full(place):
    place.add("t", "a")
    fill(place)
    for command in (("topic", "set", "t", "ttl=1h"),
                    ("cron", "add", "s", "--topic", "t", "--every", "1h")):
        result = place.weir(*command)
        result.expect_complaint(1, "full", "maxmemory")
        expect_true("OOM" not in result.err, result.err)


@test
def a_worker_that_stops_says_that_the_server_is_full(place):
    place.add("t", "a")
    os.mkfifo(place.path("gate"))
    worker = place.work(place.handler("trace", file="out", fail=1,
                                      gate=place.path("gate")))
    eventually(lambda: place.lines("out"), "it runs")
    fill(place)
    with open(place.path("gate"), "w", encoding="ascii") as gate:
        gate.write("x")
    eventually(lambda: place.stats("t")["running"] == 1, "it is held")
    terminate(worker)
    signal_again(worker)
    _, err = worker.communicate()
    expect(1, worker.returncode, err)
    expect_in("1 verdicts were not taken, as the server is full", err)
    expect_true("did not answer" not in err, err)
