# SPDX-License-Identifier: MIT
"""A run() that is cancelled, or that fails, gives back what it has: no job is
counted as crashed. And what a handler raises or returns is told."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from unittest import mock

import library
from e2e import communicate, eventually, expect, expect_in, expect_true, test
from library import in_both, in_thread, run_in
from server import Server

import redis
import weir
import weir.aio


def open_server(place, *options):
    server = Server(place).start()
    place.env["WEIR_REDIS"] = server.url
    place.ok("topic", "set", "t", *(options or ["lease=1h"]))
    return server.socket


def client_of(path):
    return weir.Client(redis.Redis(unix_socket_path=path))


def expect_given_back(place, path, count):
    """All are ready, none has an attempt, a crash or a lease."""
    place.expect_stats("t", ready=count, running=0, crashed_total=0,
                       retried_total=0)
    server, client = redis.Redis(unix_socket_path=path), client_of(path)
    expect((0, 0), (server.exists("weir:{t}:idle", "weir:{t}:lease"),
                    server.hlen("weir:{weir:topics}:workers")))
    for i in range(count):
        job = client.look("t", "job-%d" % i)
        expect(("ready", 0, 0), (job.state, job.attempt, job.crashes))


async def cancel_task(task):
    task.cancel()


async def cancel_all(task):
    for one in asyncio.all_tasks() - {asyncio.current_task()}:
        one.cancel()


async def leave(task):
    """asyncio.run() cancels what is left."""


def serve(path, cancel, jobs=6, concurrency=2, handle=None, count=2):
    """Runs a worker until `count` handlers run, then cancels. Returns what
    handlers noted."""
    notes = []
    client_of(path).add_many("t", list(range(jobs)),
                             ["job-%d" % i for i in range(jobs)])

    async def wait(job):
        notes.append("begin")
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            notes.append("cancelled")
            raise

    async def main():
        worker = weir.aio.Worker(redis.Redis(unix_socket_path=path),
                                 {"t": handle or wait},
                                 concurrency=concurrency)
        task = asyncio.ensure_future(worker.run(signals=False))
        while notes.count("begin") < count and len(worker._running) < count:
            await asyncio.sleep(0.001)
        await cancel(task)
        if cancel is not leave:
            try:
                await task
            except asyncio.CancelledError:
                notes.append("raised")
        return task
    task = asyncio.run(main())
    expect_true(task.cancelled(), "it was cancelled")
    return notes


@test
def a_cancelled_worker_gives_back_what_it_has(place):
    path = open_server(place)
    notes = serve(path, cancel_task)
    expect(["begin", "begin", "cancelled", "cancelled", "raised"], notes)
    expect_given_back(place, path, 6)


@test
def a_worker_whose_tasks_are_all_cancelled_gives_back_what_it_has(place):
    path = open_server(place)
    expect(2, serve(path, cancel_all).count("cancelled"))
    expect_given_back(place, path, 6)


@test
def a_worker_that_asyncio_run_cancels_gives_back_what_it_has(place):
    path = open_server(place)
    expect(2, serve(path, leave).count("cancelled"))
    expect_given_back(place, path, 6)


@test
def cancelled_again_and_again_no_job_is_dead(place):
    path = open_server(place, "lease=1h", "max_crashes=1")
    for _ in range(4):
        serve(path, cancel_task)
    expect_given_back(place, path, 6)


@test
def a_worker_that_is_cancelled_twice_gives_back_what_it_has(place):
    path, ends = open_server(place), []

    async def handle(_job):
        try:
            await asyncio.sleep(3600)
        finally:
            ends.append(None)
            await asyncio.sleep(0.05)  # it tidies up

    async def cancel(task):
        while not task.done():
            task.cancel()
            await asyncio.sleep(0.01)
    serve(path, cancel, handle=handle)
    expect_given_back(place, path, 6)
    expect(2, len(ends))


@test
def a_handler_that_no_cancel_ends_does_not_hold_run(place):
    path, is_over = open_server(place), asyncio.Event()

    async def handle(_job):
        while not is_over.is_set():
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                pass

    async def cancel(task):
        task.cancel()
        await asyncio.wait([task])
        is_over.set()
    with mock.patch("weir.worker.DRAIN", 0.3), \
            mock.patch("weir.worker.LATER", 0.05):
        serve(path, cancel, handle=handle)
    expect_given_back(place, path, 6)


@test
def a_timeout_of_asyncio_is_a_cancel(place):
    path = open_server(place)
    client_of(path).add("t", 1, id="job-0")
    begun = []

    async def main():
        async def handle(job):
            begun.append(job.id)
            await asyncio.sleep(3600)
        worker = weir.aio.Worker(redis.Redis(unix_socket_path=path),
                                 {"t": handle})
        while not begun:  # it may have come no further
            try:
                await asyncio.wait_for(worker.run(signals=False), 0.2)
            except asyncio.TimeoutError:
                worker = weir.aio.Worker(redis.Redis(unix_socket_path=path),
                                         {"t": handle})
    asyncio.run(main())
    expect_given_back(place, path, 1)


@test
def what_ends_in_spite_of_a_cancel_counts(place):
    path = open_server(place)

    async def handle(job):
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # it tidies up
            if job.body == 1:
                raise weir.Fail("no")
    serve(path, cancel_task, jobs=3, concurrency=3, handle=handle, count=3)
    place.expect_stats("t", done_total=2, dead=1, running=0, crashed_total=0)


@test
def jobs_that_come_with_the_cancel_go_back(place):
    path = open_server(place)
    client_of(path).add_many("t", [1] * 5, ["job-%d" % i for i in range(5)])

    async def main():
        async def handle(job):
            raise AssertionError("it was cancelled")
        worker = weir.aio.Worker(redis.Redis(unix_socket_path=path),
                                 {"t": handle})
        task = asyncio.ensure_future(worker.run(signals=False))
        while not worker._pulling:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        expect_true(task.cancelled(), "it was cancelled")
    asyncio.run(main())
    expect_given_back(place, path, 5)


@in_both
def a_task_that_fails_ends_the_run_and_gives_back(place, kind):
    path = open_server(place)
    client = client_of(path)
    server = redis.Redis(unix_socket_path=path)
    worker, over = run_in(kind, path, {"t": lambda job: None})
    worker._take = None  # a fault of ours, with jobs on their way
    eventually(lambda: client.add("t", 1) and over.done(), "it ends")
    try:
        over.result()
    except TypeError as error:
        expect_in("NoneType", str(error))
    else:
        raise AssertionError("nothing was raised")
    expect(0, server.exists("weir:{t}:idle"))


INTERRUPTED = """
import asyncio, sys, redis, weir.aio
async def handle(job):
    print(job.id, flush=True)
    await asyncio.sleep(3600)
