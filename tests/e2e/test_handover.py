# SPDX-License-Identifier: MIT
"""A job that is added alone comes to an idle worker that offered itself, at
once and under a lease: whatever becomes of that worker, the job runs once, or
again where it may have run."""

import os
import signal

from cluster import ask, share
from e2e import eventually, expect, expect_true, kill, stop_cleanly, test, wait
from redis_server import Server
from resp import Client

META = "weir:{t}:meta"


def connection(place):
    try:
        return Client(os.path.join(place.data, "redis.sock"))
    except OSError:  # not there yet, or not any more
        return None


def client(place):
    return eventually(lambda: connection(place), "the server is there")


def await_offer(redis):
    return eventually(lambda: redis("HGET", META, "offer"), "a worker offers")


def work(place, name="out", flags=(), lease="1h", **options):
    return place.work(place.handler("trace", file=name, **options),
                      flags=("--lease", lease, *flags))


def open_gate(path):
    with open(path, "w", encoding="ascii") as gate:
        gate.write("1")


def ran(place, name="out"):
    return [line["id"] for line in place.lines(name)]


def await_ran(place, *ids, name="out"):
    eventually(lambda: ran(place, name) == list(ids), "%s ran" % (ids,))


def offering(place, name="out", **options):
    """An idle worker, and a connection to the server."""
    worker = work(place, name, **options)
    redis = client(place)
    await_offer(redis)
    return worker, redis


@test
def jobs_come_one_by_one_to_a_worker_that_never_waits_for_a_wake_up(place):
    worker, redis = offering(place)
    for number in range(20):
        place.add("t", str(number))
        await_ran(place, *map(str, range(number + 1)))
        await_offer(redis)
    expect(0, int(redis("EXISTS", "weir:{t}:run")), "what runs")
    stop_cleanly(worker)
    place.expect_stats("t", done_total=20, crashed_total=0, retried_total=0)
    expect(None, redis("HGET", META, "offer"))


@test
def a_job_whose_worker_is_killed_before_it_starts_runs_elsewhere(place):
    worker, redis = offering(place, lease="1s")
    os.kill(worker.pid, signal.SIGSTOP)  # its connection stands
    place.add("t", "a")
    expect(1, int(redis("ZCARD", "weir:{t}:run")), "it is handed over")
    kill(worker)
    other = work(place, "other")
    await_ran(place, "a", name="other")
    expect([], place.lines("out"))
    stop_cleanly(other)
    place.expect_stats("t", done_total=1, crashed_total=1)


@test
def a_job_whose_worker_is_killed_while_it_runs_is_blamed_for_nothing(place):
    worker, _ = offering(place, lease="1s", verdict="hold", fail=9)
    place.add("t", "a")
    await_ran(place, "a")
    kill(worker)
    place.ok("topic", "set", "t", "max_crashes=1")
    other = work(place, "other")
    await_ran(place, "a", name="other")
    stop_cleanly(other)
    place.expect_stats("t", done_total=1, dead=0)


@test
def a_worker_that_slept_longer_than_the_lease_does_not_start_the_job(place):
    worker, redis = offering(place, lease="1s")
    os.kill(worker.pid, signal.SIGSTOP)
    place.add("t", "a")
    expect(1, int(redis("ZCARD", "weir:{t}:run")), "it is handed over")
    other = work(place, "other")
    await_ran(place, "a", name="other")
    os.kill(worker.pid, signal.SIGCONT)
    place.add("t", "b")
    eventually(lambda: len(ran(place) + ran(place, "other")) == 2, "b ran")
    expect_true("a" not in ran(place), "it ran once")
    stop_cleanly(worker)
    stop_cleanly(other)
    place.expect_stats("t", done_total=2)


@test
def a_worker_that_is_killed_behind_its_verdict_is_handed_nothing(place):
    worker, redis = offering(place)
    for job in ("a", "b"):  # the second offer comes with the verdict
        place.add("t", job)
        eventually(lambda: job in ran(place), "it ran")
        await_offer(redis)
    kill(worker)
    eventually(lambda: not redis("PUBSUB", "CHANNELS", "weir:wake:*"),
               "nobody listens")
    place.add("t", "c")
    expect(1, int(redis("ZCARD", "weir:{t}:wait")), "it waits")
    other = work(place, "other")
    await_ran(place, "c", name="other")
    stop_cleanly(other)
    place.expect_stats("t", done_total=3, crashed_total=0)


