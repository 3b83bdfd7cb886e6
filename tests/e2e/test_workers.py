# SPDX-License-Identifier: MIT
"""Who runs what: weir workers, and show of a job that runs."""

import re
import signal
import socket
import time

from cluster import Cluster, ask, slot_of
from e2e import (await_line, end_cleanly, eventually, expect, expect_in,
                 expect_true, kill, run_together, signal_again, stop_cleanly,
                 terminate, test)
from redis_server import Clocked, Server, use_good_plugins
from resp import Client
from sentinel import Trio

KEY = "weir:{weir:topics}:workers"

run_together(6)


def config(place, name, topic, after="0ms", more=""):
    """A file of a worker that calls itself so; its jobs do not end by
    themselves."""
    return place.write(name + ".conf",
                       'worker { name = "%s" drain = 0ms }\n'
                       'topic "%s" { handler = later options = { "file=%s", '
                       '"after=%s" } %s }\n'
                       % (name, topic, place.path(name), after, more))


def work(place, name, topic, **more):
    return place.work(flags=("--config", config(place, name, topic, **more)))


def is_running(place, topic, job_id):
    job = place.ok("show", topic, job_id)
    return job if job["state"] == "running" else None


# --- show -------------------------------------------------------------------

@test
def show_names_who_runs_a_job_since_when_and_how_long(place):
    for topic in ("a", "b", "c"):
        place.add(topic, "1")
        work(place, "worker-" + topic, topic, more="lease = 20s")
    for topic in ("a", "b", "c"):
        job = eventually(lambda: is_running(place, topic, "1"), "it runs")
        expect("worker-" + topic, job["worker"])
        expect_true(abs(time.time() * 1000 - job["claimed_ms"]) < 60000,
                    "it was claimed a moment ago")
        expect_true(0 < job["lease_left_ms"] <= 20000, "its lease lasts")
        text = place.weir("show", topic, "1").out
        expect_in("worker    worker-%s\n" % topic, text)
        expect_true(re.search("^lease +(1?[0-9]s)?([0-9]+ms)? left$", text,
                              re.M), text)


@test
def a_list_names_who_runs_each_job(place):
    for worker in ("one", "two"):
        place.add_lines("t", 3, '{"id":"%s-%%d"}' % worker)
        process = work(place, worker, "t", more="lease = 60s")
        eventually(lambda: all(is_running(place, "t", "%s-%d" % (worker, i))
                               for i in range(3)), "they run")
        process.send_signal(signal.SIGSTOP) # or it takes the other's jobs
    place.add("t", "later", "--delay", "1h")
    jobs = {job["id"]: job for job in place.ok("list", "t")}
    expect(7, len(jobs))
    for worker in ("one", "two"):
        for i in range(3):
            job = jobs["%s-%d" % (worker, i)]
            expect(worker, job["worker"])
            expect_true(abs(time.time() * 1000 - job["claimed_ms"]) < 60000,
                        "it was claimed a moment ago")
            expect_true("lease_left_ms" not in job, "show tells it")
    expect_true("worker" not in jobs["later"], "it waits")
    expect_in("running  added", place.weir("list", "t").out)
    expect_in("  worker two  attempt 0", place.weir("list", "t").out)


@test
def a_list_goes_on_where_nothing_tells_who_runs_it(place):
    place.add("t", "1")
    work(place, "one", "t", more="lease = 20s")
    eventually(lambda: is_running(place, "t", "1"), "it runs")
    admin = Client(place.data + "/redis.sock")
    for value in (None, b"\xc1", b"\x92\xa4@one", b"\x92\x01\x02", b"\x01",
                  b"\x92\xd9\x60@" + b"x" * 95 + b"\x01"):
        for token in admin("HKEYS", "weir:{t}:held"):
            admin("HSET", "weir:{t}:held", token, value or b"")
        (job,) = place.ok("list", "t")
        expect(["1", False], [job["id"], "worker" in job])
    admin("DEL", "weir:{t}:held")
    admin("SET", "weir:{t}:held", "no hash")
    (job,) = place.ok("list", "t")
    expect(["1", False], [job["id"], "worker" in job])


@test
def show_tells_of_no_worker_where_none_has_the_job(place):
    place.add("t", "1")
    expect_true("worker" not in place.ok("show", "t", "1"), "it waits")
    worker = work(place, "one", "t", more="lease = 1s")
    eventually(lambda: is_running(place, "t", "1"), "it runs")
    kill(worker)
    expect("one", place.ok("show", "t", "1")["worker"])
    eventually(lambda: place.ok("show", "t", "1")["lease_left_ms"] == 0,
               "its lease ended")
    expect_in("lease     ended; runs again when a worker serves the topic\n",
              place.weir("show", "t", "1").out)
    place.weir("run", "--handle", place.echo("t"), "--until-empty")
    place.weir("show", "t", "1").expect_complaint(3, "no job")


