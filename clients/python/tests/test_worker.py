# SPDX-License-Identifier: MIT
"""Workers in Python run jobs by the rules that those of weir go by."""

import asyncio
import collections
import datetime
import errno
import logging
import re
import threading
import time
from unittest import mock

import library
from e2e import (end_cleanly, eventually, expect, expect_in, expect_true,
                 stop_cleanly, terminate, test)
from library import in_both, in_thread, run_in, start_worker
from server import Server

import msgpack
import redis
import weir
import weir.aio


def open_server(place, *options):
    """Weir's commands ask it as well. No lease ends unless it is to."""
    server = Server(place).start()
    place.env["WEIR_REDIS"] = server.url
    place.ok("topic", "set", "t", *(options or ["lease=1m"]))
    return server.socket


def wait_for(place):
    """The body of a job that runs until let_go()."""
    return {"until": place.path("go")}


def let_go(place):
    place.write("go", "")


def client_of(path):
    return weir.Client(redis.Redis(unix_socket_path=path))


def counts_of(client):
    time.sleep(0.04)  # the worker needs the processor, too
    return client.counts("t")


def await_count(client, name, count):
    eventually(lambda: counts_of(client)[name] == count,
               "%s is %d" % (name, count))


def dead(place, job_id):
    """Its reason and error, without the line where that was raised."""
    reason, error = place.dead(job_id)
    return [reason, re.sub(r":\d+\)$", ")", error)]


def runs(place):
    return library.read_runs("record", place.path("record"))


def await_end(client, **wanted):
    """Nothing is left to run; then these numbers are so."""
    def is_over():
        counts = counts_of(client)
        return counts["waiting"] == 0 == counts["running"]
    eventually(is_over, "all jobs ended")
    counts = client.counts("t")
    expect(wanted, {name: counts[name] for name in wanted})


@in_both
def every_job_runs_once(place, kind):
    path = open_server(place)
    client = client_of(path)
    client.add_many("t", [{"n": i} for i in range(600)])
    client.add_many("t", [None] * 100, ["id-%d" % i for i in range(100)])
    for i in range(20):
        client.add("t", i, id=str(i))
    worker = start_worker(place, kind, path)
    await_end(client, done=720)
    stop_cleanly(worker)
    found = runs(place)
    expect((720, 720), (len(found), len({run.job for run in found})))


@in_both
def due_times_of_mixed_packs_are_kept(place, kind):
    path = open_server(place, "lease=1m", "retry=none")
    worker = start_worker(place, kind, path)
    lines = "".join('{"id":"%d","delay":"%dms","body":{"early":true}}\n'
                    % (i, i * 7 % 500) for i in range(200))
    added = place.ok("add", "t", "--jsonl", "-", stdin=lines)
    expect(200, added["added"])
    await_end(client_of(path), done=200, dead=0)
    stop_cleanly(worker)
    expect(200, len(runs(place)))


@in_both
def what_handlers_raise_is_told(place, kind):
    path = open_server(place, "lease=1m", "retry=10ms 10ms",
                       "retry_jitter=50%")
    client = client_of(path)
    client.add("t", {"raise": "no luck"}, id="raise", headers={"a": "b"})
    client.add("t", {"raise": "none"}, id="own", retry="none")
    client.add("t", {"fail": True}, id="fail")
    client.add("t", {"snooze": 0.01}, id="snooze")
    made = client.add("t", {"raise": "again"}).id
    worker = start_worker(place, kind, path)
    await_end(client, done=1, dead=4)
    stop_cleanly(worker)
    expect(["exhausted", "ValueError: no luck (worker.py)"],
           dead(place, "raise"))
    expect(["exhausted", "ValueError: none (worker.py)"], dead(place, "own"))
    expect(["failed", "told to fail"], place.dead("fail"))
    expect(["exhausted", "ValueError: again (worker.py)"], dead(place, made))
    expect(["retry"] * 3, [one["outcome"] for one in place.ok(
        "show", "t", "raise")["attempts"]])
    found = client.look("t", "raise")
    expect((3, 3, {"a": "b"}), (found.attempt, found.failures,
                                found.options["headers"]))
    expect_true(found.options["added_ms"] <= found.due_ms, "added, then died")
    attempts = [(run.job, run.attempt) for run in runs(place)
                if run.job in ("raise", "snooze")]
    expect([("raise", 1), ("raise", 2), ("raise", 3), ("snooze", 1),
            ("snooze", 1)], sorted(attempts))


