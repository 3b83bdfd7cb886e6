# SPDX-License-Identifier: MIT
"""Sync and concurrent topics: what they keep, and what they lose by design."""

import json
import os
import random
import time

from e2e import (eventually, expect, expect_in, expect_true, kill, rest,
                 stop_cleanly, test)


def make(place, *options):
    place.ok("topic", "set", "t", *options)


def fill(place, count):
    expect(count, place.add_lines("t", count,
                                  '{"id":"%d","body":%d}')["added"])


def ids(place):
    return sorted(int(line["id"]) for line in place.lines("out"))


def count(place, *names):
    stats = place.stats("t")
    return [stats[name] for name in names]


def lost_and_repeated(place, wanted):
    got = ids(place)
    return wanted - len(set(got)), len(got) - len(set(got))


# --- what is kept -----------------------------------------------------------


def exactly_once(place, *options):
    make(place, "delay=100ms", *options)
    fill(place, 2000)
    worker = place.work(place.echo())
    place.drain(place.echo())
    eventually(lambda: count(place, "running") == [0], "nothing is running")
    stop_cleanly(worker)
    expect((0, 0), lost_and_repeated(place, 2000), "lost and repeated")
    expect([2000, 0], count(place, "done_total", "crashed_total"))
    expect_true(min(line["late_ms"] for line in place.lines("out")) >= 0,
                "none is early")


@test
def sync_consumers_with_a_lock_handle_each_message_once(place):
    exactly_once(place, "kind=sync", "consumers=10")


@test
def concurrent_consumers_handle_each_message_once(place):
    exactly_once(place, "kind=concurrent", "consumers=10")


@test
def consumers_that_park_in_two_steps_handle_each_message_once(place):
    exactly_once(place, "kind=concurrent", "consumers=10", "parking=two-step")


@test
def sync_consumers_without_a_lock_lose_messages_and_repeat_others(place):
    make(place, "kind=sync", "lock=no", "consumers=10", "delay=0ms")
    fill(place, 2000)
    place.drain(place.echo())
    lost, repeated = lost_and_repeated(place, 2000)
    expect_true(lost > 0 and repeated > 0,
                "lost %d and repeated %d" % (lost, repeated))


@test
def one_consumer_without_a_lock_handles_each_message_once_in_order(place):
    make(place, "kind=sync", "lock=no", "delay=0ms")
    fill(place, 300)
    place.drain(place.echo())
    expect([str(i) for i in range(300)],
           [line["id"] for line in place.lines("out")])


@test
def no_message_is_handled_before_its_delay_is_over(place):
    for kind in ("sync", "concurrent"):
        place.ok("topic", "set", kind, "kind=" + kind, "delay=700ms",
                 "consumers=3")
        for i in range(6):
            place.add(kind, str(i))
        due = {job["id"]: job["due_ms"] for job in place.ok("list", kind)}
        expect(6, len(due))
        place.drain(place.handler("trace", kind, file=kind))
        lines = place.lines(kind)
        expect(6, len(lines))
        for line in lines:
            expect_true(line["at_ms"] >= due[line["id"]], "%r" % line)


# --- workers that die -------------------------------------------------------


@test
def what_a_killed_worker_had_parked_comes_back(place):
    for parking in ("atomic", "two-step"):
        make(place, "kind=concurrent", "consumers=5", "delay=10s",
             "parking=" + parking)
        fill(place, 5)
        victim = place.work(place.echo(), flags=("--lease", "1s"))
        eventually(lambda: count(place, "running") == [5], "five are parked")
        kill(victim)
        place.drain(place.echo())
    expect([i for i in range(5) for _ in range(2)], ids(place))
    expect([10, 10], count(place, "crashed_total", "done_total"))


@test
def what_a_live_worker_has_parked_stays_with_it(place):
    make(place, "kind=concurrent", "consumers=5", "delay=12s")
    fill(place, 5)
    owner = place.work(place.echo(), flags=("--lease", "5s"))
    eventually(lambda: count(place, "running") == [5], "five are parked")
    other = place.work(place.echo(name="no"), flags=("--lease", "5s"))
    eventually(lambda: len(ids(place)) == 5, "the owner handled them")
    eventually(lambda: count(place, "running") == [0], "and settled them")
    stop_cleanly(owner)
    stop_cleanly(other)
    expect([], place.lines("no"))
    expect([0, 5], count(place, "crashed_total", "done_total"))


def what_was_in_hand_is_lost(place, *options):
    make(place, "delay=0ms", *options)
    fill(place, 3)
    victim = place.work(place.handler("trace", verdict="hold", fail=9,
                                      file="trace"))
    eventually(lambda: place.lines("trace"), "a message is held")
    kill(victim)
    place.drain(place.echo())
    expect([1, 2], ids(place))


@test
def a_sync_worker_that_dies_loses_what_it_had_in_hand(place):
    what_was_in_hand_is_lost(place, "kind=sync")


@test
def a_worker_with_auto_ack_that_dies_loses_what_it_had_in_hand(place):
    what_was_in_hand_is_lost(place, "kind=concurrent", "auto_ack=yes")


