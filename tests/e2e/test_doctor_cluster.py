# SPDX-License-Identifier: MIT
"""weir doctor, and what weir run looks at first, where the server is a node of a
cluster."""

import time

from cluster import SLOTS, Cluster, Fake, ask, bulk, slot_of
from e2e import await_line, eventually, expect, expect_in, kill, test
from redis_server import use_good_plugins
from web import Web


def examine(place, code, *args):
    """Findings by check and node."""
    use_good_plugins(place)
    result = place.weir("doctor", "--json", *args)
    expect(code, result.code, "exit code, %r %r" % (result.out, result.err))
    return {(one["check"], one["node"]): one for one in result.json}


def expect_finding(found, check, node, status, *words):
    one = found[check, node and "127.0.0.1:%d" % node.port]
    expect(status, one["status"], "%r" % one)
    for word in words:
        expect_in(word, one["text"] + "; " + one["advice"])


def spread(place):
    """Three primaries which serve what they have whatever the others do."""
    return Cluster(place, args=("--cluster-require-full-coverage", "no"))


@test
def each_primary_is_looked_at(place):
    cluster = Cluster(place, replicas=1)
    cluster.set("cluster-node-timeout", 60000)  # nobody is replaced
    one, other = cluster.nodes[:2]
    topic = cluster.topic(other)
    place.add(topic, "a")
    other.tell("CONFIG SET maxmemory-policy allkeys-lru")
    for i in range(100):  # no node shall be busy for long
        ask(other, "EVAL", "for i = 1, 10000 do redis.call('HSET', KEYS[1], "
            "ARGV[1] * 10000 + i, '') end", 1, "weir:{%s}:ids" % topic, i)
    found = examine(place, 1)
    for node in cluster.nodes[:3]:
        expect_finding(found, "version", node, "ok")
        expect_finding(found, "replicas", node, "ok", "1 connected")
        expect_finding(found, "slots", node, "ok", "none is open")
        expect_finding(found, "rights", node, "ok")
    expect_finding(found, "eviction", one, "ok")
    expect_finding(found, "eviction", other, "failed", "allkeys-lru")
    expect_finding(found, "cluster", None, "ok", "3 primaries serve all 16384")
    expect_finding(found, "versions", None, "ok")
    expect_finding(found, "clocks", None, "ok")
    expect_finding(found, "topics", None, "warning",
                   "topic %s has 1000002 ids in slot %d" % (topic,
                                                            slot_of(topic)))
    refused = place.weir("run", "--handle", topic + "=echo")
    expect(2, refused.code, refused.err)
    expect_in("weir: 127.0.0.1:%d: maxmemory-policy is allkeys-lru"
              % other.port, refused.err)


@test
def what_a_cluster_does_not_serve_is_found(place):
    cluster = spread(place)
    one, other, dead = cluster.nodes
    opened, gone = slot_of(cluster.topic(one)), slot_of(cluster.topic(other))
    cluster.open_slot(opened, other)
    dead.kill()
    for node in one, other:
        ask(node, "CLUSTER", "DELSLOTS", gone)
    found = examine(place, 1)
    moves = "slot %d is open, it moves " % opened
    expect_finding(found, "slots", one, "failed",
                   moves + "to 127.0.0.1:%d: its topics wait" % other.port)
    expect_finding(found, "slots", other, "failed",
                   moves + "here from 127.0.0.1:%d" % one.port)
    expect_finding(found, "replicas", one, "warning", "0 connected")
    expect_finding(found, "connection", dead, "failed", "it is away")
    expect_finding(found, "cluster", None, "failed", "1 of 16384 slots are "
                   "served by no node, the first is %d" % gone)
    expect_finding(found, "version", other, "ok")
    expect_in("failed   connection   127.0.0.1:%d: it is away" % dead.port,
              place.weir("doctor").out)


@test
def a_worker_starts_where_a_node_is_away(place):
    cluster = spread(place)
    topic = cluster.topic(cluster.nodes[0])
    place.add(topic, "a")
    cluster.nodes[2].kill()
    place.env["WEIR_REDIS"] = cluster.url()
    use_good_plugins(place)
    result = place.drain(place.echo(topic))
    expect(1, len(place.lines("out")))
    expect_in("127.0.0.1:%d is away, its topics wait (" % cluster.nodes[2].port,
              result.err)


class Told(Fake):
    """It tells version and time."""

    def __init__(self, version, ahead_s):
        self.version, self.ahead_s = version, ahead_s
        super().__init__()

    def answer(self, words, client):
        if words == ["TIME"]:
            return "*2\r\n" + bulk("%d" % (time.time() + self.ahead_s)) + \
                bulk("0")[:-2]
        if words == ["INFO"]:
            return bulk("redis_version:%s\r\nredis_mode:cluster\r\n"
                        % self.version)[:-2]
        if words[0] == "SSCAN":
            return "*2\r\n" + bulk("1") + "*0"  # for ever
        return super().answer(words, client)


@test
def versions_and_clocks_that_differ_are_found(place):
    nodes = [Told("7.0.15", 0), Told("7.2.4", 30), Told("7.0.15", 0)]
    for node in nodes:
        node.slots = [(0, 99, "127.0.0.1", nodes[0].port),
                      (100, 199, "127.0.0.1", nodes[1].port),
                      (200, SLOTS - 1, "127.0.0.1", nodes[2].port)]
    found = examine(place, 0, "--redis", "redis://127.0.0.1:%d" % nodes[0].port)
    first, last = sorted(nodes, key=lambda node: node.port)[::2]
    expect_finding(found, "versions", None, "warning",
                   ":%d runs " % first.port)
    expect_finding(found, "clocks", None, "warning", ":%d is " % nodes[1].port,
                   " ms ahead of 127.0.0.1:")
    expect_finding(found, "cluster", None, "ok")
    for node in nodes:
        node.close()


@test
def a_map_that_cannot_be_read_is_no_lone_server(place):
    node = Told("7.0.15", 0)
    url = "redis://127.0.0.1:%d" % node.port
    why = "whether 127.0.0.1 port %d is a node of a cluster is not known: " \
        "the answer to CLUSTER SLOTS is wrong: range 1 ends before it begins" \
        % node.port
    node.slots = [(5, 4, "127.0.0.1", node.port)]
    found = examine(place, 0, "--redis", url)
    expect_finding(found, "cluster", None, "warning", why,
                   "see what redis-cli CLUSTER SLOTS says there")
    worker = place.work(place.echo("t"), flags=("--redis", url))
    await_line(worker, "warn redis: %s; no other server was checked" % why)
    kill(worker)
    place.env["WEIR_REDIS"] = url
    web = Web(place)
    told = eventually(lambda: web.get("/api/nodes").json["nodes"], "a node")[0]
    expect([True, why], [told["up"], told["why"]])
    kill(web.process)
    node.close()


@test
def a_server_that_may_not_be_asked_for_its_cluster_is_looked_at(place):
    cluster = spread(place)
    node = cluster.nodes[0]
    node.log_in("-cluster")
    found = examine(place, 1, "--redis", node.url_of("w:pw"))
    expect_finding(found, "cluster", None, "warning", "is not known: NOPERM",
                   "allow CLUSTER SLOTS")
    expect_finding(found, "version", None, "ok")
    expect_finding(found, "rights", None, "failed", "+cluster|nodes",
                   "+cluster|slots")
    topic = cluster.topic(node)
    place.ok("add", topic, "--redis", node.url_of("w:pw"))
    found = examine(place, 0, "--mend", topic, "--redis", node.url_of("w:pw"))
    expect_finding(found, "cluster", None, "warning", "is not known: NOPERM")
