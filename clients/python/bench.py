# SPDX-License-Identifier: MIT
"""bench.py [JOBS]: adds and runs so many jobs (200,000) on a private server, and
prints a line of JSON for each way: jobs in a second, and us of this process' CPU
for each. Wants the package to be installed."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time

import redis

import weir
import weir.aio

JOBS = int(sys.argv[1]) if len(sys.argv) > 1 else 200000


class Stopwatch:
    def __init__(self, case, count):
        self.case, self.count = case, count

    def __enter__(self):
        self.began, self.cpu = time.monotonic(), time.process_time()

    def __exit__(self, *_):
        took = time.monotonic() - self.began
        cpu = time.process_time() - self.cpu
        print(json.dumps({
            "case": self.case, "jobs": self.count,
            "per_second": round(self.count / took),
            "cpu_us": round(cpu * 1e6 / self.count, 2)}), flush=True)


class Countdown:
    """Handlers that do nothing but stop the worker after the last job."""

    def __init__(self):
        self.left = JOBS

    def handle(self, job):
        self.left -= 1
        if self.left == 0:
            self.worker.stop()

    async def handle_async(self, job):
        self.handle(job)


def add(client):
    with Stopwatch("add_many", JOBS):
        client.add_many("t", [{"n": i} for i in range(JOBS)])


async def serve(path):
    countdown = Countdown()
    countdown.worker = weir.aio.Worker(
        redis.Redis(unix_socket_path=path),
        {"t": countdown.handle_async})
    with Stopwatch("asyncio", JOBS):
        await countdown.worker.run()


def measure(path):
    client, few = weir.Client(redis.Redis(unix_socket_path=path)), JOBS // 20
    add(client)
    countdown = Countdown()
    countdown.worker = weir.Worker(redis.Redis(unix_socket_path=path),
                                   {"t": countdown.handle}, concurrency=1)
    with Stopwatch("threads", JOBS):
        countdown.worker.run()
    add(client)
    asyncio.run(serve(path))
    with Stopwatch("add", few):
        for i in range(few):
            client.add("u", {"n": i}, id=str(i))


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "redis.sock")
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket",
                               path, "--save", "", "--dir", folder],
                              stdout=subprocess.DEVNULL)
    try:
        while not os.path.exists(path):
            time.sleep(0.01)
        measure(path)
    finally:
        server.kill()
        server.wait()
