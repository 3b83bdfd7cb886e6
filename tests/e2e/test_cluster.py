# SPDX-License-Identifier: MIT
"""weir on three primaries whose topics lie apart. The tests share a cluster, and
each has topics of its own."""

import atexit
import itertools
import json
import os

from cluster import Cluster, Fake, ask, slot_of
from e2e import (TEST_PLUGINS, Place, await_line, communicate, end_cleanly,
                 eventually, expect, expect_in, stop_cleanly, terminate, test,
                 wait)
from ports import free_port
from redis_server import Server, use_good_plugins

shared = Place()
atexit.register(shared.close)
clusters = []
used = itertools.count()


def three(place):
    """The cluster, which the place's programs talk to, and a topic of each
    node."""
    if not clusters:
        clusters.append(Cluster(shared))
    cluster, nth = clusters[0], next(used)
    place.env["WEIR_REDIS"] = cluster.url()
    use_good_plugins(place)
    return cluster, [cluster.topic(node, nth) for node in cluster.nodes]


def lone(place, name):
    server = Server(place, "--cluster-enabled", "yes", name=name)
    server.give_slots(0, 16383)
    eventually(lambda: "cluster_state:ok" in server.told("CLUSTER INFO"),
               "it is well")
    return server


def url_of(*ports):
    return "redis://" + ",".join("127.0.0.1:%d" % port for port in ports)


# --- where the cluster is -----------------------------------------------------


@test
def who_waits_until_a_job_ends_is_woken_through_the_cluster(place):
    cluster, topics = three(place)
    topic = topics[1]
    place.env["WEIR_PLUGIN_PATH"] = TEST_PLUGINS
    place.ok("topic", "set", topic, "parallel=1", "rate=1/h burst 2",
             "lease=1h")
    place.add_many(topic, 3)
    os.mkfifo(place.path("gate"))
    gate = os.open(place.path("gate"), os.O_RDWR)
    one = place.work(place.handler("trace", topic, file="one",
                                   gate=place.path("gate")))
    eventually(lambda: place.lines("one"), "a job runs")
    two = place.work(place.handler("trace", topic, file="two"))
    key = "weir:{%s}:idle" % topic
    eventually(lambda: int(ask(cluster.nodes[1], "ZCARD", key)) > 0,
               "the other one sleeps")
    terminate(one)
    os.write(gate, b"x")
    eventually(lambda: place.lines("two"), "the other one goes on")
    eventually(lambda: place.stats(topic)["limited"] == "rate",
               "the third waits")
    expect(0, wait(one))
    stop_cleanly(two)
    expect(2, len(place.lines("one")) + len(place.lines("two")))
    os.close(gate)


@test
def a_seed_that_is_away_is_passed_over(place):
    cluster, topics = three(place)
    place.env["WEIR_REDIS"] = url_of(free_port(), cluster.nodes[1].port)
    place.add_many(topics[0], 2)
    result = place.drain(place.echo(topics[0]))
    expect(2, len(place.lines("out")))
    expect_in("no connection to redis://127.0.0.1:", result.err)
    expect_in("connected to " + url_of(cluster.nodes[0].port), result.err)


@test
def a_seed_that_stands_still_is_passed_over_after_a_second(place):
    cluster, topics = three(place)
    still = Fake()
    still.is_silent = True
    place.env["WEIR_REDIS"] = url_of(still.port, cluster.nodes[1].port)
    place.add_many(topics[0], 1)
    result = place.drain(place.echo(topics[0]))
    expect(1, len(place.lines("out")))
    expect_in("no connection to redis://127.0.0.1:%d (no answer to the "
              "handshake within 1000 ms)" % still.port, result.err)
    still.close()


@test
def seeds_that_are_all_away_are_a_sentence_and_exit_5(place):
    url = url_of(free_port(), free_port())
    place.weir("add", "t", "--redis", url).expect_complaint(
        5, "cannot reach redis at " + url, "refused")


