# SPDX-License-Identifier: MIT
"""worker.py threads|asyncio SOCKET FILE CONCURRENCY [WORK] [RETRY_EVERY]: serves
the topic t, does what bodies say, and writes down what it runs as the plugin of
the ledger does."""

import asyncio
import itertools
import logging
import os
import signal
import sys
import time

import redis

import weir
import weir.aio

KIND, PATH, FILE, CONCURRENCY = sys.argv[1:5]
WORK = float(sys.argv[5]) if len(sys.argv) > 5 else 0.0
RETRY_EVERY = int(sys.argv[6]) if len(sys.argv) > 6 else 0
record = os.open(FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
runs = itertools.count(1)


def note(what, job, detail):
    os.write(record, b"%s %s %d %s %d\n" % (
        what, job.id.encode(), job.token, str(detail).encode(),
        time.time_ns() // 1000000))


def begin(job):
    """Until which file is there it works, its verdict, and what it raises."""
    note(b"S", job, job.attempt)
    told = job.body if isinstance(job.body, dict) else {}
    if told.get("early") and time.time() * 1000 < job.due_ms:
        return None, "fail", weir.Fail("early")
    if told.get("crash"):
        os.kill(os.getpid(), signal.SIGKILL)
    number, until = next(runs), told.get("until")
    if told.get("fail"):
        return until, "fail", weir.Fail("told to fail")
    if "raise" in told:
        return until, "retry", ValueError(told["raise"])
    if told.get("snooze") and not job.snoozes:
        return until, "snooze", weir.Snooze(told["snooze"])
    if RETRY_EVERY and number % RETRY_EVERY == 0:
        return until, "retry", weir.Retry("told to")
    return until, "done", None


def end(job, verdict, error):
    note(b"E", job, verdict)
    if error:
        raise error


def handle(job):
    until, verdict, error = begin(job)
    time.sleep(WORK)
    while until and not os.path.exists(until):
        time.sleep(0.01)
    end(job, verdict, error)


async def handle_async(job):
    until, verdict, error = begin(job)
    await asyncio.sleep(WORK)
    while until and not os.path.exists(until):
        await asyncio.sleep(0.01)
    end(job, verdict, error)


async def serve():
    await weir.aio.Worker(redis.Redis(unix_socket_path=PATH),
                          {"t": handle_async},
                          concurrency=int(CONCURRENCY)).run()


logging.basicConfig(level=logging.INFO)
if KIND == "asyncio":
    asyncio.run(serve())
else:
    weir.Worker(redis.Redis(unix_socket_path=PATH), {"t": handle},
                concurrency=int(CONCURRENCY)).run()
