# SPDX-License-Identifier: MIT
"""Jobs with keys, unique keys and schedules when another server takes over."""

import json
import subprocess
import threading
import time

from cluster import Cluster, slot_of
from e2e import (eventually, expect, expect_in, kill, run_together,
                 stop_cleanly, test)
from lanes import (add_jobs, await_ran, await_stats, execute, keyed, ledger,
                   of_key, ran, set_topic, trace)
from redis_server import Server
from resp import Client
from schedules import add as add_schedule
from schedules import moment_of, ticks
from sentinel import NAME, Fake, Trio, ask, role


def kill_primary(trio):
    """With all that it acknowledged on its replica. Returns until when it took
    anything, in ms."""
    old = trio.primary()
    ask(old.path, "CLIENT", "PAUSE", 600000, "WRITE")
    at = time.time() * 1000
    trio.await_replicas()
    old.kill()
    return at


def later(place, name, *flags):
    """A worker whose runs end when there is a file `end`."""
    return place.work(place.handler("later", file=name, until="end"),
                      flags=("--prefetch", "0", *flags))


def started(place, name):
    try:
        with open(place.path(name), encoding="utf-8") as file:
            return [line.split()[1] for line in file if line[:6] == "start "]
    except FileNotFoundError:
        return []


def expect_keys_free(server):
    client = Client(server.path)
    expect([], client("KEYS", "weir:{t}:on:*") + client("KEYS", "weir:{t}:of"))


# --- keys -------------------------------------------------------------------


def hold_keys(place, lease):
    """The first jobs of three keys run; returns their worker."""
    set_topic(place, "key_parallel=1")
    add_jobs(place, [job for i in range(3) for key in "abc"
                     for job in keyed(key, 1, i, priority="high")])
    first = later(place, "held", "--concurrency", "3", "--lease", lease)
    eventually(lambda: len(started(place, "held")) == 3, "three of them run")
    expect(["a-0", "b-0", "c-0"], sorted(started(place, "held")))
    return first


@test
def what_runs_of_a_key_is_known_to_the_server_that_took_over(place):
    trio = Trio(place)
    first = hold_keys(place, "1h")
    second = trace(place)
    kill_primary(trio)
    new = trio.fail_over()
    add_jobs(place, keyed("d", 1, priority="low"))
    await_ran(place, 1)
    expect(["d-0"], ran(place), "each other key has one that runs already")
    place.write("end", "")
    await_stats(place, done_total=10)
    for worker in (first, second):
        stop_cleanly(worker)
    expect(sorted(["d-0"] + ["%s-%d" % (key, i) for key in "abc"
                             for i in range(3)]),
           sorted(started(place, "held") + ran(place)))
    place.expect_stats("t", running=0, ready=0, crashed_total=0)
    expect_keys_free(new)


@test
def a_key_is_free_though_worker_and_primary_died_together(place):
    trio = Trio(place)
    first = hold_keys(place, "5s")
    kill_primary(trio)
    kill(first)
    new = trio.fail_over()
    second = trace(place)
    await_ran(place, 9)
    await_stats(place, done_total=9, running=0, ready=0)
    stop_cleanly(second)
    for key in "abc":
        expect([key + "-0", key + "-1", key + "-2"], of_key(ran(place), key))
    expect_keys_free(new)


class Producer:
    """Adds jobs of five keys until it is ended, each on a replica. An add gives
    up after 10 s of wall time, and a takeover may need that on a busy machine:
    another process continues, and earlier jobs are in doubt."""

    def __init__(self, place):
        self.place, self.ids = place, []
        self.is_over = threading.Event()
        self.begin()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def begin(self):
        self.first = len(self.ids)  # of this process
        self.process = self.place.start("add", "t", "--jsonl", "-",
                                        stdin=subprocess.PIPE)

    def run(self):
        while not self.is_over.is_set():
            at = len(self.ids)
            (job,) = keyed("abcde"[at % 5], 1, at // 5, priority=(
                "urgent", "high", "normal", "low", "normal")[at % 5])
            self.ids.append(job["id"])
            try:
                self.process.stdin.write(json.dumps(job) + "\n")
                self.process.stdin.flush()
            except BrokenPipeError:
                self.process.communicate()
                self.begin()
            time.sleep(0.02)

    def end(self):
        self.is_over.set()
        self.thread.join()
        out, err = self.process.communicate()
        expect("added %d, existing 0, refused 0\n"
               % (len(self.ids) - self.first), out, err)


