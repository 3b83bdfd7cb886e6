# SPDX-License-Identifier: MIT
"""What users are told of a server that is full, or takes no command as large as
a verdict."""

import os

from e2e import (eventually, expect, expect_in, expect_true, signal_again,
                 stop_cleanly, terminate, test)
from resp import Client

MIB = 1048576


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


def limit(place):
    redis = client(place)
    redis("CONFIG", "SET", "proto-max-bulk-len", MIB,
          "client-query-buffer-limit", MIB)
    return redis


def body_of(place, size):
    return place.write("body", '"%s"' % ("x" * size))


@test
def a_verdict_larger_than_the_server_takes_kills_its_job_alone(place):
    place.add("t", "other")
    limit(place)
    place.ok("add", "t", "--id", "large", "--body-file",
             body_of(place, MIB - 120), "--retry", "1h ...")
    place.add("t", "after")
    worker = place.work(place.handler("trace", file="out", fail=1),
                        place.handler("trace", "u", file="u"))
    eventually(lambda: place.stats("t")["dead"] == 1, "the large one is dead")
    reason, error = place.dead("large")
    expect("failed", reason)
    expect_in("proto-max-bulk-len", error)
    place.expect_stats("t", running=0, scheduled=2)
    place.add("u", "u")
    eventually(lambda: place.lines("u"), "another topic goes on")
    stop_cleanly(worker)


@test
def a_job_larger_than_the_server_takes_is_refused(place):
    place.ok("topic", "set", "t", "max_body=4MiB")
    limit(place)
    result = place.weir("add", "t", "--body-file", body_of(place, 2 * MIB))
    expect(2, result.code, result.err)
    expect_in("larger than the server takes", result.err)
