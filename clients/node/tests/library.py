# SPDX-License-Identifier: MIT
"""The library with what it needs, in the build, and what tests of it share."""

import fcntl
import os
import shutil
import subprocess
import sys

from e2e import BUILD, ROOT, run

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.dirname(HERE)
FOLDER = os.path.join(BUILD, "clients", "node")
ENV = {**os.environ, "WEIR_SCRIPTS": os.path.join(BUILD, "scripts"),
       "WEIR_DOCS": os.path.join(ROOT, "docs")}
sys.path.append(os.path.join(ROOT, "tests", "chaos", "ledger"))


def same(name):
    paths = [os.path.join(where, name) for where in (SOURCES, FOLDER)]
    if not all(map(os.path.exists, paths)):
        return False
    with open(paths[0], "rb") as one, open(paths[1], "rb") as other:
        return one.read() == other.read()


def install():
    """Sources are copied; what they need comes from npm when that changed."""
    done = os.path.join(FOLDER, "node_modules", ".package-lock.json")
    is_fresh = os.path.exists(done) and same("package-lock.json")
    shutil.copytree(SOURCES, FOLDER, dirs_exist_ok=True)
    if is_fresh:
        return
    npm = subprocess.run(["npm", "ci", "--prefer-offline", "--fetch-retries=1",
                          "--no-audit", "--no-fund"], cwd=FOLDER, text=True,
                         capture_output=True)
    if npm.returncode != 0:
        shutil.rmtree(os.path.join(FOLDER, "node_modules"), ignore_errors=True)
        sys.exit("clients/node: npm did not bring ioredis "
                 "(is its registry reached from here?):\n" + npm.stderr)


os.makedirs(FOLDER, exist_ok=True)
with open(os.path.join(FOLDER, "lock"), "w", encoding="ascii") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    install()


def node(*args, **more):
    """Runs node to its end."""
    return run(["node", *args], cwd=FOLDER, env=ENV, **more)
