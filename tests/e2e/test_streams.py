# SPDX-License-Identifier: MIT
"""Topics of kind stream: a stream that others write and read, too."""

import os
import random
import subprocess
import sys
import time

from e2e import ROOT, eventually, expect, expect_true, kill, stop_cleanly, test
from resp import Client, ReplyError

ENTRIES = 3000


def make(place, *options):
    place.ok("topic", "set", "t", "kind=stream", *options)
    place.socket = os.path.join(place.data, "redis.sock")
    return Client(place.socket)


def bodies(place, name="out"):
    return [line["body"] for line in place.lines(name)]


@test
def fields_are_the_body_and_done_entries_are_acknowledged(place):
    redis = make(place)
    redis("XADD", "t", "*", "order", "7", "kind", "close")
    place.ok("add", "t", "--body", '{"n": 1}')
    place.drain(place.echo())
    expect([{"order": "7", "kind": "close"}, {"n": 1}], bodies(place))
    expect(2, redis("XLEN", "t"))
    expect(0, redis("XPENDING", "t", "weir")[0])
    place.expect_stats("t", kind="stream", added_total=2, done_total=2,
                       ready=0)


@test
def done_entries_are_deleted_where_that_is_wanted(place):
    redis = make(place, "after=delete", "key=events", "group=billing")
    redis("XADD", "events", "*", "n", "1")
    place.drain(place.echo())
    expect(0, redis("XLEN", "events"))
    expect(0, redis("XPENDING", "events", "billing")[0])