def expect_all_ran(place, producer, workers):
    await_stats(place, ready=0, running=0, scheduled=0)
    for worker in workers:
        stop_cleanly(worker)
    ids = [job_id for what, _, job_id in ledger(place) if what == "start"]
    expect(set(), set(producer.ids[producer.first:]) - set(ids), "lost")
    expect(set(), set(ids) - set(producer.ids), "never added")
    print("%d jobs, %d runs" % (len(producer.ids), len(ids)))
    place.expect_stats("t", ready=0, running=0, dead=0)


@test
def jobs_with_keys_outlive_primaries_that_die_at_work(place):
    trio = Trio(place)
    set_topic(place, "key_parallel=1", "durability=replica")
    workers = [execute(place, "w%d" % i, lease="5s") for i in range(2)]
    producer = Producer(place)
    eventually(lambda: len(ledger(place)) > 40, "jobs run")
    for _ in range(2):
        old = trio.primary()
        old.kill()
        trio.fail_over()
        count = len(ledger(place))
        eventually(lambda: len(ledger(place)) > count + 40, "jobs run")
        old.start()
        eventually(lambda: role(old) == "slave", "it is a replica")
        trio.await_replicas()
    producer.end()
    expect_all_ran(place, producer, workers)
    expect_keys_free(trio.primary())


@test
def jobs_with_keys_outlive_a_primary_of_a_cluster(place):
    cluster = Cluster(place, primaries=3, replicas=1)
    set_topic(place, "key_parallel=1", "durability=replica")
    workers = [execute(place, "w%d" % i, lease="5s") for i in range(2)]
    producer = Producer(place)
    eventually(lambda: len(ledger(place)) > 40, "jobs run")
    old = cluster.owner(slot_of("{t}"))
    old.kill()
    new = cluster.take_over(old)
    count = len(ledger(place))
    eventually(lambda: len(ledger(place)) > count + 40, "jobs run")
    old.start()
    eventually(lambda: old.primary_id() == new.id and old.is_connected(),
               "it is a replica")
    producer.end()
    expect_all_ran(place, producer, workers)
    expect_keys_free(new)


# --- schedules --------------------------------------------------------------


def await_schedule(place, name, count):
    eventually(lambda: len(times(place, name)) >= count,
               "%s has %d jobs" % (name, count))


def await_tick(place):
    """A list may miss what changes meanwhile."""
    eventually(lambda: ticks(place) == ["s@next"], "there is one tick")


def times(place, name):
    """When its jobs were due, in ms, as they ran."""
    return [moment_of(job_id) for job_id in ran(place)
            if job_id.startswith(name + "@")]


@test
def each_time_has_one_job_though_a_server_took_over(place):
    trio = Trio(place)
    add_schedule(place, "s", "--every", "1s", "--missed", "all")
    workers = [trace(place) for _ in range(2)]
    await_schedule(place, "s", 2)
    at = kill_primary(trio)
    trio.fail_over()
    eventually(lambda: times(place, "s")[-1] > at + 5000, "it goes on")
    await_tick(place)
    for worker in workers:
        stop_cleanly(worker)
    found = sorted(times(place, "s"))
    expect(list(range(found[0], found[-1] + 1, 1000)), found)
    place.expect_stats("t", done_total=len(found), dead=0)


@test
def each_time_has_a_job_though_a_primary_died_with_what_it_had_said(place):
    trio = Trio(place)
    add_schedule(place, "s", "--every", "1s", "--missed", "all")
    # The lease of a claim that a dead primary did not answer must end.
    workers = [trace(place, lease="5s") for _ in range(2)]
    for _ in range(2):
        await_schedule(place, "s", len(times(place, "s")) + 2)
        old = trio.primary()
        old.kill()
        trio.fail_over()
        old.start()
        eventually(lambda: role(old) == "slave", "it is a replica")
        trio.await_replicas()
    await_schedule(place, "s", len(times(place, "s")) + 2)
    await_tick(place)
    for worker in workers:
        stop_cleanly(worker)
    found = sorted(set(times(place, "s")))
    expect(list(range(found[0], found[-1] + 1, 1000)), found)
    print("%d times, %d runs" % (len(found), len(times(place, "s"))))