@in_both
def what_takes_too_long_is_retried(place, kind):
    path = open_server(place, "lease=1m", "retry=none", "timeout=100ms")
    client = client_of(path)
    client.add("t", wait_for(place), id="a")
    worker = start_worker(place, kind, path)
    await_end(client, dead=1)
    expect(["exhausted", "timeout"], place.dead("a"))
    expect(1, client.look("t", "a").timeouts)
    attempt, = place.ok("show", "t", "a")["attempts"]
    expect(("timeout", "timeout"), (attempt["outcome"], attempt["error"]))
    expect_in("-%d-" % worker.pid, attempt["worker"])
    stop_cleanly(worker)


@in_both
def leases_are_renewed(place, kind):
    path = open_server(place, "lease=10s")
    client = client_of(path)
    client.add("t", wait_for(place), id="a")
    worker = start_worker(place, kind, path)
    server = redis.Redis(unix_socket_path=path)

    def leases():
        return server.zrange("weir:{t}:lease", 0, -1, withscores=True)
    (token, end), = eventually(leases, "it is claimed")
    eventually(lambda: leases()[0][1] > end, "it is renewed")
    expect(token, leases()[0][0])
    let_go(place)
    await_end(client, done=1)
    stop_cleanly(worker)
    expect(1, len(runs(place)))


@test
def a_lease_is_renewed_while_a_handler_holds_the_loop(place):
    path, renewals = open_server(place, "lease=1s"), []
    server = redis.Redis(unix_socket_path=path)

    def lease_end():
        return server.zrange("weir:{t}:lease", 0, 0, withscores=True)[0][1]

    def handle(_job):
        last = lease_end()
        for _ in range(3):
            eventually(lambda: lease_end() > last, "it is renewed")
            last = lease_end()
            renewals.append(last)
    client = client_of(path)
    client.add("t", 1)
    worker, ended = run_in("asyncio", path, {"t": handle})
    await_end(client, done=1, crashed=0)
    worker.stop()
    ended.result()
    expect(3, len(renewals))


@test
def a_handler_that_never_lets_the_loop_go_loses_its_lease(place):
    path, go = open_server(place, "lease=1s", "timeout=1s"), threading.Event()
    client = client_of(path)
    client.add("t", 1, id="a")
    worker, ended = run_in("asyncio", path, {"t": lambda job: go.wait()})
    eventually(lambda: client.counts("t")["running"] == 1, "it runs")
    other = start_worker(place, "threads", path)
    await_end(client, done=1)
    go.set()
    worker.stop()
    ended.result()
    stop_cleanly(other)


@in_both
def jobs_in_hand_have_the_lease_of_the_topic_when_that_changes(place, kind):
    path = open_server(place, "lease=30m")
    client = client_of(path)
    client.add("t", wait_for(place), id="a")
    worker = start_worker(place, kind, path)
    server = redis.Redis(unix_socket_path=path)
    (token, _), = eventually(lambda: server.zrange(
        "weir:{t}:lease", 0, -1, withscores=True), "a is claimed")
    for minutes in (60, 20):
        place.ok("topic", "set", "t", "lease=%dm" % minutes)
        client.add("t", 1)  # with it comes the lease
        eventually(lambda: msgpack.unpackb(server.hget(
            "weir:{t}:held", token))[-1] == minutes * 60000, "it is renewed")
    let_go(place)
    await_end(client, done=3)
    stop_cleanly(worker)


@in_both
def what_waited_too_long_expires(place, kind):
    path = open_server(place)
    client = client_of(path)
    client.add_many("t", [1, 2], ["a", "b"], ttl=0.001)
    client.add("t", 3, id="c")
    eventually(lambda: counts_of(client)["oldest"] > 100, "time goes")
    worker = start_worker(place, kind, path)
    await_end(client, done=1, expired=2)
    stop_cleanly(worker)
    expect(["c"], [run.job for run in runs(place)])


@in_both
def what_cannot_be_read_is_dead(place, kind):
    path = open_server(place)
    client = client_of(path)
    client.add_many("t", ["good", "bad", "good"], retry="1h")
    client.add_many("t", ["odd"], ["odd"], retry="2h")
    client.add("t", 1, id="later")
    server = redis.Redis(unix_socket_path=path)
    for key in server.keys("weir:{t}:p:*"):
        pack = server.get(key)
        pack = pack.replace(b"\xa3bad", b"\xa9bad")
        pack = pack.replace(b"\xa22h", b"\xcd\0\5")  # a number
        if b"later" in pack:
            pack = b"W9" + pack[2:]
        server.set(key, pack)
    worker = start_worker(place, kind, path)
    await_count(client, "done", 2)
    await_count(client, "dead", 2)
    stop_cleanly(worker)
    counts = counts_of(client)
    expect((2, 0, 1), (counts["dead"], counts["running"], counts["waiting"]))
    dead = {job["id"]: job["reason"] for job in place.ok("dead", "list", "t")}
    expect(["malformed"] * 2, list(dead.values()))
    expect_in("odd", dead)


