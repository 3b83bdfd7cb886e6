# SPDX-License-Identifier: MIT
"""A primary that fails, is stopped or replaced while everything runs, and the
sentinels that notice."""

import subprocess
import threading
import time

from e2e import (communicate, end_cleanly, eventually, expect, expect_in,
                 run_together, stop_cleanly, terminate, test, time_test)
from redis_server import Server, use_good_plugins
from sentinel import (NAME, Fake, Trio, ask, calls, clients, ids, pause, ran,
                      resume, role)

run_together(3)

KINDS = ("delay", "bounded", "list", "stream", "sync", "concurrent")


class Stream:
    """A producer that goes on: a job each 10 ms, whatever happens."""

    def __init__(self, place, topic="t"):
        self.process = place.start("add", topic, "--jsonl", "-",
                                   stdin=subprocess.PIPE)
        self.sent, self.is_over = 0, False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.is_over:
            self.process.stdin.write('{"id":"s%d"}\n' % self.sent)
            self.process.stdin.flush()
            self.sent += 1
            time.sleep(0.01)

    def end(self):
        """Every job must have been taken."""
        self.is_over = True
        self.thread.join()
        end_cleanly(self.process)


def text(place, name):
    try:
        with open(place.path(name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def live_trio(place, down_ms=30000):
    """With a worker, and a producer that goes on."""
    use_good_plugins(place)
    trio = Trio(place, down_ms=down_ms)
    trio.worker = place.work(place.echo())
    trio.stream = Stream(place)
    ran(place, "s10")
    return trio


def goes_on(place, trio):
    """What is added from now on runs."""
    ran(place, "s%d" % (trio.stream.sent + 10))


@test
def commands_find_the_primary_that_sentinels_name(place):
    use_good_plugins(place)
    trio = Trio(place)
    place.add("t", "1")
    place.drain(place.echo())
    expect(["1"], ids(place))
    expect(1, place.stats("t")["done_total"])
    expect(0, calls(trio.servers[1]))
    found = {line["check"]: line for line in place.weir("doctor",
                                                        "--json").json}
    expect_in("primary", found["replication"]["text"])


@time_test
def the_next_add_behind_a_killed_primary_is_taken(place):
    trio = live_trio(place, 1000)
    begin = time.monotonic()
    trio.primary().kill()
    eventually(lambda: place.weir("add", "t", "--id", "next").code in (0, 4),
               "it is taken")  # the election may take longer than one add
    print("the next add after %.2f s" % (time.monotonic() - begin))
    ran(place, "next")
    goes_on(place, trio)
    trio.stream.end()
    stop_cleanly(trio.worker)


@test
def a_primary_that_is_stopped_is_left(place):
    trio = live_trio(place)
    old = trio.primary()
    pause(old.process)
    trio.fail_over()
    place.add("t", "next")
    ran(place, "next")
    goes_on(place, trio)
    resume(old.process)
    eventually(lambda: role(old) == "slave", "it is a replica")
    goes_on(place, trio)
    trio.stream.end()
    stop_cleanly(trio.worker)


@test
def an_old_primary_that_lives_on_is_told_nothing_more(place):
    trio = live_trio(place)
    trio.leave_old_primaries()
    old = trio.primary()
    trio.fail_over()
    eventually(lambda: not clients(old), "all have left it")
    before = calls(old)
    expect("master", role(old))
    place.add("t", "next")
    ran(place, "next")
    goes_on(place, trio)
    trio.take_old_primaries()
    eventually(lambda: role(old) == "slave", "it is a replica")
    expect(before, calls(old))
    goes_on(place, trio)
    trio.stream.end()
    stop_cleanly(trio.worker)


@test
def an_old_primary_that_comes_back_changes_nothing(place):
    trio = live_trio(place)
    trio.leave_old_primaries()
    old = trio.primary()
    old.kill()
    trio.fail_over()
    old.start()
    expect("master", role(old))
    place.add("t", "next")
    ran(place, "next")
    trio.take_old_primaries()
    eventually(lambda: role(old) == "slave", "it is a replica")
    goes_on(place, trio)
    expect(0, calls(old))
    trio.stream.end()
    expect(2, stop_cleanly(trio.worker).count(" info redis: connected to"))


@test
def one_sentinel_of_three_is_enough_while_the_primary_lives(place):
    trio = live_trio(place)
    for one in trio.sentinels[:2]:
        pause(one.process)
    place.add("t", "next")
    ran(place, "next")
    goes_on(place, trio)
    trio.stream.end()
    stop_cleanly(trio.worker)


@time_test
def without_a_majority_of_sentinels_everything_waits_for_one(place):
    use_good_plugins(place)
    trio = Trio(place, down_ms=2000)
    worker = place.work(place.echo())
    place.add("t", "first")
    ran(place, "first")
    trio.await_replicas()
    for one in trio.sentinels[:2]:
        one.kill()
    old = trio.servers[0]
    old.kill()
    place.weir("add", "t").expect_complaint(5, "cannot reach redis")
    for one in trio.sentinels[:2]:
        one.start()
    trio.await_switch(old)
    place.add("t", "next")
    ran(place, "next")
    stop_cleanly(worker)


@test
def topics_of_all_kinds_follow_a_new_primary(place):
    use_good_plugins(place)
    trio = Trio(place)
    for kind in KINDS:
        place.ok("topic", "set", kind, "kind=" + kind)
    worker = place.work(*(place.echo(kind, kind) for kind in KINDS))
    for count in (3, 6, 9):
        for kind in KINDS:
            for i in range(3):
                place.ok("add", kind, "--body", str(i),
                         *(("--group", "g") if kind == "bounded" else ()))
        for kind in KINDS:
            eventually(lambda: len(place.lines(kind)) >= count, kind + " runs")
        expect(set(KINDS), {topic["topic"] for topic in
                            place.ok("stats")["topics"]})
        trio.await_replicas()
        if count == 3:
            old = trio.primary()
            old.kill()
            trio.fail_over()
            old.start()
            eventually(lambda: role(old) == "slave", "it is a replica")
        elif count == 6:
            trio.fail_over()
    for kind in KINDS:
        expect(9, len(place.lines(kind)), kind)
    stop_cleanly(worker)


@test
def a_job_in_hand_is_settled_at_the_new_primary_and_runs_once(place):
    trio = Trio(place)
    place.ok("topic", "set", "t", "lease=1h")
    workers = [place.work(place.handler("later", file="runs", until="end"))
               for _ in range(2)]
    place.add("t", "1")
    eventually(lambda: "start 1" in text(place, "runs"), "it runs")
    trio.await_replicas()
    trio.primary().kill()
    trio.fail_over()
    place.write("end", "")
    eventually(lambda: place.stats("t")["done_total"] == 1, "it is done")
    expect("start 1\n", text(place, "runs"))
    place.expect_stats("t", running=0, ready=0, crashed_total=0)
    for worker in workers:
        stop_cleanly(worker)


@time_test
def leases_are_kept_at_the_new_primary_while_a_handler_holds_the_loop(place):
    trio = Trio(place)
    place.ok("topic", "set", "t", "lease=5s")
    handler = place.handler("trace", file="runs", ms=10000)
    first = place.work(handler)
    place.add("t", "1")
    eventually(lambda: place.stats("t")["running"] == 1, "it runs")
    second = place.work(handler)
    trio.await_replicas()
    trio.primary().kill()
    trio.fail_over()
    eventually(lambda: place.stats("t")["done_total"] == 1, "it is done")
    place.expect_stats("t", running=0, ready=0, crashed_total=0)
    stop_cleanly(first)
    stop_cleanly(second)
    expect(1, len(place.lines("runs")))


@test
def a_worker_told_to_stop_in_a_failover_sends_its_verdict_before_it_ends(place):
    trio = Trio(place)
    worker = place.work(place.handler("later", file="runs", until="end"))
    place.add("t", "1")
    eventually(lambda: "start 1" in text(place, "runs"), "it runs")
    place.add("t", "2", "--delay", "1h")
    trio.await_replicas()
    trio.primary().kill()
    place.write("end", "")
    terminate(worker)
    trio.fail_over()
    end_cleanly(worker)
    expect("start 1\n", text(place, "runs"))
    place.expect_stats("t", done_total=1, running=0, ready=0, scheduled=1,
                       crashed_total=0)


@test
def a_worker_told_to_stop_without_a_primary_ends_and_loses_nothing(place):
    server = Server(place, "--appendonly", "yes", "--appendfsync", "always")
    fake = Fake(server.port)
    place.env["WEIR_REDIS"] = "redis+sentinel://127.0.0.1:%d/%s" % (
        fake.port, NAME)
    place.ok("topic", "set", "t", "lease=2s")
    handler = place.handler("later", file="runs", until="end")
    worker = place.start("run", "--config", place.write(
        "weir.conf", 'worker { drain = 3s }\n'
        'topic t { handler = later  options = { "file=%s", "until=%s" } }\n'
        % (place.path("runs"), place.path("end"))))
    place.add("t", "1")
    eventually(lambda: "start 1" in text(place, "runs"), "it runs")
    server.kill()
    place.write("end", "")
    terminate(worker)
    _, err = communicate(worker)
    expect(1, worker.returncode, err)
    expect_in("runs again when its lease has ended", err)
    server.start()
    worker = place.work(handler)
    eventually(lambda: place.stats("t")["done_total"] == 1, "it is done")
    expect("start 1\nstart 1\n", text(place, "runs"))
    stop_cleanly(worker)


@test
def projects_with_prefixes_stay_apart_over_a_failover(place):
    use_good_plugins(place)
    trio = Trio(place)
    workers = []
    for prefix in ("weir", "shop"):
        place.env["WEIR_REDIS"] = trio.url + "?prefix=" + prefix
        workers.append(place.work(place.echo(name=prefix)))
        place.add("t", "before")
        ran(place, "before", prefix)
    trio.await_replicas()
    new = trio.fail_over()
    place.add("t", "after")
    ran(place, "after", "shop")
    expect(["before"], ids(place, "weir"))
    place.env["WEIR_REDIS"] = trio.url
    place.add("t", "last")
    ran(place, "last", "weir")
    expect(["before", "after"], ids(place, "shop"))
    expect([1, 1], [ask(new.path, "EXISTS", key) for key in
                    ("weir:{t}:meta", "shop:{t}:meta")])
    for worker in workers:
        stop_cleanly(worker)
