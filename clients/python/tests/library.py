# SPDX-License-Identifier: MIT
"""The package as its build step makes it, in a directory of its own, and what
tests of it share."""

import atexit
import compileall
import os
import shutil
import subprocess
import sys
import tempfile

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
