# SPDX-License-Identifier: MIT
"""Servers that refuse commands while a worker runs: rights that were taken
away, and nodes of a Redis Cluster."""

import time

from e2e import (end_cleanly, eventually, expect, expect_in, expect_true, kill,
                 stop_cleanly, test, time_test)
from redis_server import Server, use_good_plugins


class Worker:
    """weir run in the background, with what it logs in a file."""

    def __init__(self, place, url):
        use_good_plugins(place)
        self.place, self.name = place, place.path("worker.log")
        place.env["WEIR_REDIS"] = url
        place.weir("add", "t", "--id", "0", "--redis", url)
        self.process = place.work(place.echo(name="ran"))
        self.lines = []
        self.wait_for("0")

    def wait_for(self, job_id):
        eventually(lambda: job_id in [line["id"] for line in
                                      self.place.lines("ran")],
                   "job %s runs" % job_id)

    def log(self):
        """What it said up to its end."""
        self.process.terminate()
        _, err = self.process.communicate()
        expect(0, self.process.returncode, err)
        return err


def rejected(server, name=""):
    """How many commands were refused so far; of one that begins so."""
    return sum(int(line.split("rejected_calls=")[1].split(",")[0])
               for line in server.told("INFO commandstats").splitlines()
               if line.startswith("cmdstat_" + name)
               and "rejected_calls=" in line)


@time_test
def a_right_that_is_taken_away_is_missed_now_and_then(place):
    server = Server(place)
    server.log_in()
    worker = Worker(place, server.url_of("w:pw"))
    server.tell("ACL SETUSER w -evalsha")
    result = place.weir("add", "t", "--id", "1", "--redis", server.url)
    expect(0, result.code, result.err)
    eventually(lambda: rejected(server, "evalsha") > 0, "it is refused")
    time.sleep(1)  # and what is on its way
    began, before = time.monotonic(), rejected(server, "evalsha")
    time.sleep(4)
    more = rejected(server, "evalsha") - before
    took = time.monotonic() - began
    expect_true(more <= 1 + took / 5, "%d more in %.1f s" % (more, took))
    server.tell("ACL SETUSER w +evalsha")
    worker.wait_for("1")
    log = worker.log()
    expect_true(1 <= log.count("see weir doctor") <= 4, log)


def claimed(server):
    return int(server.told("HGET weir:{t}:meta claimed") or 0)


@test
def a_suspect_runs_on_a_full_server_at_its_first_claim(place):
    server = Server(place)
    place.env["WEIR_REDIS"] = server.url
    place.add("t", "1")
    victim = place.work("t=blocking?for=1h", flags=("--lease", "1s"))
    eventually(lambda: claimed(server) > 0, "it is claimed")
    first = claimed(server)
    kill(victim)
    server.tell("CONFIG SET maxmemory 1")
    worker = place.work(place.echo(name="ran"))
    eventually(lambda: place.lines("ran"), "it runs")
    expect(first + 1, claimed(server))
    server.tell("CONFIG SET maxmemory 0")
    stop_cleanly(worker)
    place.expect_stats("t", done_total=1, crashed_total=1, running=0)


def cluster_node(place, name="other"):
    return Server(place, "--cluster-enabled", "yes", name=name)


def await_cluster(server):
    eventually(lambda: "cluster_state:ok" in server.told("CLUSTER INFO"),
               "the cluster is up")


def lone_node(place):
    server = cluster_node(place)
    server.give_slots(0, 16383)
    await_cluster(server)
    return server


def add_second_node(place, server):
    other = cluster_node(place, "second")
    other.tell("CLUSTER MEET 127.0.0.1 %d" % server.port)
    for node in server, other:
        eventually(lambda: "cluster_known_nodes:2" in node.told("CLUSTER INFO"),
                   "they met")
    await_cluster(other)
    return other


@test
def a_lone_node_of_a_cluster_is_a_server_like_others(place):
    server = lone_node(place)
    place.env["WEIR_REDIS"] = server.url
    use_good_plugins(place)
    found = {line["check"]: line for line in place.weir("doctor",
                                                        "--json").json}
    expect("ok", found["cluster"]["status"])
    for job_id in "abcdef":
        place.add("t", job_id)
    place.ok("reschedule", "t", "f", "--delay", "1h")
    expect(["f"], [job["id"] for job in
                   place.ok("list", "t", "--state", "scheduled")])
    place.ok("delete", "t", "f")
    place.ok("delete", "t", "e")
    place.ok("pause", "t")
    place.ok("resume", "t")
    place.ok("topic", "set", "t", "retry=10ms")
    place.drain("t=flaky?fail=9")
    for job_id in "abcd":
        expect("dead", place.ok("show", "t", job_id)["state"])
    place.ok("dead", "purge", "t", "d")
    place.ok("dead", "requeue", "t", "--all")
    place.drain("t=echo")
    expect(3, place.stats("t")["done_total"])
    place.add("t", "g", "--delay", "1h")
    place.ok("purge", "t", "--yes")
    expect(0, place.stats("t")["scheduled"])