# --- workers ----------------------------------------------------------------

def workers(place):
    return {one["name"]: one for one in place.ok("workers")["workers"]}


def topics_of(worker):
    return [topic["topic"] for topic in worker["topics"]]


def await_workers(place, *names):
    eventually(lambda: set(workers(place)) == set(names),
               "the workers are %s" % (names,))
    return workers(place)


@test
def workers_tell_who_they_are_and_what_they_do(place):
    place.add("b", "1")
    started = time.time() * 1000
    one = work(place, "one", "a")
    two = place.work(flags=("--config", place.write(
        "two.conf", 'worker { name = "two" }\n'
        'topic "b" { handler = later options = { "file=%s", "after=0ms" } }\n'
        'topic "b2" { handler = later concurrency = 4 '
        'options = { "file=%s" } }\n'
        % (place.path("two"), place.path("two")))))
    await_workers(place, "one", "two")
    eventually(lambda: workers(place)["two"]["running"] == 1, "it tells of it")
    told = workers(place)
    expect(["a"], topics_of(told["one"]))
    expect([{"topic": "b", "concurrency": 256, "held": 1, "running": 1},
            {"topic": "b2", "concurrency": 4, "held": 0, "running": 0}],
           told["two"]["topics"])
    expect(2, told["two"]["topics_total"])
    expect(1, told["two"]["held"])
    expect([one.pid, two.pid], [told["one"]["pid"], told["two"]["pid"]])
    for worker in told.values():
        expect(["unix", 1, False], [worker["transport"], worker["connections"],
                                    worker["stopping"]])
        expect(socket.gethostname(), worker["host"])
        expect_in("weir " + worker["version"], place.weir("--version").out)
        expect_true(abs(worker["since_ms"] - started) < 60000, "it began now")
        expect_true(worker["since_ms"] <= worker["seen_ms"], "it told it then")
    lines = place.weir("workers").out.splitlines()
    expect(["WORKER", "TOPICS", "HELD", "RUNNING", "SINCE", "LAG", "CONN"],
           lines[0].split())
    expect(["two", "b,b2", "1", "1"], lines[2].split()[:4])
    wide = place.weir("workers", "--wide").out
    expect_in(str(two.pid), wide)
    expect_in(" b=1/256,b2=0/4 ", wide)


@test
def a_worker_that_stops_is_gone_at_once(place):
    expect_in("no worker is there", place.weir("workers").err)
    worker = work(place, "one", "t")
    await_workers(place, "one")
    stop_cleanly(worker)
    expect({}, workers(place))


@test
def a_worker_that_drains_is_there_until_it_ends(place):
    place.add("t", "1")
    place.write("conf", 'worker { name = "one" drain = 60s }\n'
                'topic "t" { handler = later options = { "file=%s", '
                '"after=0ms" } }\n' % place.path("out"))
    worker = place.work(flags=("--config", place.path("conf")))
    await_workers(place, "one")
    eventually(lambda: is_running(place, "t", "1"), "it runs")
    terminate(worker)
    eventually(lambda: workers(place)["one"]["stopping"], "it says so")
    expect_in(" stopping", place.weir("workers").out)
    signal_again(worker)
    end_cleanly(worker)
    expect({}, workers(place))


@test
def a_worker_that_is_killed_is_gone_15_s_later(place):
    server = Clocked(place)
    worker, _ = work(place, "one", "t"), work(place, "two", "t")
    await_workers(place, "one", "two")
    kill(worker)
    expect_true("one" in workers(place), "not at once")
    server.advance(15000)
    await_workers(place, "two")


@test
def a_worker_that_stands_still_is_gone_and_comes_back(place):
    worker = work(place, "one", "t")
    await_workers(place, "one")
    worker.send_signal(signal.SIGSTOP)
    await_workers(place)
    worker.send_signal(signal.SIGCONT)
    told = await_workers(place, "one")
    eventually(lambda: workers(place).get("one", {"lag_us": 0})["lag_us"] >
               1000000, "its loop was late")
    stop_cleanly(worker)


@test
def two_workers_of_one_name_are_two(place):
    for topic in ("a", "b"):
        place.work(flags=("--config", place.write(topic, (
            'worker { name = "same" }\ntopic "%s" { handler = later '
            'options = { "file=%s" } }\n') % (topic, place.path("out")))))
    eventually(lambda: [["a"], ["b"]] ==
               sorted(topics_of(one) for one in
                      place.ok("workers")["workers"]), "both are there")
    expect(["same"], list(workers(place)))


