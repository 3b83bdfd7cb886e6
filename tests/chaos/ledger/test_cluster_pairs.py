# SPDX-License-Identifier: MIT
"""Slots move and primaries hand over while something else is under way."""

import os
import threading
import time

from account import read_runs
from cluster import ask, share, slot_of
from e2e import (communicate, end_cleanly, eventually, expect, expect_in,
                 expect_true, rest, stop_cleanly, terminate, test)

MOVES = 200
JOBS = int(os.environ.get("WEIR_CHAOS_JOBS", "500"))


def use(place):
    place.is_evidence = True
    return share(place, replicas=1)


serial = [0]


def apart(cluster):
    """Two topics of two nodes, of names that no other test has."""
    serial[0] += 1
    first, second = cluster.primaries()[1:3]
    return [cluster.topic(node, name="t%d." % serial[0])
            for node in (first, second)]


class Restless(threading.Thread):
    """Slots of topics move from node to node until it is told to end."""

    def __init__(self, cluster, *topics):
        super().__init__(daemon=True)
        self.cluster, self.slots = cluster, [slot_of(one) for one in topics]
        self.is_over, self.moves, self.trouble = threading.Event(), 0, None
        self.start()

    def run(self):
        try:
            while not self.is_over.is_set():
                for slot in self.slots:
                    self.cluster.move_slot(slot, self.cluster.next_to(slot))
                    self.moves += 1
        except BaseException as trouble:
            self.trouble = trouble

    def end(self):
        self.is_over.set()
        self.join()
        if self.trouble is not None:
            raise self.trouble
        expect_true(self.moves > 0, "slots moved")
        print("%d moves" % self.moves)


class Opened:
    """A topic's slot, which is at no server for so long: the key that nearly
    all scripts need is somewhere else already."""

    def __init__(self, cluster, topic):
        self.cluster, self.slot = cluster, slot_of(topic)
        self.key = "weir:{%s}:meta" % topic

    def __enter__(self):
        self.to = self.cluster.next_to(self.slot)
        self.cluster.open_slot(self.slot, self.to)
        self.cluster.move_keys(self.slot, self.to, [self.key])
        return self

    def __exit__(self, kind, *_):
        self.cluster.move_keys(self.slot, self.to)
        self.cluster.close_slot(self.slot, self.to)