@test
def every_kind_works_on_a_lone_node_of_a_cluster(place):
    server = lone_node(place)
    place.env["WEIR_REDIS"] = server.url
    use_good_plugins(place)
    for kind in ("bounded", "list", "stream", "sync", "concurrent"):
        place.ok("topic", "set", kind, "kind=" + kind)
        for i in range(3):
            place.ok("add", kind, "--body", str(i),
                     *(("--group", "g") if kind == "bounded" else ()))
        worker = place.work(place.echo(kind, kind))
        eventually(lambda: len(place.lines(kind)) == 3, kind + " runs")
        stop_cleanly(worker)


@test
def dead_jobs_move_on_a_lone_node_of_a_cluster(place):
    server = lone_node(place)
    place.env["WEIR_REDIS"] = server.url
    use_good_plugins(place)
    place.ok("topic", "set", "t", "retry=none", "on_dead=graves")
    place.add("t", "a")
    place.add("t", "b")
    result = place.drain("t=flaky?fail=9")
    expect([0, 2], [place.stats("t")["dead"], place.stats("t")["failed_total"]])
    expect(2, place.stats("graves")["ready"])
    expect_true("another program" not in result.err, result.err)


@test
def entries_move_on_a_lone_node_of_a_cluster(place):
    server = lone_node(place)
    place.env["WEIR_REDIS"] = server.url
    use_good_plugins(place)
    for kind in ("list", "stream"):
        place.ok("topic", "set", kind, "kind=" + kind, "on_dead=graves",
                 "on_retry=later")
        for body in ("1", "2"):
            place.ok("add", kind, "--body", body)
        for verdict in ("fail", "retry"):
            result = place.weir("run", "--concurrency", "1", "--handle",
                                "%s=flaky?fail=9&verdict=%s" % (kind, verdict),
                                "--until-empty")
            expect(0, result.code, result.err)
            place.ok("add", kind, "--body", "3")
        place.ok("purge", kind, "--yes")
    expect(4, place.stats("graves")["added_total"])
    expect(2, place.stats("later")["added_total"])


@test
def jobs_for_another_topic_arrive_on_a_lone_node_of_a_cluster(place):
    server = lone_node(place)
    place.env["WEIR_REDIS"] = server.url
    place.add_many("t", 2)
    place.drain(place.handler("ledger", follow_to="other", file="out"))
    expect(2, place.stats("t")["done_total"] - 2) # each adds one here as well
    expect(2, place.stats("other")["ready"])
    expect(0, place.stats("t")["relaying"])


@test
def a_node_whose_slots_are_elsewhere_says_where(place):
    other = add_second_node(place, lone_node(place))
    use_good_plugins(place)
    place.env["WEIR_REDIS"] = "redis://127.0.0.1:%d" % other.port
    place.add("t", "x")
    expect("ready", place.ok("show", "t", "x")["state"])
    expect(1, place.stats("t")["ready"])
    place.drain("t=echo")
    expect(1, place.stats("t")["done_total"])


def slot_of_topic(server):
    return server.tell("CLUSTER KEYSLOT {t}")[1:]


def goes_on(place, server, worker, *words):
    """It said once what was wrong, with one of these words, and works again."""
    result = place.weir("add", "t", "--id", "1")
    expect(0, result.code, result.err)
    worker.wait_for("1")
    log = worker.log()
    lines = [line for line in log.splitlines() if "slot 15891" in line]
    expect_true(any(word in lines[0] for word in words), log)
    expect(2, len(lines), log)
    expect_in("slot 15891 of topic t is served", lines[1])


@time_test
def a_worker_whose_slot_is_taken_away_waits_for_it(place):
    server = lone_node(place)
    worker = Worker(place, server.url)
    server.tell("CONFIG SET cluster-require-full-coverage no")
    slot = slot_of_topic(server)
    server.tell("CLUSTER DELSLOTS " + slot)
    before = rejected(server)
    eventually(lambda: rejected(server) > before, "the worker looks")
    began, before = time.monotonic(), commands(server) + rejected(server)
    time.sleep(4)
    sent = commands(server) + rejected(server) - before
    took = time.monotonic() - began
    expect_true(sent < 20 * took, "%d commands in %.1f s" % (sent, took))
    server.tell("CLUSTER ADDSLOTS " + slot)
    goes_on(place, server, worker, "CLUSTERDOWN")


def commands(server):
    for line in server.told("INFO stats").splitlines():
        if line.startswith("total_commands_processed:"):
            return int(line.split(":")[1])
    return 0


@test
def a_worker_whose_slot_moves_waits_for_its_end(place):
    server = lone_node(place)
    other = add_second_node(place, server)
    worker = Worker(place, server.url)
    eventually(lambda: place.stats("t")["done_total"] == 1, "it is settled")
    slot = slot_of_topic(server)
    server.tell("CLUSTER SETSLOT %s MIGRATING %s" % (slot,
                                                     other.told("CLUSTER MYID")))
    waiting = place.start("add", "t", "--id", "2")
    before = rejected(server)
    eventually(lambda: rejected(server) > before + 40, "both look")
    server.tell("CLUSTER SETSLOT %s STABLE" % slot)
    end_cleanly(waiting)
    worker.wait_for("2")
    goes_on(place, server, worker, "TRYAGAIN", "ASK")  # from 7.0 on; 6.2