VICTIMS, CONSUMERS = 11, 5


def traced(place, name, **options):
    return place.handler("trace", ms=1, file=name, **options)


def kill_at_work(place, worker, name):
    """Kill it some time after its first message, if there is one left."""
    eventually(lambda: place.lines(name) or count(place, "ready") == [0],
               "it works")
    time.sleep(random.uniform(0.05, 0.2))
    kill(worker)


def kill_in_hand(place, name):
    """Kill a worker that is certain to have a message in hand."""
    victim = place.work(traced(place, name, verdict="hold", fail=9),
                        flags=("--lease", "2s"))
    eventually(lambda: place.lines(name), "a message is held")
    kill(victim)


def kill_at_random(place, *options):
    """2,000 messages, and workers killed meanwhile; returns how many were lost
    and how often one was handled again."""
    make(place, "delay=0ms", "consumers=%d" % CONSUMERS, *options)
    fill(place, 2000)
    random.seed(7)
    names = ["out.%d" % i for i in range(VICTIMS)]
    workers = []
    kill_in_hand(place, names[0])
    for name in names[1:]:
        if len(workers) == 2:
            kill_at_work(place, *workers.pop(0))
        workers.append((place.work(traced(place, name),
                                   flags=("--lease", "2s")), name))
    for worker, name in workers:
        kill_at_work(place, worker, name)
    place.drain(traced(place, "out"))
    lines = [line for name in names for line in place.lines(name)]
    expect_true(lines, "they worked")
    handled = [line["id"] for line in lines + place.lines("out")]
    lost = 2000 - len(set(handled))
    for name in names + ["out"]:
        open(place.path(name), "a").close()
        os.unlink(place.path(name))
    return lost, len(handled) - len(set(handled))


@test
def concurrent_workers_killed_at_random_lose_nothing(place):
    lost, repeated = kill_at_random(place, "kind=concurrent")
    expect(0, lost)
    (crashed, done) = count(place, "crashed_total", "done_total")
    expect(2000, done)
    expect_true(repeated <= crashed, "%d were handled again, %d crashed"
                % (repeated, crashed))
    expect_true(0 < crashed <= VICTIMS * CONSUMERS, "%d" % crashed)


@test
def others_killed_at_random_lose_at_most_one_message_a_consumer(place):
    for options in (("kind=sync",), ("kind=concurrent", "auto_ack=yes")):
        lost, repeated = kill_at_random(place, *options)
        expect(0, repeated)
        expect_true(lost <= VICTIMS * CONSUMERS, "lost %d" % lost)
        place.ok("purge", "t", "--yes")


@test
def the_lock_of_a_killed_worker_is_free_after_its_lease(place):
    make(place, "kind=sync", "delay=0ms")
    fill(place, 1)
    redis = place.redis()
    began = time.time()
    redis.send("SET weir:{t}:lock somebody PX 1500")
    expect("+OK", redis.line())
    redis.close()
    place.drain(place.echo())
    expect([0], ids(place))
    expect_true(time.time() - began >= 1.5, "when it ran out")


@test
def a_worker_that_is_told_to_stop_gives_back_what_it_holds(place):
    for kind in ("concurrent", "auto"):
        topic = "kind=concurrent"
        make(place, topic, "consumers=3", "delay=1h",
             "auto_ack=" + ("yes" if kind == "auto" else "no"))
        fill(place, 5)
        worker = place.work(place.echo())
        eventually(lambda: len(place.ok("list", "t", "--state", "scheduled"))
                   == 2, "three are taken")
        stop_cleanly(worker)
        expect([str(i) for i in range(5)],
               [job["id"] for job in place.ok("list", "t")], kind)
        expect([0, 0], count(place, "done_total", "running"))
        place.ok("purge", "t", "--yes")


# --- options, pause, verdicts -----------------------------------------------


@test
def the_delay_can_be_changed_while_a_worker_runs(place):
    make(place, "kind=concurrent", "consumers=2", "delay=1h")
    worker = place.work(place.echo())
    place.add("t", "1")
    eventually(lambda: count(place, "running") == [1], "one is held")
    make(place, "delay=10ms")
    place.add("t", "2")
    eventually(lambda: ids(place) == [2], "the second is handled")
    stop_cleanly(worker)
    expect(["1"], [job["id"] for job in place.ok("list", "t")])


@test
def consumers_come_and_go_while_a_worker_runs(place):
    make(place, "kind=concurrent", "consumers=1", "delay=1h")
    fill(place, 6)
    worker = place.work(place.echo())
    eventually(lambda: count(place, "running") == [1], "one consumer")
    make(place, "consumers=4")
    eventually(lambda: count(place, "running") == [4], "four consumers")
    stop_cleanly(worker)
    expect([6, 0], count(place, "scheduled", "running"))


@test
def a_paused_topic_gets_back_what_is_held_and_goes_on_later(place):
    make(place, "kind=concurrent", "consumers=2", "delay=4s")
    fill(place, 3)
    worker = place.work(place.echo())
    eventually(lambda: count(place, "running") == [2], "two are held")
    place.ok("pause", "t")
    eventually(lambda: count(place, "running", "scheduled") == [0, 3]
               or count(place, "ready") == [3], "all are back")
    eventually(lambda: count(place, "ready") == [3], "all are due")
    rest()
    expect([], ids(place))
    place.ok("resume", "t")
    eventually(lambda: ids(place) == [0, 1, 2], "they are handled")
    stop_cleanly(worker)


