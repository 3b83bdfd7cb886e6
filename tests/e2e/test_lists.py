# SPDX-License-Identifier: MIT
"""Topics of kind list: a plain list that any program fills."""

import fcntl
import json
import os
import random
import subprocess
import threading
import time

from e2e import (BUILD, eventually, expect, expect_in, expect_true, kill, run,
                 stop_cleanly, test, time_test)
from resp import Client

ENTRIES = 3000


def connect(place):
    """A server, and a client of it that knows nothing of weir."""
    place.ok("topic", "list")
    place.socket = os.path.join(place.data, "redis.sock")
    return Client(place.socket)


def redis_cli(place, *words):
    done = run(["redis-cli", "-s", place.socket, *words])
    expect(0, done.returncode, done.stderr)
    return done.stdout.strip()


def make(place, *options):
    redis = connect(place)
    place.ok("topic", "set", "t", "kind=list", *options)
    return redis


def bodies(place, name="out"):
    return [line["body"] for line in place.lines(name)]


@test
def entries_of_redis_cli_and_of_a_client_are_handled_in_order(place):
    redis = make(place)
    redis_cli(place, "RPUSH", "t", '{"n": 1}', "[2]", '"three"')
    redis("RPUSH", "t", b"\x81\xa1n\x04")
    place.drain(place.echo())
    expect([{"n": 1}, [2], "three", {"n": 4}], bodies(place))
    place.expect_stats("t", kind="list", added_total=4, done_total=4, ready=0)


@test
def weir_add_pushes_json_that_other_consumers_understand(place):
    redis = make(place)
    place.ok("add", "t", "--body", '{"n": 1}')
    expect([b'{"n":1}'], redis("LRANGE", "t", 0, -1))


@test
def a_list_that_lpush_fills_runs_in_order_from_its_right_end(place):
    redis = make(place, "end=right")
    redis_cli(place, "LPUSH", "t", "1", "2", "3")
    place.ok("add", "t", "--body", "4")
    expect([b"4", b"3", b"2", b"1"], redis("LRANGE", "t", 0, -1))
    expect([1, 2, 3, 4],
           [job["body"] for job in place.ok("list", "t", "--json")])
    place.drain(place.echo())
    expect([1, 2, 3, 4], bodies(place))


@test
def the_end_of_a_list_changes_while_it_is_served(place):
    redis = make(place)
    worker = place.work(place.echo())
    redis("RPUSH", "t", "1")
    eventually(lambda: bodies(place) == [1], "it was handled")
    place.ok("pause", "t")
    redis("LPUSH", "t", "2", "3", "4")
    place.ok("topic", "set", "t", "end=right")
    place.ok("resume", "t")
    eventually(lambda: len(bodies(place)) == 4, "they were handled")
    stop_cleanly(worker)
    expect([1, 2, 3, 4], bodies(place))


@test
def looking_at_a_topic_leaves_its_retries_alone(place):
    redis = make(place, "retry=200ms ...")
    redis("RPUSH", "t", "1")
    worker = place.work("t=flaky?fail=1000")
    eventually(lambda: place.stats("t")["retried_total"], "it failed once")
    stop_cleanly(worker)
    eventually(lambda: place.stats("t")["ready"], "it is due again")
    place.ok("topic", "show", "t")
    place.ok("topic", "set", "t", "retry=1s")
    place.ok("stats")
    place.drain("t=flaky?fail=1")
    place.expect_stats("t", done_total=1, dropped_total=0, ready=0)


@time_test
def an_idle_worker_sees_a_push_and_asks_for_little(place):
    redis = make(place)
    worker = place.work(place.echo())
    redis("RPUSH", "t", "1")
    eventually(lambda: bodies(place) == [1], "it was handled")
    time.sleep(1)  # whatever is still going on
    begin, before = time.monotonic(), calls(redis)
    time.sleep(6)  # what is measured
    sent, took = calls(redis) - before, time.monotonic() - begin
    expect_true(sent <= took, "%d commands in %.1f s" % (sent, took))
    redis("RPUSH", "t", "2")
    eventually(lambda: bodies(place) == [1, 2], "it was handled")
    stop_cleanly(worker)


def calls(redis):
    """Commands that workers sent so far; what scripts call counts elsewhere."""
    sent = 0
    for line in redis("INFO", "commandstats").decode().splitlines():
        if line.startswith(("cmdstat_evalsha:", "cmdstat_blmove:")):
            sent += int(line.split("calls=")[1].split(",")[0])
    return sent


@test
def a_worker_whose_connections_are_cut_goes_on(place):
    redis = make(place)
    worker = place.work(place.echo())
    for number in range(5):
        eventually(lambda: blocked(redis), "a connection waits")
        for client in blocked(redis):
            redis("CLIENT", "KILL", "ID", client)
        redis("RPUSH", "t", number)
        eventually(lambda: len(bodies(place)) == number + 1, "it was handled")
    expect([0, 1, 2, 3, 4], bodies(place))
    stop_cleanly(worker)