@test
def a_seed_is_asked_when_nobody_known_answers(place):
    one, other = lone(place, "one"), lone(place, "other")
    place.env["WEIR_REDIS"] = url_of(one.port, other.port)
    worker = place.work(place.echo())
    await_line(worker, "serving t")
    one.kill()
    place.ok("add", "t", "--redis", other.url)
    eventually(lambda: place.lines("out"), "it runs")
    stop_cleanly(worker)


@test
def several_hosts_that_are_no_cluster_are_wrong_usage(place):
    server = Server(place)
    url = url_of(free_port(), server.port)
    sentence = ("redis at %s: 127.0.0.1 port %d is no node of a cluster, and "
                "several hosts have to be: give one" % (url, server.port))
    place.weir("add", "t", "--redis", url).expect_complaint(2, sentence)
    result = place.weir("run", "--redis", url, "--handle", place.echo())
    expect(2, result.code)
    expect_in(sentence, result.err)


@test
def a_cluster_has_one_database(place):
    cluster, topics = three(place)
    url = url_of(cluster.nodes[0].port) + "/3"
    for command in (["add", topics[0]], ["stats"]):
        place.weir(*command, "--redis", url).expect_complaint(
            2, "redis at %s: a cluster has no database 3" % url)
    result = place.weir("doctor", "--redis", url)
    expect(2, result.code)
    expect_in("a cluster has no database 3", result.out)


@test
def nodes_may_have_addresses_of_ipv6(place):
    cluster = Cluster(place, args=("--bind", "127.0.0.1", "::1",
                                   "--cluster-announce-ip", "::1"))
    use_good_plugins(place)
    place.env["WEIR_REDIS"] = "redis://[::1]:%d" % cluster.nodes[0].port
    topics = [cluster.topic(node) for node in cluster.nodes]
    for topic in topics:
        place.add(topic, "a")
    result = place.drain(*(place.echo(topic) for topic in topics))
    expect(3, len(place.lines("out")))
    expect_in("connected to redis://[::1]:%d" % cluster.nodes[2].port,
              result.err)
    cluster.move_slot(slot_of(topics[0]), cluster.nodes[1])
    place.add(topics[0], "b")


# --- what it does not serve ---------------------------------------------------


def ends(process):
    """Its exit code, and what it said."""
    out, err = communicate(process)
    return process.returncode, out, err


def expect_end(process, code, *words):
    got, out, err = ends(process)
    expect(code, got, err)
    expect("", out)
    expect(1, len(err.splitlines()), err)
    for word in words:
        expect_in(word, err)


@test
def what_no_node_serves_is_a_sentence_and_exit_5(place):
    cluster = Cluster(place, args=("--cluster-require-full-coverage", "no"))
    one, other, dead = cluster.nodes
    use_good_plugins(place)
    opened, unserved = cluster.topic(one), cluster.topic(other)
    served, away = cluster.topic(one, 1), cluster.topic(dead)
    for topic in opened, unserved, served, away:
        place.add(topic, "a")
    empty = Server(place, "--cluster-enabled", "yes", name="empty")
    cluster.open_slot(slot_of(opened), other)
    ask(other, "CLUSTER", "DELSLOTS", slot_of(unserved))
    dead.kill()
    adds = [place.start("add", topic) for topic in (opened, unserved, away)]
    adds.append(place.start("add", "t", "--redis", empty.url))
    kinds = place.start("show", unserved, "a")
    reports = [place.start("stats", *words) for words in ((), ("--json",))]
    places = "cannot reach redis at %s: " % place.env["WEIR_REDIS"]
    no_node = "slot %d of topic %s is served by no node (CLUSTERDOWN "
    moves = "slot %d of topic %s moves, and is at no node ("
    for report in reports:
        code, out, err = ends(report)
        expect(5, code, err)
        expect(1, len(err.splitlines()), err)
        expect_in("weir: stats: 3 of 4 topics cannot be reached: ", err)
        for reason in (moves % (slot_of(opened), opened),
                       no_node % (slot_of(unserved), unserved),
                       "port %d, which has topic %s, is away ("
                       % (dead.port, away)):
            expect_in(reason, err)
    found = {topic["topic"]: topic for topic in json.loads(out)["topics"]}
    expect(1, found[served]["ready"])
    expect({"topic": away, "away": True}, found[away])
    expect(4, len(found))
    expect_end(adds[0], 5, places, moves % (slot_of(opened), opened))
    expect_end(adds[1], 5, places, no_node % (slot_of(unserved), unserved))
    expect_end(kinds, 5, places, no_node % (slot_of(unserved), unserved))
    expect_end(adds[2], 5, places, "127.0.0.1 port %d, which has topic %s, "
               "is away (" % (dead.port, away))
    expect_end(adds[3], 5, empty.url, no_node % (slot_of("t"), "t"))