@in_both
def what_kills_its_workers_is_dead_and_others_are_not(place, kind):
    path = open_server(place, "lease=1s", "max_crashes=2")
    client = client_of(path)
    client.add_many("t", [{}] * 10 + [{"crash": True}] + [{}] * 10)
    crashes = 0
    while client.counts("t")["dead"] == 0:
        worker = start_worker(place, kind, path, concurrency=1)
        eventually(lambda: worker.poll() is not None or
                   counts_of(client)["dead"] == 1, "it dies or the job does")
        if worker.poll() is not None:
            crashes += 1
            worker.communicate()
    await_end(client, done=20, dead=1)
    stop_cleanly(worker)
    expect("crashed", place.ok("dead", "list", "t")[0]["reason"])
    # The first lease that ends blames nobody, also that of a slow worker.
    expect_true(crashes in (2, 3), "%d crashes" % crashes)


@in_both
def sigterm_gives_back_what_has_not_begun(place, kind):
    path = open_server(place)
    client = client_of(path)
    client.add_many("t", [wait_for(place)] * 3)
    worker = start_worker(place, kind, path, concurrency=1)
    eventually(lambda: runs(place), "one runs")
    await_count(client, "running", 2)
    terminate(worker)
    await_count(client, "ready", 2)
    let_go(place)
    end_cleanly(worker)
    place.expect_stats("t", done_total=1, ready=2, running=0)
    expect(["done"], [run.verdict for run in runs(place)])
    server = redis.Redis(unix_socket_path=path)
    expect((0, 0), (server.exists("weir:{t}:idle", "weir:{t}:lease"),
                    server.hlen("weir:{weir:topics}:workers")))


@in_both
def an_idle_worker_is_woken(place, kind):
    path = open_server(place, "lease=1h")
    client = client_of(path)
    worker = start_worker(place, kind, path)
    server = redis.Redis(unix_socket_path=path)
    eventually(lambda: server.zcard("weir:{t}:idle"), "it sleeps")
    place.add("t", "a")
    await_count(client, "done", 1)
    place.ok("pause", "t")
    place.add("t", "b")
    place.ok("resume", "t")
    await_count(client, "done", 2)
    stop_cleanly(worker)


@in_both
def workers_are_seen(place, kind):
    path = open_server(place)
    worker = start_worker(place, kind, path)
    found = eventually(lambda: place.ok("workers")["workers"], "it is seen")
    expect((worker.pid, ["t"]), (found[0]["pid"], [
        topic["topic"] for topic in found[0]["topics"]]))
    stop_cleanly(worker)


@in_both
def a_server_that_starts_again_is_served(place, kind):
    server = Server(place, fsync="always").start()
    place.env["WEIR_REDIS"] = server.url
    client = client_of(server.socket)
    place.ok("topic", "set", "t", "lease=2s")
    worker = start_worker(place, kind, server.socket)
    client.add("t", 1, id="a")
    await_count(client, "done", 1)
    server.kill()
    server.start()
    client.add("t", 1, id="b")
    await_end(client, done=2)
    stop_cleanly(worker)


@test
def topics_that_it_cannot_serve_are_left_alone(place):
    path = open_server(place, "on_dead=w")
    place.ok("topic", "set", "u", "kind=list")
    client = client_of(path)
    for topic in "tv":
        client.add(topic, topic)
    ran, told = [], []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())
    logging.getLogger("weir").addHandler(handler)
    worker, over = run_in("threads", path, dict.fromkeys("tuv", ran.append))
    eventually(lambda: ran and len(told) >= 2, "it runs v, and says so")
    expect(["v"], [job.body for job in ran])
    place.ok("topic", "set", "t", "on_dead=none")
    eventually(lambda: len(ran) == 2, "t is served now")
    worker.stop()
    over.result(60)
    logging.getLogger("weir").removeHandler(handler)
    expect(["t: the topic has on_dead: weir itself serves it",
            "u: it is of the kind list"], sorted(
                line.replace("ERR ", "") for line in told))


