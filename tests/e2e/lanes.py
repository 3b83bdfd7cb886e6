# SPDX-License-Identifier: MIT
"""Jobs with keys, and who works on them."""

import json
import os

from e2e import eventually, expect
from resp import Client

LEASE = ("--lease", "1s")


def client(place):
    return Client(os.path.join(place.data, "redis.sock"))


def fill(redis, is_full=1):
    redis("CONFIG", "SET", "maxmemory", is_full)


def add_jobs(place, jobs):
    place.ok("add", "t", "--jsonl", "-",
             stdin="\n".join(json.dumps(job) for job in jobs))


def keyed(key, count, first=0, **more):
    return [{"id": "%s-%d" % (key, i), "key": key, **more}
            for i in range(first, first + count)]


def set_topic(place, *options):
    place.ok("topic", "set", "t", *options)


def trace(place, name="out", flags=(), **options):
    return place.work(place.handler("trace", file=name, **options),
                      flags=(*LEASE, *flags))


def drain(place):
    place.drain(place.handler("trace", file="out"), flags=LEASE)
    return ran(place)


def ran(place, *names):
    return [line["id"] for name in names or ("out",)
            for line in place.lines(name)]


def of_key(ids, key):
    return [job_id for job_id in ids if job_id.split("-")[0] == key]


def await_ran(place, count, *names):
    eventually(lambda: len(ran(place, *names)) >= count, "%d jobs ran" % count)
    expect(count, len(ran(place, *names)), "jobs that ran")


def await_stats(place, **wanted):
    def is_there():
        stats = place.stats("t")
        return all(stats[name] == value for name, value in wanted.items())
    eventually(is_there, "stats become %s" % wanted)


def await_sleepers(place, count=1):
    eventually(lambda: int(client(place)("ZCARD", "weir:{t}:idle")) >= count,
               "%d workers sleep" % count)


def hold(place, name="gate"):
    """A gate that handlers wait at; it is opened by writing to it."""
    os.mkfifo(place.path(name))
    return os.open(place.path(name), os.O_RDWR)


def start_held(place, flags=("--prefetch", "9")):
    """A worker that runs a first job until a byte is written to the gate."""
    gate = hold(place)
    worker = trace(place, "held", flags, gate=place.path("gate"))
    await_ran(place, 1, "held")
    return gate, worker