@test
def a_verdict_offers_nobody_once_the_topic_is_paused(place):
    gate = place.path("gate")
    os.mkfifo(gate)
    worker, redis = offering(place, gate=gate)
    place.add("t", "a")
    await_ran(place, "a")
    place.ok("pause", "t")
    open_gate(gate)
    eventually(lambda: place.stats("t")["done_total"] == 1, "it is done")
    expect(None, redis("HGET", META, "offer"))
    place.add("t", "b")
    place.ok("resume", "t")
    await_ran(place, "a", "b")
    open_gate(gate)
    stop_cleanly(worker)
    place.expect_stats("t", done_total=2, crashed_total=0)


@test
def workers_that_end_while_jobs_come_lose_none(place):
    for number in range(12):
        worker = work(place)
        redis = client(place)
        await_offer(redis)
        place.add("t", "%d-a" % number)
        worker.send_signal(signal.SIGTERM)
        place.add("t", "%d-b" % number)
        stop_cleanly(worker)
    place.drain(place.handler("trace", file="out"), flags=("--lease", "1m"))
    expect(24, len(set(ran(place))), "jobs that ran")
    expect(24, len(ran(place)), "runs")
    place.expect_stats("t", done_total=24, crashed_total=0)


@test
def nothing_is_handed_over_while_the_topic_is_paused(place):
    worker, redis = offering(place)
    place.ok("pause", "t")
    place.add("t", "a")
    expect(1, int(redis("ZCARD", "weir:{t}:wait")), "it waits")
    place.ok("resume", "t")
    await_ran(place, "a")
    stop_cleanly(worker)


@test
def a_worker_whose_wake_ups_are_cut_gets_jobs_by_itself(place):
    worker, redis = offering(place)
    redis("CLIENT", "KILL", "TYPE", "pubsub")
    place.add("t", "a")
    await_ran(place, "a")
    stop_cleanly(worker)
    place.expect_stats("t", done_total=1, crashed_total=0)


@test
def a_worker_of_two_topics_is_handed_nothing(place):
    worker = place.work(place.handler("trace", file="out"),
                        place.handler("trace", topic="u", file="u"))
    redis = client(place)
    eventually(lambda: redis("ZCARD", "weir:{t}:idle") == 1 and
               redis("ZCARD", "weir:{u}:idle") == 1 and
               redis("HGET", META, "offer") is None, "it sleeps")
    place.add("t", "a")
    await_ran(place, "a")
    expect(None, redis("HGET", META, "offer"))
    stop_cleanly(worker)


@test
def handed_jobs_are_retried_die_and_are_found_like_others(place):
    worker, _ = offering(place, verdict="fail", fail=99,
                         flags=("--retry", "1h", "--max-dead", "5"))
    place.add("t", "a")
    eventually(lambda: place.stats("t")["dead"] == 1, "it died")
    expect("dead", place.ok("show", "t", "a")["state"])
    stop_cleanly(worker)


# beside other features


@test
def jobs_are_handed_over_within_their_project(place):
    server = Server(place)
    redis, workers = Client(server.path), []
    for prefix in ("one", "two"):
        place.env["WEIR_REDIS"] = server.url + "?prefix=" + prefix
        workers.append(work(place, prefix))
        eventually(lambda: redis("HGET", prefix + ":{t}:meta", "offer"),
                   "a worker offers itself")
    for prefix in ("one", "two"):
        place.env["WEIR_REDIS"] = server.url + "?prefix=" + prefix
        place.add("t", prefix)
        await_ran(place, prefix, name=prefix)
    for worker in workers:
        stop_cleanly(worker)
    expect([], redis("KEYS", "weir:*"))


@test
def a_job_that_a_replica_is_to_have_is_handed_over_at_once(place):
    server = Server(place, "--repl-diskless-sync-delay", "0")
    place.env["WEIR_REDIS"] = server.url
    worker, redis = work(place), Client(server.path)
    await_offer(redis)
    add = place.start("add", "t", "--id", "a", "--durability", "replica")
    await_ran(place, "a")  # it runs though no replica has it
    replica = Server(place, "--replicaof", "127.0.0.1", str(server.port),
                     name="replica")
    expect(0, wait(add), add)
    expect(1, Client(replica.path)("HEXISTS", META, "added"))
    stop_cleanly(worker)


@test
def nothing_is_handed_over_in_a_cluster(place):
    cluster = share(place)
    topic = cluster.topic(cluster.nodes[0], name="lone")
    worker = place.work(place.handler("trace", topic, file="out"))
    for number in range(3):
        eventually(lambda: ask(cluster.nodes[0], "ZCARD",
                               "weir:{%s}:idle" % topic) == 1, "it sleeps")
        expect(None, ask(cluster.nodes[0], "HGET", "weir:{%s}:meta" % topic,
                         "offer"))
        place.add(topic, str(number))
        await_ran(place, *map(str, range(number + 1)))
    stop_cleanly(worker)
