# SPDX-License-Identifier: MIT
"""Topics of every kind, and all that is done with them, on three primaries."""

import os

from cluster import ask, share
from e2e import (BUILD, eventually, expect, expect_in, expect_true, run,
                 stop_cleanly, test)
from patience import Clock
from redis_server import use_good_plugins

KINDS = ("delay", "bounded", "list", "stream", "sync", "concurrent")
FAILING = "flaky?fail=9&verdict=fail"


def apart(cluster, name):
    """Names of topics of the three nodes."""
    return [cluster.topic(node, name=name) for node in cluster.nodes]


def ids(place, name):
    return sorted(line["id"] for line in place.lines(name))


def bodies(place, name):
    return sorted(line["body"] for line in place.lines(name))


def add_numbers(place, topic, count, more=""):
    """Bodies are 0, 1, ..."""
    place.add_lines(topic, count, '{"body":%%d%s}' % more)


@test
def a_topic_is_deleted_wherever_it_is(place):
    use_good_plugins(place)
    cluster = share(place)
    topics = apart(cluster, "gone")
    for topic in topics:
        add_numbers(place, topic, 300)
        place.weir("topic", "delete", topic).expect_complaint(2, "300 jobs")
    worker = place.work(topics[0] + "=echo")
    eventually(lambda: place.stats(topics[0])["done_total"] == 300, "it runs")
    eventually(lambda: "serves it" in place.weir("topic", "delete",
                                                 topics[0]).err, "it sleeps")
    stop_cleanly(worker)
    for topic in topics:
        place.ok("topic", "delete", topic, "--yes")
        expect(3, place.weir("stats", topic).code)
    expect(set(), set(topics) & set(place.ok("topic", "list")["topics"]))
    for node, topic in zip(cluster.nodes, topics):
        expect([], ask(node, "KEYS", "weir:{%s}:*" % topic), topic)


@test
def every_kind_works_on_three_primaries(place):
    use_good_plugins(place)
    cluster = share(place)
    topics = {}
    for kind in KINDS:
        for node, topic in zip(cluster.nodes, apart(cluster, kind)):
            place.ok("topic", "set", topic, "kind=" + kind)
            expect(1, ask(node, "EXISTS", "weir:{%s}:options" % topic), topic)
            topics[topic] = kind
    worker = place.work(*(place.echo(topic, topic) for topic in topics))
    for topic, kind in topics.items():
        add_numbers(place, topic, 30,
                    ',"group":"g"' if kind == "bounded" else "")
    for topic, kind in topics.items():
        eventually(lambda: len(place.lines(topic)) >= 30, topic + " runs")
        eventually(lambda: place.stats(topic)["done_total"] == 30,
                   topic + " is done")
        expect(list(range(30)), bodies(place, topic), topic)
    told = {one["topic"]: one for one in place.ok("stats")["topics"]}
    expect_true(set(topics) <= set(told), "all topics are listed")
    for topic, kind in topics.items():
        expect((kind, 30, 0, 0), tuple(told[topic][name] for name in
                                       ("kind", "done_total", "ready",
                                        "running")), topic)
    expect_true(set(topics) <= set(place.ok("topic", "list")["topics"]),
                "they are known")
    stop_cleanly(worker)


@test
def jobs_are_followed_by_jobs_of_topics_of_other_nodes(place):
    first, second, third = apart(share(place), "f")
    ledger = [place.handler("ledger", one, file=one, follow_to=other)
              for one, other in ((first, second), (second, third),
                                 (third, first))]
    for topic in first, second, third:
        place.add_lines(topic, 200)
    place.drain(*ledger)
    for topic in first, second, third:
        with open(place.path(topic), encoding="utf-8") as file:
            ran = sorted(line.split()[1] for line in file if line[0] == "S")
        expect(sorted("%d%s" % (i, end) for i in range(200)
                      for end in ("", ".here", ".there")), ran, topic)
        place.expect_stats(topic, done_total=600, relaying=0, ready=0)


@test
def dead_jobs_and_retries_go_to_topics_of_other_nodes(place):
    use_good_plugins(place)
    first, second, third = apart(share(place), "g")
    graves = apart(share(place), "graves")
    place.ok("topic", "set", first, "on_dead=" + graves[1])
    place.ok("topic", "set", second, "kind=list", "retry=10ms ...",
             "on_retry=" + graves[2])
    place.ok("topic", "set", third, "kind=stream", "on_dead=" + graves[0])
    add_numbers(place, first, 50)
    add_numbers(place, second, 50)
    add_numbers(place, third, 50)
    worker = place.work(first + "=" + FAILING,
                        second + "=flaky?fail=9&verdict=retry",
                        third + "=" + FAILING,
                        *(place.echo(one, one) for one in graves))
    for grave in graves:
        eventually(lambda: len(place.lines(grave)) >= 50, grave + " runs")
        expect(50, place.stats(grave)["added_total"])
        expect(list(range(50)), bodies(place, grave), grave)
    stop_cleanly(worker)