def blocked(redis):
    """Ids of the connections that wait in a blocking command."""
    found = []
    for line in redis("CLIENT", "LIST").decode().splitlines():
        client = dict(word.split("=", 1) for word in line.split())
        if "b" in client["flags"] and client["cmd"] in ("blmove", "xread"):
            found.append(client["id"])
    return found


@test
def words_are_texts(place):
    redis = make(place)
    redis("RPUSH", "t", "apple", "banana", "pear", "x", "2", "grün")
    place.drain(place.echo())
    expect(["apple", "banana", "pear", "x", 2, "grün"], bodies(place))


@test
def what_is_added_is_written_in_the_form_that_the_topic_reads(place):
    for form, entry in (("auto", b'"a\\"b"'), ("json", b'"a\\"b"'),
                        ("text", b'a"b'), ("msgpack", b'\xa3a"b')):
        redis = make(place, "body=" + form)
        place.ok("add", "t", "--body", '"a\\"b"')
        expect([entry], redis("LRANGE", "t", "0", "-1"))
        place.drain(place.echo(name=form))
        expect(['a"b'], bodies(place, form))


@test
def who_adds_knows_how_the_last_worker_reads(place):
    redis = make(place)
    config = place.write("w.conf", """
topic "t" { handler = echo kind = list body = text }""")
    place.drain(flags=("--config", config))
    place.ok("add", "t", "--body", '"apple"')
    expect([b"apple"], redis("LRANGE", "t", "0", "-1"))


@test
def a_form_that_is_none_is_refused(place):
    result = place.weir("topic", "set", "t", "kind=list", "body=xml")
    expect(2, result.code)
    expect_in('body', result.err)
    expect_in("auto|json|text|msgpack", result.err)


@test
def what_cannot_be_read_is_kept_aside_and_told(place):
    redis = make(place)
    redis("RPUSH", "t", b"\xffoops", "1")
    place.drain(place.echo())
    expect([1], bodies(place))
    (job,) = place.ok("dead", "list", "t")
    expect("malformed", job["reason"])
    expect(1, place.stats("t")["failed_total"])


@test
def a_failing_entry_goes_up_the_ladder_and_dies(place):
    redis = make(place, "retry=20ms 20ms")
    redis("RPUSH", "t", '{"n": 1}')
    place.drain("t=flaky?fail=9&verdict=retry")
    (job,) = place.ok("dead", "list", "t")
    expect(["exhausted", 3], [job["reason"], job["attempt"]])
    expect(2, place.stats("t")["retried_total"])
    expect("requeued 1\n", place.weir("dead", "requeue", "t", job["id"]).out)
    place.drain(place.echo())
    expect([{"n": 1}], bodies(place))


@test
def a_paused_list_is_left_alone(place):
    redis = make(place)
    place.ok("pause", "t")
    worker = place.work(place.echo())
    redis("RPUSH", "t", "1")
    result = place.weir("run", "--until-empty", "--handle", "t=echo")
    expect(1, result.code)
    expect(1, redis("LLEN", "t"))
    place.ok("resume", "t")
    eventually(lambda: bodies(place) == [1], "it was handled")
    stop_cleanly(worker)


@test
def another_key_is_found_by_those_who_only_add_or_look(place):
    redis = make(place)
    config = place.write("w.conf", """
topic "t" { handler = echo kind = list key = "queue:in"
  options = { "file=%s" } }""" % place.path("out"))
    worker = place.work(flags=("--config", config))
    redis("RPUSH", "queue:in", "1")
    eventually(lambda: bodies(place) == [1], "it was handled")
    stop_cleanly(worker)
    place.ok("add", "t", "--body", "2")
    expect([b"2"], redis("LRANGE", "queue:in", 0, -1))
    expect(1, place.stats("t")["ready"])
    expect("deleted 1\n", place.weir("purge", "t", "--yes").out)


@test
def what_a_list_cannot_do_is_refused_with_exit_2(place):
    make(place)
    for line in (("add", "t", "--id", "1"), ("add", "t", "--delay", "1s"),
                 ("show", "t", "1"), ("delete", "t", "1"),
                 ("reschedule", "t", "1", "--delay", "1s"),
                 ("topic", "set", "t", "group=g")):
        place.weir(*line).expect_complaint(2, "kind list")
    for option, word in (("auto_ack=maybe", "no|yes"),
                         ("end=middle", "left|right"),
                         ("key=" + "k" * 200, "too long"),
                         ("on_retry=a b", "on_retry")):
        place.weir("topic", "set", "t", option).expect_complaint(2, word)


def feed(place, entries):
    redis = Client(place.socket)
    for first in range(0, entries, 20):
        redis("RPUSH", "t", *('{"n":%d}' % n
                              for n in range(first, first + 20)))
        time.sleep(0.01)
    redis.close()