def text(place, name):
    try:
        with open(place.path(name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def started(place, name):
    """Ids of jobs in the order of their starts."""
    return [run.job for run in read_runs("", text(place, name))]


class Mutual:
    """Each job of one topic adds one to the other, which lies elsewhere."""

    def __init__(self, place, cluster):
        self.place, self.topics = place, apart(cluster)
        first, second = self.topics
        self.workers = [
            place.work(place.handler("ledger", first, file=first,
                                     follow_to=second)),
            place.work(place.handler("ledger", second, file=second,
                                     follow_to=first))]

    def add(self):
        for topic in self.topics:
            self.place.add_lines(topic, JOBS)

    def is_done(self, topic):
        """While its slot moves without a rest it may not be told."""
        result = self.place.weir("stats", topic, "--json")
        return result.code == 0 and \
            result.json["topics"][0]["done_total"] == 3 * JOBS

    def await_done(self):
        for topic in self.topics:
            eventually(lambda: self.is_done(topic), topic + " is done")

    def judge(self):
        """All are there, once."""
        for topic in self.topics:
            expect(sorted("%d%s" % (i, end) for i in range(JOBS)
                          for end in ("", ".here", ".there")),
                   sorted(started(self.place, topic)), topic)
            eventually(lambda: self.place.stats(topic)["relaying"] == 0,
                       "nothing is left to tell")
            self.place.expect_stats(topic, added_total=3 * JOBS, ready=0)
        for worker in self.workers:
            stop_cleanly(worker)


@test
def jobs_for_another_topic_are_there_once_though_both_slots_move(place):
    cluster = use(place)
    mutual = Mutual(place, cluster)
    restless = Restless(cluster, *mutual.topics)
    mutual.add()
    eventually(lambda: restless.moves >= MOVES or
               all(map(mutual.is_done, mutual.topics)), "slots move")
    restless.end()
    mutual.await_done()
    mutual.judge()


@test
def jobs_for_another_topic_are_there_once_though_primaries_hand_over(place):
    cluster = use(place)
    mutual = Mutual(place, cluster)
    mutual.add()
    for topic in mutual.topics:
        cluster.fail_over(cluster.replica_of(cluster.owner(slot_of(topic))))
    mutual.await_done()
    mutual.judge()


@test
def jobs_with_due_times_of_their_own_run_once_though_their_slot_moves(place):
    cluster = use(place)
    topic, _ = apart(cluster)
    worker = place.work(place.handler("trace", topic, file=topic))
    restless = Restless(cluster, topic)
    place.ok("add", topic, "--jsonl", "-", stdin="\n".join(
        '{"id":"%d","delay":"%dms"}' % (i, 500 + i * 3000 // JOBS)
        for i in range(JOBS)))
    eventually(lambda: len(place.lines(topic)) >= JOBS, "all ran")
    restless.end()
    eventually(lambda: place.stats(topic)["done_total"] == JOBS, "all are done")
    owner, key = cluster.owner(slot_of(topic)), "weir:{%s}:" % topic
    # Verdicts that were sent again came behind the one that ends their claim.
    eventually(lambda: ask(owner, "EXISTS", key + "lease") == 0, "leases end")
    stop_cleanly(worker)
    lines = place.lines(topic)
    expect(sorted(range(JOBS)), sorted(int(line["id"]) for line in lines))
    expect_true(min(line["late_us"] for line in lines) >= 0, "none was early")
    expect(b"2", ask(owner, "HGET", key + "meta", "mixed"))
    for name in ("wait", "run", "due", "held"):
        expect(0, ask(owner, "EXISTS", key + name), name)


@test
def a_topic_that_is_paused_stays_so_though_its_slot_moves(place):
    cluster = use(place)
    topic, _ = apart(cluster)
    worker = place.work(place.handler("ledger", topic, file="out"))
    place.add(topic, "0")
    eventually(lambda: started(place, "out") == ["0"], "it runs")
    restless = Restless(cluster, topic)
    place.ok("pause", topic)
    for i in range(1, 11):
        place.add(topic, str(i))
    eventually(lambda: restless.moves >= 10, "it moves")
    expect(["0"], started(place, "out"))
    restless.end()
    with Opened(cluster, topic):
        resume = place.start("resume", topic)
        rest(0.5)
        expect(["0"], started(place, "out"))
    end_cleanly(resume)
    eventually(lambda: len(started(place, "out")) == 11, "they run")
    stop_cleanly(worker)


@test
def a_worker_told_to_stop_while_a_slot_is_open_tells_its_verdicts(place):
    cluster = use(place)
    topic, _ = apart(cluster)
    worker = place.work(place.handler("later", topic, file="out", until="end"))
    place.add(topic, "1")
    place.add(topic, "2", "--delay", "1h")
    eventually(lambda: "start 1" in text(place, "out"), "it runs")
    with Opened(cluster, topic):
        place.write("end", "")
        terminate(worker)
        rest(2)
        expect(None, worker.poll())
    end_cleanly(worker)
    expect("start 1\n", text(place, "out"))
    place.expect_stats(topic, done_total=1, running=0, ready=0, scheduled=1,
                       crashed_total=0)


@test
def a_worker_told_to_stop_ends_though_a_slot_stays_open(place):
    cluster = use(place)
    topic, _ = apart(cluster)
    place.ok("topic", "set", topic, "lease=2s")
    worker = place.start("run", "--config", place.write(
        "weir.conf", 'worker { drain = 2s }\n'
        'topic %s { handler = later  options = { "file=%s", "until=%s" } }\n'
        % (topic, place.path("out"), place.path("end"))))
    place.add(topic, "1")
    eventually(lambda: "start 1" in text(place, "out"), "it runs")
    with Opened(cluster, topic):
        place.write("end", "")
        terminate(worker)
        _, err = communicate(worker)
        expect(1, worker.returncode, err)
        expect_in("runs again when its lease has ended", err)
    worker = place.work(place.handler("later", topic, file="out", until="end"))
    eventually(lambda: place.stats(topic)["done_total"] == 1, "it is done")
    expect("start 1\nstart 1\n", text(place, "out"))
    stop_cleanly(worker)


def runs_once(place, topic, plugin, meanwhile, **options):
    """A run that lasts longer than its lease, with another worker who would
    take it."""
    place.ok("topic", "set", topic, "lease=5s")
    handler = place.handler(plugin, topic, file="out", **options)
    first = place.work(handler)
    place.add(topic, "1")
    eventually(lambda: place.stats(topic)["running"] == 1, "it runs")
    second = place.work(handler)
    meanwhile()
    eventually(lambda: place.stats(topic)["done_total"] == 1, "it is done")
    place.expect_stats(topic, running=0, ready=0, crashed_total=0)
    stop_cleanly(first)
    stop_cleanly(second)
    expect(1, text(place, "out").count("start") or len(place.lines("out")))


@test
def leases_are_kept_though_the_slot_moves(place):
    cluster = use(place)
    topic, _ = apart(cluster)

    def move():
        restless = Restless(cluster, topic)
        time.sleep(6)  # time is the subject: a lease would end
        restless.end()
    runs_once(place, topic, "later", move, after="8s")


@test
def leases_are_kept_though_the_primary_hands_over(place):
    cluster = use(place)
    topic, _ = apart(cluster)
    runs_once(place, topic, "later", lambda: cluster.fail_over(
        cluster.replica_of(cluster.owner(slot_of(topic)))), after="8s")


@test
def leases_are_kept_at_the_new_node_while_a_handler_holds_the_loop(place):
    cluster = use(place)
    topic, _ = apart(cluster)
    runs_once(place, topic, "trace", lambda: cluster.move_slot(
        slot_of(topic), cluster.next_to(slot_of(topic))), ms=10000)


@test
def what_waits_for_messages_waits_at_the_node_that_the_slot_moved_to(place):
    cluster = use(place)
    for kind in "list", "stream", "sync", "concurrent", "bounded":
        topic, _ = apart(cluster)
        place.ok("topic", "set", topic, "kind=" + kind,
                 *(("delay=0ms",) if kind in ("sync", "concurrent") else ()))
        worker = place.work(place.handler("ledger", topic, file=kind))
        for i in range(4):
            place.add_lines(topic, 1, '{"body":{"number":%d}%s}' % (
                i, ',"group":"g"' if kind == "bounded" else ""))
            eventually(lambda: len(started(place, kind)) == i + 1,
                       "%s runs %d" % (kind, i))
            cluster.move_slot(slot_of(topic), cluster.next_to(slot_of(topic)))
        expect(list("0123"), started(place, kind))
        stop_cleanly(worker)


@test
def the_list_of_topics_outlives_the_node_that_has_it(place):
    cluster = use(place)
    topics = apart(cluster)
    for topic in topics:
        place.add(topic, "1", "--delay", "1h")
    node = cluster.owner(slot_of("weir:topics"))
    replica = cluster.replica_of(node)
    key = ask(node, "SMEMBERS", "weir:topics")
    expect_true({one.encode() for one in topics} <= set(key), "they are there")
    node.kill()
    cluster.take_over(node)
    topics += apart(cluster)
    for topic in topics:
        place.add(topic, "2", "--delay", "1h")
    expect_true(set(topics) <= set(place.ok("topic", "list")["topics"]),
                "they are known")
    expect(None, replica.primary_id())
    node.start()
    cluster.await_well()