asyncio.run(weir.aio.Worker(redis.Redis(unix_socket_path=sys.argv[1]),
                            {"t": handle}).run(signals=False))
"""


@test
def ctrl_c_gives_back_what_runs(place):
    path = open_server(place)
    client_of(path).add("t", 1, id="job-0")
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, path],
                               env={**place.env, "PYTHONPATH": library.FOLDER},
                               stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    place.started.append(process)
    expect("job-0\n", process.stdout.readline())
    os.kill(process.pid, signal.SIGINT)
    communicate(process)
    expect_given_back(place, path, 1)


class Lines(logging.Handler):
    """What weir logs meanwhile."""

    def __enter__(self):
        self.records = []
        logging.getLogger("weir").addHandler(self)
        return self

    def __exit__(self, *_):
        logging.getLogger("weir").removeHandler(self)

    def emit(self, record):
        self.records.append((record.getMessage(), record.exc_info))


def run_one(path, kind, handle, **options):
    """A job that runs once; how it was found afterwards."""
    client = client_of(path)
    client.add("t", 1, id="a", retry="none", **options)
    worker, over = run_in(kind, path, {"t": handle})
    eventually(lambda: client.look("t", "a").state == "dead", "it ended")
    worker.stop()
    over.result(600)
    return client.look("t", "a")


@in_both
def a_fault_is_logged_with_its_traceback(place, kind):
    def fault():
        raise KeyError("ä" * 300)
    with Lines() as lines:
        job = run_one(open_server(place), kind, lambda job: fault())
    (line, told), = lines.records
    expect_in("t: job a, attempt 1: KeyError: '", line)
    expect(KeyError, told[0])
    error = job.options["error"]
    expect_true(len(error.encode()) <= 200, error)
    expect_in("(test_cancel.py:", error[-22:])


@in_both
def a_verdict_is_no_fault(place, kind):
    def handle(job):
        raise weir.Retry("later")
    with Lines() as lines:
        job = run_one(open_server(place), kind, handle)
    expect(("later", []), (job.options["error"], lines.records))


@in_both
def a_verdict_that_is_returned_counts(place, kind):
    job = run_one(open_server(place), kind, lambda job: weir.Fail("never"))
    expect(("failed", "never"), (job.options["reason"], job.options["error"]))


@in_both
def what_nothing_runs_is_not_done(place, kind):
    async def coroutine():
        raise AssertionError("it runs")
    path = open_server(place)
    for result in (lambda: (i for i in range(3)), coroutine):
        job = run_one(path, kind, lambda job, result=result: result())
        expect_in("which nothing runs", job.options["error"])
        expect("exhausted", client_of(path).delete("t", "a").options["reason"])


@test
def a_plain_function_is_told_to_be_async(place):
    path = open_server(place)
    client_of(path).add("t", 1, id="a", retry="none")
    worker = weir.aio.Worker(redis.Redis(unix_socket_path=path),
                             {"t": lambda job: None})
    over = in_thread(lambda: asyncio.run(worker.run(signals=False)))
    eventually(lambda: client_of(path).look("t", "a").state == "dead", "ended")
    worker.stop()
    over.result(600)
    job = client_of(path).look("t", "a")
    expect_in("write async def", job.options["error"])