@test
def times_without_a_server_have_no_job_of_their_own(place):
    """The last of them has one with once, and may have with skip."""
    trio = Trio(place)
    for missed in ("once", "skip"):
        add_schedule(place, missed, "--every", "1s", "--missed", missed)
    worker = trace(place)
    for missed in ("once", "skip"):
        await_schedule(place, missed, 2)
    at = kill_primary(trio)
    eventually(lambda: time.time() * 1000 > at + 4000, "three times pass")
    trio.fail_over()
    for missed in ("once", "skip"):
        eventually(lambda: times(place, missed)[-1] > at + 5000, "it goes on")
    stop_cleanly(worker)
    for missed in ("once", "skip"):
        found = times(place, missed)
        expect(len(set(found)), len(found), "once each")
        expect([], [ms for ms in found if at < ms <= at + 3000], missed)


@test
def with_overlap_skip_a_job_that_runs_over_a_failover_is_the_only_one(place):
    trio = Trio(place)
    add_schedule(place, "s", "--every", "1s", "--overlap", "skip")
    worker = later(place, "runs", "--concurrency", "4", "--lease", "1h")
    eventually(lambda: started(place, "runs"), "its job runs")
    at = kill_primary(trio)
    trio.fail_over()

    eventually(lambda: any((job["due_ms"] or 0) > at + 4000 for job in
                           place.ok("list", "t") if job["id"] == "s@next"),
               "its tick goes on")
    expect(1, len(started(place, "runs")))
    expect(started(place, "runs"), [job["id"] for job in place.ok("list", "t")
                                    if job["id"] != "s@next"])
    place.write("end", "")
    eventually(lambda: len(started(place, "runs")) > 1, "the next one runs")
    stop_cleanly(worker)
    ids = started(place, "runs")
    expect(len(ids), len(set(ids)))


# --- unique keys ------------------------------------------------------------


def expect_held(place, holder, *args):
    result = place.weir("add", "t", *args)
    expect(4, result.code, result.err)
    expect_in('job "%s" of topic "t" has the key' % holder, result.err)


@test
def a_unique_key_is_held_over_a_failover_until_its_job_is_done(place):
    trio = Trio(place)
    hour = ("--unique", "day", "--for", "1d")
    place.add("t", "1", "--unique", "k", "--key", "a")
    place.add("t", "2", *hour)
    worker = later(place, "runs", "--concurrency", "9", "--lease", "1h")
    eventually(lambda: len(started(place, "runs")) == 2, "both run")
    kill_primary(trio)
    trio.fail_over()
    expect_held(place, "1", "--unique", "k")
    expect_held(place, "1", "--unique", "k", "--else", "replace")
    place.write("end", "")
    await_stats(place, done_total=2)
    expect_held(place, "2", *hour)
    place.add("t", "3", "--unique", "k", "--key", "a")
    await_stats(place, done_total=3)
    stop_cleanly(worker)
    expect(["1", "2", "3"], sorted(started(place, "runs")))


@test
def a_key_that_the_new_server_had_not_heard_of_is_taken_there_again(place):
    old = Server(place, name="old")
    new = Server(place, "--replicaof", "127.0.0.1", str(old.port), name="new")
    eventually(lambda: "link_status:up" in new.told("INFO replication"),
               "it replicates")
    sentinel = Fake(old.port)
    place.env["WEIR_REDIS"] = "redis+sentinel://127.0.0.1:%d/%s" % (
        sentinel.port, NAME)
    place.add("t", "before", "--delay", "1h")
    producer = place.start("add", "t", "--jsonl", "-", stdin=subprocess.PIPE)
    add = '{"id":"%s","unique":"%s","key":"a","delay":"1h"}\n'
    producer.stdin.write(add % ("0", "other"))
    producer.stdin.flush()
    eventually(lambda: place.weir("show", "t", "0").code == 0, "it is there")
    eventually(lambda: Client(new.path)("HEXISTS", "weir:{t}:ids", "0"),
               "also at the replica")
    new.tell("REPLICAOF NO ONE")
    producer.stdin.write(add % ("1", "k"))
    producer.stdin.flush()
    eventually(lambda: place.weir("show", "t", "1").code == 0, "it is there")
    expect(0, Client(new.path)("HEXISTS", "weir:{t}:ids", "1"))
    sentinel.say_switch(old.port, new.port)
    old.kill()
    out, err = producer.communicate(add % ("2", "k"))
    expect("added 2, existing 1, refused 0\n", out, err)
    expect_held(place, "1", "--unique", "k")
    expect(["0", "1", "before"],
           sorted(job["id"] for job in place.ok("list", "t")))
    expect("a", place.ok("show", "t", "1")["key"])
    place.ok("delete", "t", "1")
    place.add("t", "3", "--unique", "k")
    sentinel.close()


run_together(3)
