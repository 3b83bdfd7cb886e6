# SPDX-License-Identifier: MIT
"""weir on three primaries whose topics lie apart. The tests share a cluster, and
each has topics of its own."""

import atexit
import itertools

from cluster import Cluster
from e2e import (Place, await_line, eventually, expect, expect_in, expect_true,
                 kill, stop_cleanly, test)
from redis_server import Server, free_port, use_good_plugins

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
def a_seed_that_is_away_is_passed_over(place):
    cluster, topics = three(place)
    place.env["WEIR_REDIS"] = url_of(free_port(), cluster.nodes[1].port)
    place.add_many(topics[0], 2)
    result = place.drain(place.echo(topics[0]))
    expect(2, len(place.lines("out")))
    expect_in("no connection to redis://127.0.0.1:", result.err)
    expect_in("connected to " + url_of(cluster.nodes[0].port), result.err)


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