@in_both
def a_full_server_keeps_verdicts_until_there_is_room(place, kind):
    path = open_server(place)
    client = client_of(path)
    client.add_many("t", [{**wait_for(place), "raise": "again"},
                          wait_for(place)], retry="10ms")
    worker = start_worker(place, kind, path)
    eventually(lambda: len(runs(place)) == 2, "both run")
    server = redis.Redis(unix_socket_path=path)
    server.config_set("maxmemory", 1)
    let_go(place)
    await_count(client, "done", 1)
    server.config_set("maxmemory", 0)
    await_end(client, dead=1)
    stop_cleanly(worker)
    expect(3, len(runs(place)))


class OwnSnooze(weir.Snooze):
    pass


class OwnFail(weir.Fail):
    pass


class NoText(Exception):
    def __str__(self):
        raise SystemError


def no_delay(seconds):
    error = weir.Retry("later")
    error.delay = seconds
    return error


@in_both
def errors_of_other_classes_are_told(place, kind):
    path = open_server(place, "lease=1m", "retry=none")
    client = client_of(path)
    raised = {"snooze": OwnSnooze(0.01), "fail": OwnFail("no"),
              "text": NoText(), "a": no_delay("5"), "b": no_delay(1e400),
              "c": no_delay(datetime.timedelta(1)), "d": no_delay(-1)}

    def handle(job):
        if job.id in raised and not job.snoozes:
            raise raised[job.id]
    client.add_many("t", list(raised) + ["done"], list(raised) + ["done"])
    worker, over = run_in(kind, path, {"t": handle})
    await_end(client, done=2, dead=6)
    worker.stop()
    over.result(60)
    expect(["failed", "no"], place.dead("fail"))
    expect(["exhausted", "NoText: its text or delay is none"],
           place.dead("text"))
    expect(["exhausted", "Retry: its text or delay is none"], place.dead("c"))


@test
def delays_are_seconds(_place):
    for delay in ("5", datetime.timedelta(1), -1, float("inf"), float("nan"),
                  1e10):
        for wrong in (weir.Snooze, lambda delay: weir.Retry("", delay),
                      lambda delay: weir.Fail("", delay)):
            try:
                wrong(delay)
            except ValueError as error:
                expect_in("seconds from 0 to 9999999999", str(error))
            else:
                raise AssertionError(delay)
    weir.Snooze(9999999999)


@test
def a_verdict_that_is_refused_holds_no_other(place):
    path = open_server(place)
    client = client_of(path)
    client.add_many("t", list(range(20)))

    def handle(job):
        if job.body == 7:
            job._handle = b"none"
    with mock.patch("weir.worker.DRAIN", 0.1):
        worker, over = run_in("threads", path, {"t": handle})
        await_count(client, "done", 19)
        worker.stop()
        over.result(60)


@test
def verdicts_after_a_late_run_are_told_again(place):
    path = open_server(place)
    client = client_of(path)
    client.add("t", 1, id="a", retry="1h")
    server = redis.Redis(unix_socket_path=path)
    begun, go = threading.Event(), threading.Event()

    def handle(_job):
        begun.set()
        go.wait()
        raise ValueError
    worker, over = run_in("threads", path, {"t": handle})
    begun.wait()
    worker.stop()
    worker._stop_at -= 60  # the run takes longer than a server may
    server.config_set("maxmemory", 1)
    go.set()
    eventually(lambda: any(job._told_at for job, *_ in worker._told),
               "it was told once")
    server.config_set("maxmemory", 0)
    over.result(60)
    place.expect_stats("t", running=0, scheduled=1)


def expect_b_malformed(place, kind, path):
    ran = []
    worker, over = run_in(kind, path, {"t": lambda job: ran.append(job.id)})
    await_end(client_of(path), done=1, dead=1)
    worker.stop()
    over.result(60)
    expect(["a"], ran)
    expect("malformed", place.ok("dead", "list", "t")[0]["reason"])


@in_both
def options_that_python_cannot_have_are_malformed(place, kind):
    path = open_server(place)
    client_of(path).add_many("t", [1, 2], ["a", "b"], headers={"x": "yz"})
    server = redis.Redis(unix_socket_path=path)
    key, = server.keys("weir:{t}:p:*")
    pack = server.get(key)
    at = pack.rindex(b"\x81\xa1x\xa2yz")  # {"x": "yz"}: {["y"]: "z"}
    server.set(key, pack[:at] + b"\x81\x91\xa1y\xa1z" + pack[at + 6:])
    expect_b_malformed(place, kind, path)


