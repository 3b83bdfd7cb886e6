# SPDX-License-Identifier: MIT
"""The package as its build step makes it, in a directory of its own, and what
tests of it share."""

import asyncio
import atexit
import compileall
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import threading

import redis
from e2e import ROOT, test

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.dirname(HERE)
KINDS = ("threads", "asyncio")
sys.path.append(os.path.join(ROOT, "tests", "chaos", "ledger"))

FOLDER = tempfile.mkdtemp(prefix="weir-python-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
subprocess.run([sys.executable, "-B", "setup.py", "-q", "build_py",
                "--build-lib", FOLDER], cwd=SOURCES, check=True,
               stderr=subprocess.DEVNULL)
compileall.compile_dir(FOLDER, quiet=1)  # once, not in each worker
sys.path.insert(0, FOLDER)
import weir  # noqa: E402
import weir.aio  # noqa: E402
from account import Run  # noqa: E402


def read_runs(name, path):
    """What a worker wrote down, who runs several at a time."""
    runs = {}
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.split() for line in file if line.endswith("\n")]
    except FileNotFoundError:
        lines = []
    for what, job, token, detail, at in lines:
        if what == "S":
            runs[job, token] = Run(name, job, int(token), int(detail), int(at))
        else:
            run = runs[job, token]
            run.end, run.verdict = int(at), detail
    return list(runs.values())


def in_both(fn):
    """A test of the workers that run threads, and of those that run tasks."""
    for kind in KINDS:
        def one(place, kind=kind):
            fn(place, kind)
        one.__name__ = "%s_%s" % (fn.__name__, kind)
        test(one)
    return fn


def in_thread(run):
    """What it comes to."""
    over = concurrent.futures.Future()

    def result():
        try:
            over.set_result(run())
        except BaseException as error:
            over.set_exception(error)
    threading.Thread(target=result, daemon=True).start()
    return over


def run_in(kind, path, handlers):
    """A worker in this process, and what run() comes to."""
    server = redis.Redis(unix_socket_path=path)
    if kind == "threads":
        worker = weir.Worker(server, handlers)
        return worker, in_thread(worker.run)

    async def handle(job):
        return handlers[job.topic](job)
    worker = weir.aio.Worker(server, dict.fromkeys(handlers, handle))
    return worker, in_thread(lambda: asyncio.run(worker.run(signals=False)))


def start_worker(place, kind, path, name="record", concurrency=4):
    """A process that serves the topic t and writes down its runs."""
    process = subprocess.Popen(
        [sys.executable, "-B", os.path.join(HERE, "worker.py"), kind, path,
         place.path(name), str(concurrency)],
        env={**place.env, "PYTHONPATH": FOLDER}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    place.started.append(process)
    return process