@test
def no_job_is_early_whichever_node_has_it(place):
    use_good_plugins(place)
    topics = apart(share(place), "d")
    for topic in topics:
        place.add_lines(topic, 100, '{"delay":"%d0ms"}')
    worker = place.work(*(place.echo(topic, topic) for topic in topics))
    for topic in topics:
        eventually(lambda: len(place.lines(topic)) == 100, topic + " runs")
        expect_true(min(line["late_ms"] for line in place.lines(topic)) >= 0,
                    "none is early")
    stop_cleanly(worker)


@test
def a_job_wakes_an_idle_worker_whichever_node_has_it(place):
    """Without being woken it looks every 5 s."""
    use_good_plugins(place)
    topics, woken = [], []
    for kind, more in (("delay", ()), ("bounded", ()), ("list", ()),
                       ("stream", ()), ("sync", ("delay=0ms",)),
                       ("concurrent", ("delay=0ms",))):
        for topic in apart(share(place), "w" + kind):
            place.ok("topic", "set", topic, "kind=" + kind, *more)
            topics.append(topic)
    worker = place.work(*(place.echo(topic, topic) for topic in topics))
    for topic in topics * 2:
        count, clock = len(place.lines(topic)), Clock(1.0)
        add_numbers(place, topic, 1,
                    ',"group":"g"' if "bounded" in topic else "")
        eventually(lambda: len(place.lines(topic)) > count, topic + " runs")
        woken.append(not clock.is_over())
    stop_cleanly(worker)
    woken = woken[len(topics):]  # at first workers may still begin to listen
    expect_true(sum(woken) > len(topics) / 2, "they are woken: %s" % woken)


@test
def every_command_finds_the_node_of_its_topic(place):
    use_good_plugins(place)
    for topic in apart(share(place), "m"):
        place.ok("pause", topic, "--new")
        worker = place.work(place.echo(topic, topic))
        place.add(topic, "1")
        place.add(topic, "2", "--delay", "1h")
        place.add(topic, "3", "--delay", "1h")
        expect(["ready", "scheduled", "scheduled"],
               [place.ok("show", topic, one)["state"] for one in "123"])
        expect({"1", "2", "3"}, {one["id"] for one in place.ok("list", topic)})
        place.ok("reschedule", topic, "2", "--delay", "0ms")
        expect("ready", place.ok("show", topic, "2")["state"])
        place.ok("delete", topic, "3")
        expect([], place.lines(topic))
        place.ok("resume", topic)
        eventually(lambda: place.stats(topic)["done_total"] == 2, "they run")
        expect(["1", "2"], ids(place, topic))
        stop_cleanly(worker)
        place.add(topic, "4")
        place.add(topic, "5")
        place.drain(topic + "=" + FAILING)
        expect({"4", "5"}, {one["id"] for one in
                            place.ok("dead", "list", topic)})
        place.ok("dead", "requeue", topic, "4")
        place.ok("dead", "purge", topic, "--all")
        place.drain(place.echo(topic, topic))
        expect(["1", "2", "4"], ids(place, topic))
        place.add(topic, "6", "--delay", "1h")
        place.ok("purge", topic, "--yes")
        place.ok("topic", "set", topic, "ttl=1h", "weight=3")
        expect({"ttl": "1h", "weight": "3"},
               place.ok("topic", "show", topic)["options"])
        place.expect_stats(topic, scheduled=0, ready=0, dead=0)


@test
def programs_that_embed_weir_take_the_url_of_a_cluster(place):
    cluster = share(place)
    for topic in apart(cluster, "e"):
        done = run([os.path.join(BUILD, "examples", "producer"),
                    place.env["WEIR_REDIS"], topic], "1\n2\n3\n",
                   env=place.env)
        expect(0, done.returncode, done.stderr)
        expect(3, place.stats(topic)["added_total"])
    done = run([os.path.join(BUILD, "examples", "drain"),
                place.env["WEIR_REDIS"], "20000"], env=place.env)
    expect(0, done.returncode, done.stderr)
    expect_in("lost 0, handled twice 0", done.stdout)