@test
def a_job_that_comes_while_the_last_runner_ends_is_run(_place):
    ran = []

    async def handle(job):
        ran.append(job.id)
        if job.id == "a":  # before it is told that the runner ended
            asyncio.get_running_loop().call_soon(come, "b")
    worker = weir.aio.Worker(redis.Redis(), {"t": handle}, concurrency=1)
    lane = weir.worker.Lane("weir", "t", handle)
    until = time.monotonic() + 60  # time is the subject: a lease
    claim = weir.worker.Claim(lane, 1, until)
    facts = weir.client.packb([0, 0, 0, 0, 0, 0, None, 0])

    def come(id):
        worker._waiting.append(weir.worker.Job(claim, [
            b"", id.encode(), b"\xc0", facts]))
        worker._start_runners()

    async def main():
        worker._ready = asyncio.Queue()
        worker._loop = asyncio.get_running_loop()
        worker._heard = asyncio.Event()
        asyncio.ensure_future(worker._run_jobs())
        come("a")
        for _ in range(10):
            await asyncio.sleep(0)
    asyncio.run(main())
    expect(["a", "b"], ran)


@test
def a_handler_that_is_cancelled_by_itself_is_retried(place):
    path = open_server(place)
    client = client_of(path)
    client.add("t", 1, id="a", retry="1h")

    async def handle(_job):
        inner = asyncio.ensure_future(asyncio.sleep(60))
        inner.cancel()
        await inner

    worker = weir.aio.Worker(redis.Redis(unix_socket_path=path), {"t": handle},
                             concurrency=1)
    over = in_thread(lambda: asyncio.run(worker.run(signals=False)))
    eventually(lambda: client.look("t", "a").attempt == 1, "it was retried")
    expect(0, client.look("t", "a").timeouts)
    worker.stop()
    over.result(60)


def wrapped(error, is_cause):
    """What a library makes of an exception."""
    try:
        try:
            raise error
        except BaseException as inner:
            if is_cause:
                raise redis.ConnectionError("refused") from inner
            raise ValueError("refused")
    except Exception as outer:
        return outer


def shortages():
    return [MemoryError(), OSError(errno.EMFILE, "m"),
            OSError(errno.ENFILE, "n"), OSError(errno.ENOMEM, "m"),
            BlockingIOError(errno.EAGAIN, "fork"),
            RuntimeError("can't start new thread"),
            wrapped(OSError(errno.EMFILE, "m"), True),
            wrapped(MemoryError(), False)]


@in_both
def what_a_worker_lacks_costs_no_job_an_attempt(place, kind):
    path, seen = open_server(place, "lease=1m", "retry=none"), set()

    def handle(job):
        if job.body not in seen:
            seen.add(job.body)
            raise shortages()[job.body]
        expect((1, 0, 1), (job.attempt, job.failures, job.snoozes))
    client = client_of(path)
    client.add_many("t", list(range(len(shortages()))))
    with mock.patch("weir.worker.SHORT_MS", 20):
        worker, ended = run_in(kind, path, {"t": handle})
        await_end(client, done=len(shortages()), dead=0)
    worker.stop()
    ended.result()


@in_both
def other_errors_of_the_system_are_retried(place, kind):
    path = open_server(place, "lease=1m", "retry=none")
    errors = [OSError(errno.ENOENT, "no file"), TimeoutError("late"),
              wrapped(BlockingIOError(errno.EAGAIN, "locked"), False),
              RuntimeError("can't start")]

    def handle(job):
        raise errors[job.body]
    client = client_of(path)
    client.add_many("t", list(range(len(errors))))
    worker, ended = run_in(kind, path, {"t": handle})
    await_end(client, done=0, dead=len(errors))
    worker.stop()
    ended.result()


@in_both
def a_body_for_which_there_is_no_memory_is_not_malformed(place, kind):
    path, is_first = open_server(place, "lease=1m", "retry=none"), [True]
    unpack = weir.worker.unpackb

    def unpackb(data, **options):
        if data == b"\xa1a" and is_first:
            is_first.clear()
            raise MemoryError
        return unpack(data, **options)
    client = client_of(path)
    client.add("t", "a")
    with mock.patch("weir.worker.SHORT_MS", 20), \
            mock.patch("weir.worker.unpackb", unpackb):
        worker, ended = run_in(kind, path, {"t": lambda job: None})
        await_end(client, done=1, dead=0)
    worker.stop()
    ended.result()


