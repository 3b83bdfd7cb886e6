# SPDX-License-Identifier: MIT
"""What the harness says of its clusters."""

import concurrent.futures
import signal
import socket

from cluster import (NAMES, SLOTS, Cluster, Fake, ask, error_of, know_names,
                     slot_of, slots_by)
from e2e import eventually, expect, expect_in, expect_true, test


@test
def a_slot_is_what_servers_say(place):
    cluster = Cluster(place, primaries=1)
    for key in ("", "t", "{t}", "weir:{t}:wait", "a{}{t}", "a{t", "{{t}}", "{}",
                "}{t}", "a{b}{c}"):
        expect(ask(cluster.nodes[0], "CLUSTER", "KEYSLOT", key), slot_of(key),
               key)


@test
def three_primaries_share_the_slots(place):
    cluster = Cluster(place)
    nodes = cluster.nodes
    expect([nodes[0], nodes[1], nodes[2]],
           [cluster.owner(slot) for slot in (0, SLOTS // 2, SLOTS - 1)])
    expect("redis://" + ",".join("127.0.0.1:%d" % node.port for node in nodes),
           place.env["WEIR_REDIS"])
    expect(3, len(slots_by(nodes[1])))


@test
def a_topic_is_found_for_each_node(place):
    cluster = Cluster(place)
    for i, node in enumerate(cluster.nodes):
        key = "weir:{%s}:a" % cluster.topic(node)
        expect("OK", ask(node, "SET", key, "x"))
        other = cluster.nodes[(i + 1) % 3]
        expect("MOVED %d 127.0.0.1:%d" % (slot_of(key), node.port),
               error_of(other, "GET", key))
    expect_true(cluster.topic(cluster.nodes[1]) !=
                cluster.topic(cluster.nodes[1], 1), "the next one is another")


@test
def a_slot_moves_with_its_keys(place):
    cluster = Cluster(place)
    first, second = cluster.nodes[:2]
    topic = cluster.topic(first)
    slot = slot_of(topic)
    keys = ["weir:{%s}:%d" % (topic, i) for i in range(250)]
    for key in keys:
        ask(first, "SET", key, key)
    cluster.open_slot(slot, second)
    cluster.move_keys(slot, second, keys[:1])
    expect_in("ASK %d" % slot, error_of(first, "GET", keys[0]))
    expect(first, cluster.owner(slot))
    cluster.move_keys(slot, second)
    cluster.close_slot(slot, second)
    expect(second, cluster.owner(slot))
    expect([key.encode() for key in keys], ask(second, "MGET", *keys))


@test
def replicas_take_over(place):
    cluster = Cluster(place, replicas=1)
    first, second, replica, other = (cluster.nodes[i] for i in (0, 1, 3, 4))
    cluster.fail_over(other)
    expect(other, cluster.owner(SLOTS // 2))
    expect(other.id, second.primary_id())
    first.kill()
    expect(replica, cluster.take_over(first))
    expect(replica, cluster.owner(0))
    first.start()
    cluster.await_well()
    eventually(lambda: first.primary_id() == replica.id, "it is a replica")
    other.pause()
    expect(second, cluster.take_over(other))
    other.resume()
    cluster.await_well()


@test
def a_node_is_added_and_forgotten(place):
    cluster = Cluster(place, primaries=2)
    node = cluster.add()
    cluster.move_slot(77, node)
    expect(node, cluster.owner(77))
    expect_in((77, 77, node.port), slots_by(cluster.nodes[0]))
    cluster.move_slot(77, cluster.nodes[0])
    cluster.forget(node)
    expect(2, len(cluster.nodes[0].lines()))


@test
def a_node_that_answers_too_late_is_met_again(place):
    cluster = Cluster(place, primaries=1)
    first, met = cluster.nodes[0], set()
    first.process.send_signal(signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        adding = pool.submit(cluster.add)
        eventually(lambda: len(cluster.nodes) == 2, "the new node runs")
        eventually(lambda: met.update(
            line[0] for line in cluster.nodes[1].lines()) or len(met) == 2,
                   "it was told of the first")
        eventually(lambda: len(cluster.nodes[1].lines()) == 1, "it gave up")
        first.process.send_signal(signal.SIGCONT)
        adding.result()
    expect(2, len(first.lines()))


@test
def nodes_are_known_by_the_names_that_they_announce(place):
    names = NAMES if know_names() else ()
    cluster = Cluster(place, primaries=2, args=names)
    expect({b"localhost" if names else b"127.0.0.1"},
           {one[2][0] for one in ask(cluster.nodes[0], "CLUSTER", "SLOTS")})
    key = "{%s}" % cluster.topic(cluster.nodes[1])
    expect("MOVED %d %s:%d" % (slot_of(key),
                               "localhost" if names else "127.0.0.1",
                               cluster.nodes[1].port),
           error_of(cluster.nodes[0], "GET", key))


def say(fake, *words):
    """The first line of what it says."""
    client = socket.create_connection(("127.0.0.1", fake.port), 10)
    client.sendall(("*%d\r\n" % len(words) + "".join(
        "$%d\r\n%s\r\n" % (len(word), word) for word in words)).encode())
    text = client.recv(4096).decode()
    client.close()
    return text


@test
def a_fake_tells_slots_and_errors(place):
    other = Fake()
    one = Fake([(0, 99, None, 7000), (100, 100, "::1", other.port)])
    expect("*2\r\n*3\r\n:0\r\n:99\r\n*3\r\n$-1\r\n:7000\r\n$6\r\n007000\r\n"
           "*3\r\n:100\r\n:100\r\n*3\r\n$3\r\n::1\r\n:%d\r\n$6\r\n%06d\r\n"
           % (other.port, other.port), say(one, "CLUSTER", "SLOTS"))
    one.errors = [("{t}", "TRYAGAIN later", 2), ("SET", "MOVED 1 ?:1", 1),
                  ("EVALSHA", "CLUSTERDOWN no", None)]
    expect(["-TRYAGAIN later\r\n"] * 2 + ["-MOVED 1 ?:1\r\n", "+OK\r\n"],
           [say(one, "SET", "weir:{t}:a", "x") for _ in range(4)])
    expect(["-CLUSTERDOWN no\r\n"] * 3,
           [say(one, "EVALSHA", "sha", "0") for _ in range(3)])
    expect(["CLUSTER", "SLOTS"], one.heard[0])
    expect(8, len(one.heard))
    one.close()
    other.close()