@test
def the_list_of_topics_is_at_one_node(place):
    cluster = Cluster(place, args=("--cluster-require-full-coverage", "no"))
    slot = slot_of("weir:topics")
    home = cluster.owner(slot)
    other = next(node for node in cluster.nodes if node is not home)
    place.add(cluster.topic(other), "a")
    home.kill()
    place.env["WEIR_REDIS"] = cluster.url()
    watch = place.start("stats", "--watch")
    place.add(cluster.topic(other), "b")
    place.weir("stats").expect_complaint(5, "port %d, which has the list of "
                                         "topics, is away (" % home.port)
    expect(5, wait(watch))
    home.start()
    cluster.await_well()
    place.add(cluster.topic(other), "c")
    expect([cluster.topic(other)], place.ok("topic", "list")["topics"])


def without_one(place):
    """A cluster whose third node is away, without which the others serve. (A
    disk that is busy has everysec answer before it writes.)"""
    cluster = Cluster(place, args=("--cluster-require-full-coverage", "no",
                                   "--appendonly", "yes",
                                   "--appendfsync", "no"))
    use_good_plugins(place)
    topics = [cluster.topic(node) for node in cluster.nodes]
    place.ok("topic", "set", topics[2], "kind=list")
    for topic in topics:
        place.ok("add", topic)
    cluster.nodes[2].kill()
    place.env["WEIR_REDIS"] = cluster.url()
    return cluster, topics


@test
def a_worker_begins_with_the_topics_whose_nodes_are_there(place):
    cluster, topics = without_one(place)
    worker = place.start("run", "--until-empty", *(
        word for topic in topics for word in ("--handle", place.echo(topic))))
    await_line(worker, "%s is served when its server answers" % topics[2])
    eventually(lambda: len(place.lines("out")) == 2, "those of the others run")
    cluster.nodes[2].start()
    end_cleanly(worker)
    expect(sorted(topics), sorted(job["topic"] for job in place.lines("out")))


@test
def what_is_wrong_with_a_topic_whose_node_was_away_ends_a_worker(place):
    cluster, topics = without_one(place)
    config = place.write("weir.conf", """topic %s { handler = echo }
        topic %s { handler = echo kind = bounded }
        """ % (topics[0], topics[2]))
    worker = place.start("run", "--config", config)
    await_line(worker, "serving " + topics[0])
    cluster.nodes[2].start()
    code, _, err = ends(worker)
    expect(2, code, err)
    expect_in("weir.conf:2: kind: topic \"%s\" is stored as one of kind list, "
              "not bounded" % topics[2], err)
    place.expect_stats(topics[0], running=0)


@test
def a_user_who_may_not_ask_for_the_map_is_told_so(place):
    cluster, topics = three(place)
    for node in cluster.nodes:
        node.log_in("-cluster")
    url = cluster.nodes[0].url_of("w:pw")
    place.ok("add", topics[0], "--redis", url)
    place.weir("add", topics[1], "--redis", url).expect_complaint(
        5, "slot %d of topic %s is elsewhere, and the user may not run CLUSTER "
        "SLOTS (MOVED" % (slot_of(topics[1]), topics[1]))


