# SPDX-License-Identifier: MIT
"""Workers of a bounded topic that serve only some of its groups. That each
group keeps its order whoever is killed is in chaos/ledger."""

import os
import signal

from e2e import (Heard, eventually, expect, expect_in,
                 expect_true, kill, stop_cleanly, terminate, test)
from resp import Client


def make(place, *options):
    place.ok("topic", "set", "t", "kind=bounded", *options)


def handler(place, name, **options):
    return place.handler("batches", "t", file=name, **options)


def add(place, *events):
    """Pairs (group, number)."""
    place.ok("add", "t", "--jsonl", "-", stdin="".join(
        '{"group":"%s","body":%d}\n' % event for event in events))


def ran(place, name):
    """(group, numbers) of each batch in the file of a worker."""
    try:
        with open(place.path(name)) as file:
            lines = [line.split() for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []
    return [(line[0], [int(word) for word in line[4:]]) for line in lines]


def numbers(place, name, group):
    return [n for at, some in ran(place, name) if at == group for n in some]


def work(place, name, groups, **options):
    return place.work(handler(place, name, **options),
                      flags=("--groups", groups))


def ask(place, *words):
    return Client(os.path.join(place.data, "redis.sock"))(*words)


def told_groups(place):
    """What each worker that is there tells of the groups of t."""
    return sorted(topic.get("groups", "")
                  for worker in place.ok("workers")["workers"]
                  for topic in worker["topics"] if topic["topic"] == "t")


def waiting(place):
    return place.stats("t")["ready"]


@test
def two_workers_share_a_topic_by_its_groups(place):
    make(place)
    add(place, *((("vip-%d" if i % 2 else "g%d") % (i % 20), i)
                 for i in range(400)))
    workers = [work(place, "vip", "vip-*"), work(place, "rest", "!vip-*")]
    eventually(lambda: place.stats("t")["done_total"] == 400, "all are done")
    add(place, ("vip-1", 1000), ("g0", 1001))  # both sleep or are about to
    eventually(lambda: place.stats("t")["done_total"] == 402, "these, too")
    for worker in workers:
        stop_cleanly(worker)
    for name, is_vip in (("vip", True), ("rest", False)):
        groups = {group for group, _ in ran(place, name)}
        expect(10, len(groups), name)
        expect_true(all(group.startswith("vip-") == is_vip
                        for group in groups), "%s ran %r" % (name, groups))
    expect(0, ask(place, "EXISTS", "weir:{t}:idle"), "nobody is listed")


@test
def what_a_killed_worker_held_waits_for_one_that_serves_it(place):
    make(place, "lease=300ms")
    add(place, ("vip-1", 1), ("vip-1", 2), ("g1", 3))
    os.mkfifo(place.path("gate"))
    victim = work(place, "victim", "vip-*", gate=place.path("gate"))
    with open(place.path("gate"), "wb"):  # when it has begun
        rest = work(place, "rest", "!vip-*")
        kill(victim)
    make(place, "lease=1h")
    eventually(lambda: place.stats("t")["crashed_total"] == 2,
               "the other one noticed that the lease ended")
    add(place, ("vip-1", 4), ("g1", 5))
    eventually(lambda: numbers(place, "rest", "g1") == [3, 5], "its own")
    expect(3, waiting(place))
    heir = work(place, "heir", "vip-*")
    eventually(lambda: numbers(place, "heir", "vip-1") == [1, 2, 4],
               "all in their order")
    stop_cleanly(heir)
    stop_cleanly(rest)
    expect([], numbers(place, "rest", "vip-1"))


@test
def a_group_that_no_worker_serves_waits(place):
    make(place)
    add(place, ("vip-1", 1), ("chess", 2), ("g1", 3))
    workers = [work(place, "vip", "vip-*"),
               work(place, "rest", "!vip-* !chess")]
    eventually(lambda: place.stats("t")["done_total"] == 2, "the others")
    expect(1, waiting(place))
    eventually(lambda: told_groups(place) == ["!vip-* !chess", "vip-*"],
               "both workers told their groups")
    expect(1, place.stats("t")["unserved_groups"])
    finding = [one for one in place.weir("doctor", "--json").json
               if one["check"] == "groups"]
    expect([("warning", "topic t: 1 group waits that no worker serves, such as "
             "chess")], [(one["status"], one["text"]) for one in finding])
    for worker in workers:
        stop_cleanly(worker)
    place.drain(handler(place, "all"))
    expect([("chess", [2])], ran(place, "all"))
    expect(0, place.stats("t")["unserved_groups"])


@test
def until_empty_is_about_the_groups_of_the_worker(place):
    make(place)
    add(place, ("vip-1", 1), ("g1", 2), ("g2", 3))
    result = place.drain(handler(place, "vip"), flags=("--groups", "vip-*"))
    expect_in("t: 2 events are in groups that this worker does not serve",
              result.err)
    expect([("vip-1", [1])], ran(place, "vip"))
    place.ok("pause", "t")  # of the others none is held back from it
    place.drain(handler(place, "vip"), flags=("--groups", "vip-*"))
    place.ok("resume", "t")
    result = place.drain(handler(place, "rest"), flags=("--groups", "!vip-*"))
    expect_true("does not serve" not in result.err, result.err)
    place.expect_stats("t", ready=0, running=0, done_total=3)


@test
def a_file_says_it_and_a_reload_changes_it(place):
    make(place)
    text = ('topic t { kind = bounded handler = batches groups = %s\n'
            'options = "file=' + place.path("out") + '" }\n')
    config = place.write("w.conf", text % '{ "vip-*", "game-7" }')
    worker = Heard(place.start("run", "--config", config))
    worker.says("serving t with")
    add(place, ("game-7", 1), ("game-8", 2), ("vip-1", 3))
    eventually(lambda: place.stats("t")["done_total"] == 2, "its own")
    place.write("w.conf", text % '"game-8"')
    worker.process.send_signal(signal.SIGHUP)
    worker.says("reload: changed t (groups vip-* game-7 to game-8)")
    eventually(lambda: place.stats("t")["done_total"] == 3, "the other one")
    add(place, ("game-7", 4), ("game-8", 5))
    eventually(lambda: numbers(place, "out", "game-8") == [2, 5], "woken")
    terminate(worker.process)
    worker.process.wait()
    expect([1], numbers(place, "out", "game-7"))


@test
def it_is_not_stored_for_all_workers(place):
    make(place)
    place.weir("topic", "set", "t", "groups=vip-*").expect_complaint(
        2, "each worker's own", "--groups")
    place.ok("topic", "set", "t", "groups=")  # removing it is no mistake
    expect_true("groups" not in place.weir("topic", "set", "--help").out, "")
    ask(place, "HSET", "weir:{t}:options", "groups", "vip-*")
    ask(place, "HINCRBY", "weir:{t}:meta", "revision", "1")
    add(place, ("g1", 1))
    result = place.drain(handler(place, "out"))
    expect_in("a stored option is ignored: groups", result.err)
    expect([("g1", [1])], ran(place, "out"))


@test
def mistakes_in_patterns_are_told(place):
    make(place)
    place.ok("topic", "set", "d", "kind=delay")
    for groups, words in (("a*b", "no pattern of groups"),
                          ("!", "no pattern of groups"),
                          ("vip-*:4 x{", "no pattern of groups"),
                          ("vip-1 !vip-*", "leaves out every group"),
                          ("!*", "leaves out every group"),
                          ("x" * 501, "at most 500")):
        place.weir("run", "--handle", handler(place, "out"), "--groups",
                   groups).expect_complaint(2, "--groups", words)
    result = place.weir("run", "--handle", place.echo("d"), "--groups", "a")
    expect(2, result.code)
    expect_in("groups: a topic of kind delay has no such option", result.err)
    config = place.write("w.conf", "topic t { handler = batches groups = "
                                   "{ 'a', '!a' }\noptions = 'file=out' }\n")
    place.weir("check", "--config", config).expect_complaint(
        2, "leaves out every group")


@test
def more_patterns_than_there_is_room_for_are_told(place):
    make(place)
    add(place, ("a0", 1))
    half = ["%s%d" % (letter, i) for letter in "ab" for i in range(100)]
    place.drain(handler(place, "out"), flags=("--groups", " ".join(half[:100])))
    place.drain(handler(place, "out"), flags=("--groups", " ".join(half[100:])))
    many = Heard(work(place, "out", " ".join("c%d" % i for i in range(60))))
    many.says("the workers of this topic name more than 250 patterns")
    terminate(many.process)
    many.process.wait()
    expect([("a0", [1])], ran(place, "out"))
