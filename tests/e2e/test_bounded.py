# SPDX-License-Identifier: MIT
"""Bounded topics: events in groups, batches, and what full groups drop. That
every event is accounted for whoever is killed is in chaos/ledger."""

import json
import os
import signal
import time

from e2e import (eventually, expect, expect_in, expect_true, stop_cleanly,
                 test, wait)
from redis_server import Clocked

COUNTS = ("ready", "running", "done_total", "failed_total", "dropped_total")


def handler(place, topic="t", **options):
    return place.handler("batches", topic, file="out", **options)


def make(place, *options, topic="t"):
    place.ok("topic", "set", topic, "kind=bounded", *options)


def add(place, events, topic="t"):
    """Pairs (group, number); returns what was printed."""
    lines = "".join('{"group":"%s","body":%d}\n' % event for event in events)
    return place.ok("add", topic, "--jsonl", "-", stdin=lines)


def lines(place):
    """The words of each batch's line, in their order."""
    try:
        with open(place.path("out")) as file:
            return [line.split() for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []


def batches(place):
    """(group, attempt, numbers) of each batch, in their order."""
    return [(line[0], int(line[1]), [int(word) for word in line[4:]])
            for line in lines(place)]


def tokens(place):
    return [int(line[2]) for line in lines(place)]


@test
def events_come_in_batches_of_their_group_and_in_order(place):
    make(place)
    add(place, [("g%d" % (i % 3), i) for i in range(600)])
    place.drain(handler(place))
    seen = {}
    for group, attempt, numbers in batches(place):
        expect_true(len(numbers) <= 128, "at most 128: %r" % numbers)
        expect(1, attempt)
        seen.setdefault(group, []).extend(numbers)
    for i in range(3):
        expect(list(range(i, 600, 3)), seen["g%d" % i])
    expect_true(len(batches(place)) <= 9, "full batches: %d"
                % len(batches(place)))
    expect(600, place.stats("t")["done_total"])


@test
def a_full_group_drops_its_oldest_and_everybody_is_told(place):
    make(place, "length=10")
    printed = add(place, [("a", i) for i in range(25)] + [("b", 1)])
    expect({"added": 26, "existing": 0, "refused": 0, "dropped": 15}, printed)
    place.drain(handler(place))
    expect([list(range(15, 25)), [1]],
           [numbers for _, _, numbers in sorted(batches(place))])
    place.expect_stats("t", added_total=26, done_total=11, dropped_total=15,
                       dropped={"overflow": 15, "age": 0, "ttl": 0})


@test
def a_full_group_that_refuses_says_which_line(place):
    make(place, "length=2", "overflow=reject")
    result = place.weir("add", "t", "--jsonl", "-", stdin=
                        '{"group":"a","body":1}\n' * 3)
    expect(1, result.code)
    expect("added 2, existing 0, refused 1, dropped 0\n", result.out)
    expect_in("stdin:3: its group is full and topic \"t\" refuses new events",
              result.err)
    place.weir("add", "t", "--group", "a").expect_complaint(
        1, "its group is full", "raise length")


@test
def one_event_for_a_full_group_gets_one_sentence(place):
    make(place, "length=1", "overflow=drop-new")
    place.ok("add", "t", "--group", "a")
    place.weir("add", "t", "--group", "a").expect_complaint(
        1, 'its group is full and topic "t" drops new events', "raise length")
    place.ok("topic", "set", "t", "overflow=drop-oldest")
    result = place.weir("add", "t", "--group", "a")
    expect(0, result.code)
    expect(['weir: group "a" of topic "t" is full: dropped 1'],
           result.sentences)


@test
def events_above_their_age_are_dropped_when_they_would_start(place):
    server = Clocked(place)
    make(place, "max_age=1h")
    add(place, [("a", 1), ("b", 2)])
    server.advance(3600001)
    add(place, [("a", 3)])
    place.drain(handler(place))
    expect([("a", 1, [3])], batches(place))
    expect({"overflow": 0, "age": 2, "ttl": 0}, place.stats("t")["dropped"])


@test
def a_batch_that_is_retried_keeps_its_place_in_the_group(place):
    make(place, "retry=1s 1s 1s")
    add(place, [("a", i) for i in range(5)])
    place.drain(handler(place, retry=2))
    expect([("a", attempt, [0, 1, 2, 3, 4]) for attempt in (1, 2, 3)],
           batches(place))
    place.expect_stats("t", done_total=5, retried_total=10)


@test
def each_event_may_have_its_own_verdict(place):
    make(place)
    add(place, [("a", i) for i in range(10)])
    place.drain(handler(place, each="yes"))
    place.expect_stats("t", done_total=5, failed_total=5, dead=0)


@test
def a_worker_serves_with_the_options_of_its_file(place):
    config = place.write("w.conf",
                         'topic t { kind = bounded  length = 3  batch = 2\n'
                         '  overflow = drop-new  hot = { "a", "b-*:4" }\n'
                         '  linger = 10ms  group_ttl = 1h  max_age = 1h\n'
                         '  lease = none  handler = batches\n'
                         '  options = "file=%s" }\n' % place.path("out"))
    worker = place.work(flags=("--config", config))
    eventually(lambda: place.weir("topic", "show", "t").code == 0 and
               place.redis(), "the worker made its topic")
    add(place, [("a", i) for i in range(2)])
    eventually(lambda: batches(place), "a batch came")
    expect([("a", 1, [0, 1])], batches(place))
    stop_cleanly(worker)
    # what the worker was configured with still counts
    result = place.weir("add", "t", "--jsonl", "-", stdin=
                        '{"group":"b-1","body":1}\n' * 5)
    expect([1, "added 3, existing 0, refused 2, dropped 2\n"],
           [result.code, result.out])


@test
def an_event_that_kills_its_worker_is_found_and_given_up(place):
    make(place, "lease=1s", "max_crashes=2")
    add(place, [("a", i) for i in range(6)] + [("b", 10)])
    for _ in range(20):
        code = wait(place.work(handler(place, poison=3),
                               flags=("--until-empty",)))
        if code == 0:
            break
    expect(0, code, "the last worker")
    stats = place.stats("t")
    expect([0, 0, 6, 1, 0], [stats[name] for name in COUNTS])
    first = []
    for group, _, numbers in batches(place):
        first.extend(n for n in numbers if group == "a" and n not in first)
    expect([0, 1, 2, 4, 5], first)


def taken(place):
    stats = place.stats("t")
    return stats["running"] + stats["done_total"]


@test
def a_handler_that_holds_the_loop_keeps_its_batches(place):
    make(place, "lease=3s")
    workers = []
    for i in range(2):
        add(place, [("g%d" % i, i)])
        workers.append(place.work(handler(place, work="4s")))
        eventually(lambda: taken(place) == i + 1, "it holds one")
    eventually(lambda: place.stats("t")["done_total"] == 2, "all are done")
    for worker in workers:
        stop_cleanly(worker)
    expect([0, 1], sorted(n for _, _, numbers in batches(place)
                                for n in numbers))
    expect(0, place.stats("t")["crashed_total"])


@test
def what_a_worker_that_stood_still_had_begun_has_an_older_token(place):
    make(place, "lease=300ms", "length=2", "batch=2")
    add(place, [("a", 0)])
    os.mkfifo(place.path("gate"))
    still = place.work(handler(place, gate=place.path("gate")))
    with open(place.path("gate"), "wb") as gate:  # when it has begun
        still.send_signal(signal.SIGSTOP)
        add(place, [("a", 1), ("a", 2)])
        place.work(handler(place))
        eventually(lambda: place.stats("t")["done_total"] == 2, "later ones")
        gate.write(b"!")
    still.send_signal(signal.SIGCONT)
    eventually(lambda: len(batches(place)) == 2, "the rest of its run")
    stop_cleanly(still)
    expect([("a", 1, [1, 2]), ("a", 1, [0])], batches(place))
    later, earlier = tokens(place)
    expect_true(earlier < later, "tokens %d, %d" % (earlier, later))
    stats = place.stats("t")
    expect([0, 0, 2, 0, 1], [stats[name] for name in COUNTS])


@test
def options_of_other_kinds_are_refused_with_a_sentence(place):
    make(place)
    for option, words in (("max_dead=5", "kind bounded has no such option"),
                          ("hot=a:0", "no pattern of groups"),
                          ("overflow=drop", "drop-oldest"),
                          ("length=0", "1 to 1000000"),
                          ("group_ttl=1ms", "1s to 365d")):
        place.weir("topic", "set", "t", option).expect_complaint(2, words)
    place.weir("topic", "set", "d", "lease=none").expect_complaint(
        2, "only one of kind bounded")
    place.weir("add", "t").expect_complaint(2, "name the group")
    place.weir("add", "t", "--group", "a", "--delay", "1s").expect_complaint(
        2, "no delay")
    place.weir("add", "d", "--group", "a").expect_complaint(2, "groups")
    place.weir("add", "t", "--group", "a b").expect_complaint(2, "group")


@test
def events_are_listed_by_group(place):
    make(place, "lease=1m")
    add(place, [("a", i) for i in range(3)])
    wait(place.work(handler(place, poison=0)))
    add(place, [("a", 3)] + [("b%d" % i, i) for i in range(150)] +
        [("c", i) for i in range(450)])
    place.ok("add", "t", "--group", "z", "--id", "mine", "--body", "7")
    before = time.time_ns() // 1000000
    found = place.ok("list", "t", "--limit", "1000")
    seen = {}
    for event in found:
        expect("t", event["topic"])
        seen.setdefault((event["state"], event["group"]), []).append(
            event["body"])
        if event["state"] == "ready":
            expect_true(before - 60000 < event["due_ms"] <= before + 1000,
                        "when it was added: %r" % event)
    expect([0, 1, 2], seen.pop(("running", "a")))
    expect([3], seen.pop(("ready", "a")))
    expect(list(range(450)), seen.pop(("ready", "c")))
    expect([7], seen.pop(("ready", "z")))
    expect({("ready", "b%d" % i): [i] for i in range(150)}, seen)
    expect(["mine"], [event["id"] for event in found
                      if event["group"] == "z"])
    expect(7, len(place.ok("list", "t", "--limit", "7")))
    expect(3, len(place.ok("list", "t", "--state", "running")))
    expect([], place.ok("list", "t", "--state", "scheduled"))
    result = place.weir("list", "t", "--limit", "1000")
    expect_in("mine  ready  group z  due ", result.out)
    place.weir("list", "t", "--state", "dead").expect_complaint(2, "kind")
    place.weir("list", "none").expect_complaint(3, "none")


@test
def pause_and_purge_work_on_groups(place):
    make(place)
    add(place, [("g%d" % i, i) for i in range(300)])
    place.ok("pause", "t")
    expect(1, place.weir("run", "--until-empty", "--handle",
                         handler(place)).code)
    expect([], batches(place))
    expect(300, place.ok("purge", "t", "--yes")["deleted"])
    place.ok("resume", "t")
    add(place, [("a", 1)])
    place.drain(handler(place))
    expect([("a", 1, [1])], batches(place))


@test
def the_bundled_handlers_tell_the_group(place):
    make(place, topic="e")
    make(place, topic="c")
    for topic in ("e", "c"):
        add(place, [("g-1", 7)], topic=topic)
    path = place.path("job")
    script = place.write("script", '#!/bin/sh\ncat >"%s"\n' % path)
    os.chmod(script, 0o755)
    place.drain(place.echo("e"))
    place.drain(place.handler("exec", "c", command=script))
    with open(path) as file:
        job = json.loads(file.read())
    expect(("g-1", 7), (job["group"], job["body"]))
    expect([("g-1", 7)], [(job["group"], job["body"])
                          for job in place.lines("out")])