# --- lists and streams --------------------------------------------------------


@test
def a_key_in_another_slot_than_its_topic_is_refused(place):
    cluster, topics = three(place)
    topic, key = topics[0], cluster.topic(cluster.nodes[1], 77)
    for kind, one in ("list", key), ("stream", key), ("list", "x{%s}" % topic):
        text = """redis { url = "%s" }
            topic %s { handler = echo kind = %s key = "%s" }
            """ % (place.env["WEIR_REDIS"], topic, kind, one)
        config = place.write("weir.conf", text)
        is_good = "{" in one
        for command in (["check"], ["run", "--until-empty"]):
            result = place.weir(*command, "--config", config)
            expect(0 if is_good else 2, result.code, result.err)
            if not is_good:
                expect_in("weir.conf:2: key: \"%s\" is in another slot of the "
                          "cluster than topic \"%s\": write a name with {%s} in "
                          "it" % (key, topic, topic),
                          result.err.splitlines()[-1])
    sentence = ("key \"%s\" is in another slot of the cluster than topic %s: "
                "give the topic one with {%s} in it"
                % (key, topics[2], topics[2]))
    place.weir("topic", "set", topics[2], "kind=list", "key=" + key) \
        .expect_complaint(2, "topic set: " + sentence)
    place.ok("topic", "set", topics[2], "kind=list")
    options = "weir:{%s}:options" % topics[2]
    ask(cluster.nodes[2], "HSET", options, "key", key)
    place.weir("add", topics[2]).expect_complaint(2, "add: " + sentence)
    ask(cluster.nodes[2], "HDEL", options, "key")
    place.ok("add", topics[2])


# --- every command ------------------------------------------------------------


@test
def every_command_works_where_topics_lie_apart(place):
    cluster, topics = three(place)
    for topic in topics:
        for job_id in "abcdef":
            place.add(topic, job_id)
        expect(2, place.add_lines(topic, 2)["added"])
        place.ok("reschedule", topic, "f", "--delay", "1h")
        expect(["f"], [job["id"] for job in
                       place.ok("list", topic, "--state", "scheduled")])
        expect("ready", place.ok("show", topic, "a")["state"])
        place.ok("delete", topic, "f")
        place.ok("pause", topic)
        place.ok("resume", topic)
        place.ok("topic", "set", topic, "retry=10ms")
        expect("10ms", place.ok("topic", "show", topic)["options"]["retry"])
    expect(set(topics), set(topics) & set(place.ok("topic", "list")["topics"]))
    place.drain(*(topic + "=flaky?fail=9" for topic in topics))
    for topic in topics:
        expect("dead", place.ok("show", topic, "a")["state"])
        expect(7, len(place.ok("dead", "list", topic)))
        place.ok("dead", "purge", topic, "b")
        place.ok("dead", "requeue", topic, "--all")
    place.drain(*(place.echo(topic) for topic in topics))
    expect(18, len(place.lines("out")))
    found = {topic["topic"]: topic for topic in place.ok("stats")["topics"]}
    for topic in topics:
        expect([6, 0], [found[topic][name] for name in ("done_total", "dead")])
        place.add(topic, "g", "--delay", "1h")
        place.ok("purge", topic, "--yes")
        expect(0, place.stats(topic)["scheduled"])


@test
def follow_ups_go_from_node_to_node(place):
    cluster, (one, other, third) = three(place)
    place.env["WEIR_PLUGIN_PATH"] = TEST_PLUGINS
    place.add(one, "a")
    place.ok("topic", "set", third, "retry=none", "on_dead=" + other)
    place.add(third, "b")
    place.drain(place.handler("ledger", one, follow_to=other, file="out"))
    use_good_plugins(place)
    place.drain(third + "=flaky?fail=9")
    expect(2, place.stats(other)["ready"])
    expect([0, 0], [place.stats(topic)["relaying"] for topic in (one, third)])
