# SPDX-License-Identifier: MIT
"""Jobs with keys, and who works on them."""

import json
import os
from urllib.parse import quote

from e2e import (eventually, expect, expect_in, expect_true, kill,
                 stop_cleanly)
from resp import Client

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


def trace(place, name="out", flags=(), lease="1h", **options):
    return place.work(place.handler("trace", file=name, **options),
                      flags=("--lease", lease, *flags))


def drain(place, name="out"):
    place.drain(place.handler("trace", file=name))
    return ran(place, name)


def ran(place, *names):
    return [line["id"] for name in names or ("out",)
            for line in place.lines(name)]


def of_key(ids, key):
    return [job_id for job_id in ids if job_id.split("-")[0] == key]


def await_ran(place, count, *names):
    eventually(lambda: len(ran(place, *names)) >= count, "%d jobs ran" % count)
    expect(count, len(ran(place, *names)), "jobs that ran")


def drain_ready(place, count):
    worker = trace(place)
    await_ran(place, count)
    stop_cleanly(worker)
    return ran(place)


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


LEDGER = """#!/bin/sh
read -r job
id=${job#*'"id":"'}
id=${id%%'"'*}
echo "start $1 $id" >>"$2"
while [ -e "$2.held" ]; do sleep 0.05; done
sleep 0.0$3
echo "end $1 $id" >>"$2"
"""


def execute(place, worker, hundredths=1, lease="1h"):
    """Who has a lease of 1 s may lose it where the machine is busy, and what it
    runs is run beside it then."""
    if not os.path.exists(place.path("script")):
        os.chmod(place.write("script", LEDGER), 0o755)
    command = "%s %s %s %d" % (place.path("script"), worker,
                               place.path("ledger"), hundredths)
    return place.work(place.handler("exec", command=quote(command)),
                      flags=("--lease", lease, "--concurrency", "16"))


def hold_runs(place):
    """Runs of execute() do not end before let_run()."""
    place.write("ledger.held", "")


def let_run(place, count):
    """End the barrier when so many runs have begun."""
    eventually(lambda: len(ledger(place)) >= count, "%d runs begin" % count)
    os.remove(place.path("ledger.held"))


def ledger(place):
    try:
        with open(place.path("ledger"), encoding="utf-8") as file:
            return [line.split() for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []


def kill_workers_at_work(place, times, jobs):
    """Until all these jobs are done. Returns who was killed."""
    workers, killed = {}, []
    for i in range(3):
        workers["w%d" % i] = execute(place, "w%d" % i, lease="5s")
    for i in range(3, 3 + times):
        count = len(ledger(place))
        eventually(lambda: len(ledger(place)) > count + 6, "some more ran")
        name = ledger(place)[-1][1]
        if name in workers:
            kill(workers.pop(name))
            killed.append(name)
        workers["w%d" % i] = execute(place, "w%d" % i, lease="5s")
    eventually(lambda: place.stats("t")["done_total"] == jobs, "all are done")
    for worker in workers.values():
        stop_cleanly(worker)
    expect_true(killed, "a worker was killed at work")
    return killed


def most_at_once(lines):
    """Of one key; whose workers are killed are not looked at."""
    running, most = {}, {}
    for what, _, job_id in lines:
        key = job_id.split("-")[0]
        running[key] = running.get(key, 0) + (1 if what == "start" else -1)
        most[key] = max(most.get(key, 0), running[key])
    return most


def expect_in_order(lines, killed):
    """Of a key one at a time. What a killed worker had begun is begun again
    before another one of its key."""
    opened, last = {}, {}
    for what, worker, job_id in lines:
        key, number = job_id.split("-")
        if what == "end":
            if opened.get(key) == (worker, job_id):
                del opened[key]
            continue
        if key in opened:
            expect_in(opened[key][0], killed)
            expect(opened[key][1], job_id, "after one that was killed")
        before = last.get(key, -1)
        expect_true(int(number) in (before, before + 1),
                    "%s follows %s-%d" % (job_id, key, before))
        opened[key], last[key] = (worker, job_id), int(number)
    return last
