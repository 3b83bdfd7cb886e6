# SPDX-License-Identifier: MIT
"""bench.py [JOBS]: adds and runs so many jobs (200,000) on a private server, and
prints a line of JSON for each way: jobs in a second, and us of this process' CPU
for each; then what pull and finish cost the server, in us a job, the least of ten
rounds. Wants the package to be installed."""

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


def measure_server(path, batch):
    server = redis.Redis(unix_socket_path=path)
    link = weir.client.Link(server)
    keys = weir.client.topic_keys("weir", "s", weir.worker.KEYS)
    run_id = server.info("server")["run_id"][:16]
    calls = max(10, 256 // batch)
    weir.Client(server).add_many("s", [{"n": i} for i in
                                       range(10 * calls * batch)])

    def spent(kind, *args):
        before = server.info("commandstats").get("cmdstat_evalsha")
        answer, = link.ask(weir.client.call(kind, keys, *args))
        after = server.info("commandstats")["cmdstat_evalsha"]
        return answer, after["usec"] - (before["usec"] if before else 0)

    rounds = []
    for _ in range(10):
        pulled = finished = 0
        for _ in range(calls):
            answer, us = spent("pull", batch, "bench", 0, run_id)
            pulled += us
            told = [part for job in answer[8] for part in (job[0], "done", "",
                                                           "")]
            finished += spent("finish", "bench", *told)[1]
        rounds.append((pulled, finished))
    print(json.dumps({
        "case": "server", "batch": batch,
        "pull_us": round(min(one[0] for one in rounds) / calls / batch, 2),
        "finish_us": round(min(one[1] for one in rounds) / calls / batch, 2),
    }), flush=True)


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
        for batch in (1, 16, 256):
            measure_server(path, batch)
    finally:
        server.kill()
        server.wait()
