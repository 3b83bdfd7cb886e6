# SPDX-License-Identifier: MIT
"""What waits in a cluster asks seldom, by what the servers are sent. A busy
machine makes it fewer, so the time of a number of commands is measured."""

import re
import subprocess
import time

from cluster import Cluster, ask, slot_of
from e2e import (WEIR, eventually, expect, expect_true, kill, run_together,
                 stop_cleanly, test, time_test, wait)
from monitor import Monitor
from patience import Stopwatch
from redis_server import use_good_plugins

run_together(3)


def start(place, *words):
    """weir, whose log nobody reads."""
    process = subprocess.Popen([WEIR, *words], env=place.env,
                               stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    place.started.append(process)
    return process


def run(place, *topics):
    return start(place, "run", *(word for topic in topics
                                 for word in ("--handle", topic + "=echo")))


def listen(cluster):
    return [Monitor(node) for node in cluster.running()]


def claims(monitors):
    return sum(one.kinds()["EVALSHA"] for one in monitors)


def refused(cluster):
    """Commands that did not run: MONITOR does not tell them."""
    return sum(int(number) for node in cluster.running() for number in
               re.findall("rejected_calls=([0-9]+)",
                          ask(node, "INFO", "commandstats").decode()))


def expect_pace(cluster, monitors, most):
    """So many commands a second at most, for three seconds at least: some come
    in bursts."""
    def sent():
        return refused(cluster) + sum(len(one.commands) for one in monitors)
    watch, before = Stopwatch(), sent()
    eventually(lambda: sent() >= before + 3 * most, "commands come")
    rate = (sent() - before) / watch.seconds()
    print("%g commands a second" % rate)
    expect_true(rate <= most, "%g commands a second" % rate)


@time_test
def an_idle_worker_of_1000_topics_sends_at_most_50_commands_a_second(place):
    cluster = Cluster(place)
    use_good_plugins(place)
    monitors = listen(cluster)
    worker = run(place, *("q%d" % i for i in range(1000)))
    eventually(lambda: claims(monitors) >= 1000, "each topic is claimed once")
    time.sleep(30)  # time is the subject: then each is looked at again
    expect_pace(cluster, monitors, 50)
    stop_cleanly(worker)


@test
def what_waits_for_a_place_sends_at_most_20_commands_a_second(place):
    cluster = Cluster(place)
    topics = [cluster.topic(node) for node in cluster.nodes]
    slot = slot_of(topics[0])
    monitors = listen(cluster)
    cluster.open_slot(slot, cluster.nodes[1])
    add = start(place, "add", topics[0])
    place.ok("add", topics[1])
    expect_pace(cluster, monitors, 20)
    cluster.close_slot(slot, cluster.nodes[1])
    expect(0, wait(add))
    kill(cluster.nodes[2].process)
    eventually(lambda: not any(node.is_ok() for node in cluster.running()),
               "the cluster is down")
    adds = [start(place, "add", topic) for topic in topics]
    expect_pace(cluster, monitors[:2], len(adds) * 20)
    cluster.nodes[2].start()
    for add in adds:
        expect(0, wait(add))


@time_test
def many_places_that_wait_share_what_they_send(place):
    cluster = Cluster(place)
    use_good_plugins(place)
    monitors = listen(cluster)
    topics = ["q%d" % i for i in range(300)]
    worker = run(place, *topics)
    eventually(lambda: claims(monitors) >= len(topics),
               "each topic is claimed once")
    kill(cluster.nodes[2].process)
    eventually(lambda: not any(node.is_ok() for node in cluster.running()),
               "the cluster is down")
    expect_pace(cluster, monitors[:2], 150)
    before = claims(monitors[:2])
    cluster.nodes[2].start()
    eventually(lambda: claims(monitors[:2]) >= before + 100,
               "they are looked at again")
    stop_cleanly(worker)