class Traced:
    """A worker that writes down in a file of its own what it begins."""

    def __init__(self, place, name, **options):
        self.place, self.name = place, name
        self.process = place.work(place.handler("trace", ms=1, file=name,
                                                **options))

    def has_begun(self):
        return self.place.lines(self.name)

    def kill(self):
        kill(self.process)


def kill_at_random(place):
    """Feed entries while two workers are killed and started again, each when it
    works; the first one is certain to hold an entry. Returns the ids of what
    was begun."""
    feeder = threading.Thread(target=feed, args=(place, ENTRIES))
    random.seed(7)
    feeder.start()
    held = Traced(place, "0", verdict="hold", fail=9)
    eventually(held.has_begun, "it holds one")
    held.kill()
    workers = [Traced(place, str(i)) for i in (1, 2)]
    count = 3
    while feeder.is_alive() or count < 6:
        which = random.randrange(2)
        eventually(lambda: workers[which].has_begun() or
                   not feeder.is_alive(), "it works")
        time.sleep(random.uniform(0.05, 0.25))
        workers[which].kill()
        workers[which] = Traced(place, str(count))
        count += 1
    feeder.join()
    for worker in workers:
        worker.kill()
    place.drain(place.handler("trace", file=str(count)))
    return [line["id"] for i in range(count + 1)
            for line in place.lines(str(i))]


@test
def killed_workers_lose_nothing_in_safe_mode(place):
    redis = make(place, "lease=1500ms")
    expect(ENTRIES, len(set(kill_at_random(place))))
    place.expect_stats("t", added_total=ENTRIES, done_total=ENTRIES,
                       dropped_total=0, dead=0)
    expect_true(place.stats("t")["crashed_total"] > 0,
                "kills hit entries that were out")
    expect(0, redis("EXISTS", "weir:{t}:held", "weir:{t}:run", "weir:{t}:wait",
                    "weir:{t}:past", "weir:{t}:lease"))


@test
def a_worker_that_stops_leaves_what_it_could_not_hand_over_to_the_next(place):
    redis = make(place, "on_retry=later", "concurrency=1", "lease=60s")
    place.ok("topic", "set", "later", "max_pending=1")
    place.add("later", "first", "--delay", "1h")
    redis("RPUSH", "t", "1", "2", "3", "4", "5")
    worker = place.start("run", "--handle", "t=trace?fail=1&ms=200&file=" +
                         place.path("out"))
    eventually(lambda: place.stats("t")["relaying"] > 0, "it hands one over")
    stop_cleanly(worker)
    stats = place.stats("t")
    tried = len(place.lines("out"))
    expect([tried, 5 - tried, 0], [stats["relaying"], stats["ready"],
                                   stats["running"]])
    place.ok("topic", "set", "later", "max_pending=9")
    expect(0, place.weir("run", "--until-empty", "--handle",
                         "t=echo?file=" + place.path("rest")).code)
    stats = place.stats("t")
    expect([0, tried, 5 - tried, 0],
           [stats["relaying"], stats["retried_total"], stats["done_total"],
            stats["crashed_total"]])
    expect(1 + tried, place.stats("later")["added_total"])


@test
def an_entry_that_kills_its_workers_dies_alone(place):
    redis = make(place, "lease=300ms", "max_crashes=2")
    redis("RPUSH", "t", '{"n": 1}', '{"n": 2}')
    for _ in range(3):
        before = len(place.lines("starts"))
        worker = place.work(place.handler("trace", fail=9, verdict="hold",
                                          file="starts"))
        eventually(lambda: len(place.lines("starts")) > before, "it started")
        kill(worker)
    place.drain(place.echo())
    (job,) = place.ok("dead", "list", "t")
    expect(["crashed", 3], [job["reason"], job["crashes"]])
    expect([{"n": 2}], bodies(place))


@test
def with_auto_ack_every_lost_entry_is_counted(place):
    make(place, "lease=1500ms", "auto_ack=yes")
    ids = kill_at_random(place)
    stats = place.stats("t")
    expect(len(ids), len(set(ids)), "none was handled twice")
    expect_true(stats["lost_total"] > 0, "something was lost")
    expect(ENTRIES, stats["done_total"] + stats["lost_total"])


@test
def a_request_whose_lock_is_not_won_waits_in_a_delay_topic(place):
    redis = connect(place)
    locks = place.path("locks")
    os.mkdir(locks)
    with open(os.path.join(locks, "anna.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        program = subprocess.Popen(
            [os.path.join(BUILD, "examples", "handover"),
             "unix://" + place.socket, locks], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        place.started.append(program)
        for account in ("anna", "berta"):
            redis("RPUSH", "requests", json.dumps({"account": account}))
        expect("berta done, from requests\n", program.stdout.readline())
        eventually(lambda: redis("EXISTS", "weir:{requests.later}:meta"),
                   "the other request waits")
        expect(0, redis("LLEN", "requests"))
    expect("anna done, from requests.later\n", program.stdout.readline())
    expect_in("list", place.weir("stats", "requests").out)
    stop_cleanly(program)