@test
def a_worker_names_1000_topics_in_byte_order(place):
    place.work(*(place.echo("topic-%04d" % i) for i in range(1001)),
               flags=("--log-level", "warn"))
    eventually(lambda: place.ok("workers")["workers"], "it is there")
    told = place.ok("workers")["workers"][0]
    expect(["topic-%04d" % i for i in range(1000)], topics_of(told))
    expect(1001, told["topics_total"])
    lines = place.weir("workers", env={"COLUMNS": "80"}).out.splitlines()
    named, rest = re.search(r"(topic-\S+) \+(\d+) ", lines[1]).groups()
    expect(1001, len(named.split(",")) + int(rest))
    expect_true(max(len(line) for line in lines) <= 80, "it fits: %r" % lines)
    record = Client(place.data + "/redis.sock")("HVALS", KEY)[0]
    expect_true(len(record) < 25000, "it has %d bytes" % len(record))


@test
def projects_with_a_prefix_see_their_own_workers(place):
    place.add("t", "1")
    socket_path = place.data + "/redis.sock"
    work(place, "mine", "t")
    place.env["WEIR_REDIS"] = "unix://" + socket_path + "?prefix=other"
    work(place, "yours", "t")
    await_workers(place, "yours")
    del place.env["WEIR_REDIS"]
    await_workers(place, "mine")
    expect(1, Client(socket_path)("HLEN", "other:{other:topics}:workers"))


@test
def a_worker_that_may_not_tell_it_goes_on(place):
    server = Server(place)
    admin = server.guard(place.weir("doctor", "--acl").out.replace(
        "~weir:*", "~weir:{t}:* ~weir:topics"))
    place.env["WEIR_REDIS"] = server.url_of("weir:pw")
    worker = work(place, "one", "t", after="1ms")
    await_line(worker, "weir workers will not show this worker: NOPERM")
    place.add("t", "1")
    eventually(lambda: place.stats("t")["done_total"] == 1, "it works")
    place.weir("workers").expect_complaint(1, "NOPERM")
    admin("ACL", "SETUSER", "weir", "~weir:*")
    await_workers(place, "one")
    admin("ACL", "SETUSER", "weir", "resetkeys", "~weir:{t}:*", "~weir:topics")
    await_line(worker, "weir workers will not show this worker: NOPERM")
    err = stop_cleanly(worker)
    expect_true("will not show" not in err, "it is said once: %r" % err)


@test
def a_full_server_takes_nobody_and_nobody_complains(place):
    place.add("t", "1")
    admin = Client(place.data + "/redis.sock")
    admin("CONFIG", "SET", "maxmemory", "1")
    worker = work(place, "one", "t")
    eventually(lambda: refused_beats(admin) >= 3, "it tried")
    expect([], place.ok("workers")["workers"])
    admin("CONFIG", "SET", "maxmemory", "0")
    await_workers(place, "one")
    err = stop_cleanly(worker)
    expect_true("will not show" not in err, err)


def refused_beats(admin):
    """Calls that need room and were refused."""
    for line in admin("INFO", "errorstats").decode().split():
        if line.startswith("errorstat_OOM:"):
            return int(line.partition("count=")[2])
    return 0


# --- several servers --------------------------------------------------------

@test
def nodes_of_a_cluster_know_the_same_workers(place):
    cluster = Cluster(place, replicas=1)
    topics = [cluster.topic(node) for node in cluster.nodes[:3]]
    for topic in topics:
        place.add(topic, "1")
        work(place, "worker-" + topic, topic, more="lease = 20s")
    names = ["worker-" + topic for topic in topics]
    await_workers(place, *names)
    for topic in topics:
        job = eventually(lambda: is_running(place, topic, "1"), "it runs")
        expect("worker-" + topic, job["worker"])
    slot = slot_of("weir:topics")
    expect(slot, slot_of(KEY))
    old = cluster.owner(slot)
    expect(3, ask(old, "HLEN", KEY))
    kill(old.process)
    cluster.take_over(old)
    await_workers(place, *names)


@test
def workers_are_known_behind_a_failover(place):
    use_good_plugins(place)
    trio = Trio(place)
    worker = place.work(place.echo())
    eventually(lambda: place.ok("workers")["workers"], "it is there")
    trio.fail_over()
    eventually(lambda: [2] == [one["connections"] for one in
                               place.ok("workers")["workers"]],
               "it is there again")
    expect_in("tcp+1", place.weir("workers").out)
    stop_cleanly(worker)