@test
def an_idle_worker_survives_cuts_and_sees_entries_at_once(place):
    redis = make(place)
    worker = place.work(place.echo())
    for number in range(5):
        eventually(lambda: waiting(redis), "a connection waits")
        redis("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        redis("XADD", "t", "*", "body", number)
        eventually(lambda: len(bodies(place)) == number + 1, "it was handled")
    expect([0, 1, 2, 3, 4], bodies(place))
    stop_cleanly(worker)


def waiting(redis, command="xread"):
    return [line for line in redis("CLIENT", "LIST").decode().splitlines()
            if "cmd=%s " % command in line and "flags=b" in line]


@test
def a_group_that_thinks_there_is_more_is_not_believed(place):
    """As groups of a replica that took over do."""
    redis = make(place)
    place.add_lines("t", 20, '{"body":%d}')
    place.drain(place.echo())
    try:
        redis("XGROUP", "SETID", "t", "weir", "$", "ENTRIESREAD", 5)
    except ReplyError:
        redis("XGROUP", "SETID", "t", "weir", "$")  # 6.2 does not count them
    place.expect_stats("t", ready=0, added_total=20, done_total=20)
    place.add_lines("t", 3, '{"body":%d}')
    place.expect_stats("t", ready=3, added_total=23)
    place.drain(place.echo())
    expect(23, len(place.lines("out")))


@test
def a_failing_entry_stays_pending_then_dies_and_is_requeued(place):
    redis = make(place, "retry=3s")
    entry = redis("XADD", "t", "*", "n", "1").decode()
    worker = place.work("t=flaky?fail=9&verdict=retry")
    eventually(lambda: place.stats("t")["scheduled"] == 1, "it waits")
    expect(1, redis("XPENDING", "t", "weir")[0])
    eventually(lambda: place.stats("t")["dead"] == 1, "it is dead")
    stop_cleanly(worker)
    expect(0, redis("XPENDING", "t", "weir")[0])
    (job,) = place.ok("dead", "list", "t")
    expect([entry, "exhausted", 2], [job["id"], job["reason"], job["attempt"]])
    redis("XTRIM", "t", "MAXLEN", "0")
    expect("requeued 1\n", place.weir("dead", "requeue", "t", entry).out)
    place.drain(place.echo())
    expect([{"n": "1"}], bodies(place))


@test
def what_a_stream_cannot_do_is_refused_with_exit_2(place):
    make(place)
    for line in (("add", "t", "--id", "1"), ("add", "t", "--ttl", "1s"),
                 ("show", "t", "1"), ("delete", "t", "1"),
                 ("reschedule", "t", "1", "--delay", "1s"),
                 ("topic", "set", "t", "auto_ack=yes")):
        place.weir(*line).expect_complaint(2, "kind stream")
    for option, word in (("start=1", "start"), ("after=trim", "keep"),
                         ("claim_idle=0", "claim_idle")):
        place.weir("topic", "set", "t", option).expect_complaint(2, word)


CONSUMER = """
import sys
sys.path.insert(0, %r)
from resp import Client, ReplyError
redis, hang = Client(sys.argv[1]), int(sys.argv[2])
done = 0
while True:
    found = redis("XREADGROUP", "GROUP", "weir", "python", "COUNT", 10,
                  "BLOCK", 1000, "STREAMS", "t", ">")
    for entry, fields in found[0][1] if found else []:
        if hang and done >= hang:
            print("hanging", flush=True)
            sys.stdin.read()
        print(entry.decode(), flush=True)
        redis("XACK", "t", "weir", entry)
        done += 1
"""


def start_consumer(place, name, hang=0):
    """A consumer of the group that is not weir; it hangs after `hang`."""
    with open(place.path(name), "w", encoding="utf-8") as out:
        process = subprocess.Popen(
            [sys.executable, "-B", "-c",
             CONSUMER % os.path.join(ROOT, "tests", "e2e"),
             place.socket, str(hang)], stdin=subprocess.PIPE, stdout=out)
    place.started.append(process)
    return process


def handled_by(place, name):
    with open(place.path(name), encoding="utf-8") as file:
        return [line.strip() for line in file if "-" in line]


def feed(redis, entries):
    ids = []
    for first in range(0, entries, 20):
        ids += redis.pipeline([("XADD", "t", "*", "n", n)
                               for n in range(first, first + 20)])
        time.sleep(0.01)
    return [entry.decode() for entry in ids]


@test
def a_stream_is_shared_with_another_consumer_and_nothing_runs_twice(place):
    redis = make(place)
    worker = place.work(place.handler("trace", file="out"))
    eventually(lambda: waiting(redis), "weir waits")
    consumer = start_consumer(place, "python")
    eventually(lambda: waiting(redis, "xreadgroup"), "the other one waits")
    fed = feed(redis, ENTRIES)

    def is_shared():
        fed.extend(feed(redis, 20))
        return place.lines("out") and handled_by(place, "python")

    eventually(is_shared, "both took some")
    eventually(lambda: redis("XPENDING", "t", "weir")[0] == 0 and
               place.stats("t")["ready"] == 0, "all were acknowledged")
    stop_cleanly(worker)
    consumer.kill()
    weir = [line["id"] for line in place.lines("out")]
    python = handled_by(place, "python")
    expect(sorted(fed), sorted(weir + python), "each entry once")


@test
def what_a_killed_consumer_held_is_not_lost(place):
    redis = make(place, "claim_idle=500ms")
    redis("XGROUP", "CREATE", "t", "weir", "0", "MKSTREAM")
    consumer = start_consumer(place, "python", hang=15)
    fed = feed(redis, 100)
    eventually(lambda: "hanging" in open(place.path("python")).read(),
               "it hangs")
    consumer.kill()
    worker = place.work(place.handler("trace", file="out"))
    eventually(lambda: redis("XPENDING", "t", "weir")[0] == 0 and
               place.stats("t")["ready"] == 0, "all were acknowledged")
    stop_cleanly(worker)
    weir = [line["id"] for line in place.lines("out")]
    expect(sorted(fed), sorted(weir + handled_by(place, "python")))
    expect(85, len(weir))


def start_traced(place, name, **options):
    return place.work(place.handler("trace", ms=1, file=name, **options))


def kill_at_work(place, worker, name):
    """Kill it when it has begun an entry, if there is one left."""
    eventually(lambda: place.lines(name) or place.stats("t")["ready"] == 0,
               "it works")
    kill(worker)


@test
def killed_workers_lose_nothing(place):
    redis = make(place, "lease=1500ms")
    random.seed(7)
    names = [str(i) for i in range(11)]
    fed = feed(redis, 300)
    workers = [start_traced(place, names[0], verdict="hold", fail=9)]
    kill_at_work(place, workers.pop(), names[0])  # it has one in hand
    workers = [start_traced(place, name) for name in names[1:3]]
    for killed, begun in zip(names[1:], names[3:]):
        fed += feed(redis, 300)
        time.sleep(random.uniform(0, 0.1))
        kill_at_work(place, workers.pop(0), killed)
        workers.append(start_traced(place, begun))
    for worker in workers:
        worker.kill()
    place.drain(place.handler("trace", file="last"))
    expect(sorted(fed), sorted({line["id"] for name in names + ["last"]
                                for line in place.lines(name)}))
    place.expect_stats("t", done_total=len(fed), dropped_total=0, dead=0)
    expect_true(place.stats("t")["crashed_total"] > 0,
                "kills hit entries that were out")
    expect(0, redis("XPENDING", "t", "weir")[0])