@test
def a_retry_goes_to_the_tail_with_the_delay_of_the_topic(place):
    for kind in ("sync", "concurrent"):
        make(place, "kind=" + kind, "delay=200ms")
        fill(place, 1)
        place.drain(place.handler("trace", fail=2, file=kind))
        lines = place.lines(kind)
        expect([1, 2, 3], [line["attempt"] for line in lines])
        for before, after in zip(lines, lines[1:]):
            expect_true(after["at_ms"] - before["at_ms"] >= 200, "%r" % lines)
        expect([1, 2, 0], count(place, "done_total", "retried_total", "ready"))


@test
def a_message_that_fails_is_gone_and_counted(place):
    make(place, "kind=sync", "delay=0ms")
    fill(place, 1)
    result = place.drain("t=flaky?fail=9&verdict=fail")
    expect_in("0: dropped: failed at attempt 1", result.err)
    expect([0, 1, 0], count(place, "done_total", "failed_total", "scheduled"))


@test
def messages_beyond_max_pending_and_max_body_are_refused(place):
    make(place, "kind=sync", "delay=1h", "max_pending=2", "max_body=100")
    fill(place, 1)
    big = json.dumps("x" * 200)
    place.weir("add", "t", "--body", big).expect_complaint(2, "max_body")
    place.add("t", "second")
    place.weir("add", "t").expect_complaint(1, "max_pending")
    expect([2], count(place, "scheduled"))


@test
def an_idle_worker_is_woken_by_an_add(place):
    for kind in ("sync", "concurrent"):
        topic = "w." + kind
        place.ok("topic", "set", topic, "kind=" + kind, "delay=0ms")
        worker = place.work(place.handler("trace", topic, file=topic))
        place.add(topic, "0")
        eventually(lambda: len(place.lines(topic)) == 1, "it works")
        for i in range(1, 8):
            place.add(topic, str(i))
            eventually(lambda: len(place.lines(topic)) == i + 1, "woken")
        late = sorted(line["late_us"] for line in place.lines(topic)[1:])
        stop_cleanly(worker)
        expect_true(late[0] < 500000, "by more than the look: %r" % late)


# --- kinds and commands -----------------------------------------------------


@test
def a_file_makes_a_topic_of_its_kind_and_commands_know_it(place):
    place.write("weir.conf",
                'topic "t" {\n  kind = sync\n  delay = 100ms\n'
                "  handler = echo\n  options = \"file=%s\"\n}\n"
                % place.path("out"))
    worker = place.work(flags=("--config", place.path("weir.conf")))
    eventually(lambda: "t" in place.ok("topic", "list")["topics"], "it is made")
    place.add("t", "1")
    eventually(lambda: ids(place) == [1], "it is handled")
    stop_cleanly(worker)
    expect("sync", place.stats("t")["kind"])


@test
def a_file_that_says_another_kind_is_refused(place):
    make(place, "kind=concurrent")
    place.write("weir.conf",
                'topic "t" {\n  kind = sync\n  handler = echo\n}\n')
    result = place.weir("run", "--config", place.path("weir.conf"))
    expect(2, result.code)
    expect_in('weir.conf:2: kind: topic "t" is stored as one of kind '
              "concurrent, not sync", result.err)


@test
def an_option_of_another_kind_is_refused_with_file_and_line(place):
    place.write("weir.conf",
                'topic "t" {\n  kind = sync\n  handler = echo\n'
                "  retry = 1s\n}\n")
    place.weir("check", "--config", place.path("weir.conf")).expect_complaint(
        2, "weir.conf:4: retry: a topic of kind sync has no such option")
    make(place, "kind=sync")
    place.weir("topic", "set", "t", "auto_ack=yes").expect_complaint(
        2, "auto_ack: a topic of kind sync has no such option")
    place.weir("topic", "set", "d", "consumers=2").expect_complaint(
        2, "consumers: a topic of kind delay has no such option")


@test
def what_a_kind_cannot_do_is_refused_with_topic_and_kind(place):
    make(place, "kind=sync")
    fill(place, 1)
    for args in (("show", "t", "0"), ("delete", "t", "0"),
                 ("reschedule", "t", "0", "--delay", "1s"),
                 ("dead", "list", "t"), ("dead", "requeue", "t", "0"),
                 ("dead", "purge", "t", "--all")):
        place.weir(*args).expect_complaint(2, '"t"', "of kind sync")
    for args in (("--delay", "1s"), ("--at", "2099-01-01T00:00:00Z"),
                 ("--retry", "1s")):
        place.weir("add", "t", *args).expect_complaint(2, "of kind sync")
    place.weir("topic", "set", "t", "kind=delay").expect_complaint(2, "kind")
    expect(1, place.ok("purge", "t", "--yes")["deleted"])
    place.ok("topic", "set", "t", "kind=delay")