@in_both
def what_is_no_exception_is_retried_at_once(place, kind):
    path = open_server(place)
    client = client_of(path)
    client.add("t", 1, id="a", retry="1h")

    def handle(_job):
        raise BaseException("text")
    worker, over = run_in(kind, path, {"t": handle})
    eventually(lambda: client.look("t", "a").attempt == 1, "it was retried")
    job = client.look("t", "a")
    expect(0, job.timeouts)
    expect_in("BaseException: text (test_worker.py:", job.options["error"])
    worker.stop()
    over.result(60)


@in_both
def a_body_that_python_cannot_have_is_malformed(place, kind):
    path = open_server(place)
    client_of(path).add_many("t", ["good", {"x": "yz"}], ["a", "b"])
    server = redis.Redis(unix_socket_path=path)
    key, = server.keys("weir:{t}:p:*")  # of {["y"]: "z"}
    server.set(key, server.get(key).replace(b"\x81\xa1x\xa2yz",
                                            b"\x81\x91\xa1y\xa1z"))
    expect_b_malformed(place, kind, path)


@test
def no_more_than_prefetch_is_held(place):
    path = open_server(place)
    client = client_of(path)
    client.add_many("t", list(range(8)))
    held = []
    worker = weir.Worker(redis.Redis(unix_socket_path=path), {
        "t": lambda job: held.append(client.counts("t")["running"])},
        concurrency=4, prefetch=1)
    over = in_thread(worker.run)
    await_end(client, done=8)
    worker.stop()
    over.result(60)
    expect([1] * 8, held)


@test
def a_runner_that_takes_a_job_while_it_is_given_back_stops_nothing(place):
    path = open_server(place)
    client = client_of(path)
    client.add_many("t", [wait_for(place)] * 2)
    begun, go = threading.Event(), threading.Event()

    class Contended(collections.deque):
        seen = 0

        def __bool__(self):  # what was seen twice is taken by a runner
            self.seen += bool(worker._stop_at)
            if self.seen == 2 and len(self) == 1:
                worker._tell(self.popleft(), "back")
                return True
            return len(self) > 0

    def handle(_job):
        begun.set()
        go.wait()
    worker = weir.Worker(redis.Redis(unix_socket_path=path), {"t": handle},
                         concurrency=1)
    worker._waiting = Contended()
    over = in_thread(worker.run)
    begun.wait()
    await_count(client, "running", 2)
    worker.stop()
    eventually(lambda: over.done() or counts_of(client)["ready"],
               "it is given back")
    go.set()
    over.result(60)
    place.expect_stats("t", done_total=1, ready=1, running=0)


@test
def topics_take_turns(place):
    path = open_server(place)
    client = client_of(path)
    client.add_many("t", [1] * 3000)
    client.add_many("u", [2] * 20)
    ran = []

    def handle(job):
        ran.append(job.body)
        if ran.count(2) == 20:
            worker.stop()

    worker = weir.Worker(redis.Redis(unix_socket_path=path),
                         {"t": handle, "u": handle}, concurrency=1)
    ask, out, pulls = worker._ask, [], []

    async def counted(*commands):
        out.append(commands[0][1])
        pulls.append(out.count(weir.client.SHA1["pull"]))
        answers = await ask(*commands)
        out.remove(commands[0][1])
        return answers
    worker._ask = counted
    worker.run()
    expect_true(len(ran) < 3020, "the smaller one did not wait for all")
    expect(1, max(pulls), "pulls at a time")



@in_both
def ticks_of_schedules_are_left_to_weir(place, kind):
    path = open_server(place)
    place.ok("cron", "add", "s", "--topic", "t", "--every", "1h")
    server, client = redis.Redis(unix_socket_path=path), client_of(path)
    tick = server.hget("weir:{t}:ids", "s@next") + b"0000"
    server.zadd("weir:{t}:wait", {tick: 1})  # it is due first
    client.add("t", 1)
    worker = start_worker(place, kind, path)
    eventually(lambda: counts_of(client)["done"] == 1, "the job runs")
    expect(1, server.zscore("weir:{t}:wait", tick))
    expect(0, place.stats("t")["crashed_total"])
    own = place.start("run", "--handle", "t=echo")
    eventually(lambda: server.hget("weir:{t}:ids", "s@next") + b"0000" != tick
               and not server.zscore("weir:{t}:wait", tick), "weir took it")
    for process in (own, worker):
        stop_cleanly(process)
