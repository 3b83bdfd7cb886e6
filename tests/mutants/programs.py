# SPDX-License-Identifier: MIT
"""The test programs in C of a build, and how one of them is run."""

import json
import os
import re
import signal
import subprocess
import tempfile
import threading

# Labels of tests in C, and how many seconds a program takes until it is known.
SECONDS = {"unit": 1, "plugin": 3, "adapter": 3, "redis": 15, "scripts": 30}
MEMORY_KIB = 4 << 20  # most of it that a process gets


class Race:
    """Programs that run at the same time, until one of them has a verdict."""

    def __init__(self):
        self.sessions = set()
        self.is_over = False

    def enter(self, session):
        self.sessions.add(session)
        if self.is_over:
            kill_session(session)

    def leave(self, session):
        kill_session(session)
        self.sessions.discard(session)

    def end(self):
        self.is_over = True
        for session in list(self.sessions):
            kill_session(session)


class Program:
    """A test as ctest knows it."""

    def __init__(self, test):
        properties = {one["name"]: one["value"]
                      for one in test.get("properties", [])}
        self.name = test["name"]
        self.command = test.get("command", [""])
        self.target = os.path.basename(self.command[0])
        self.labels = properties.get("LABELS", [""])
        self.environment = dict(one.split("=", 1) for one in
                                properties.get("ENVIRONMENT", []))
        self.folder = properties.get("WORKING_DIRECTORY", "")
        self.words = set(re.split(r"[/_]", self.folder.rpartition("/tests/")[2] +
                                  "/" + self.name))
        self.seconds = SECONDS.get(self.labels[0], 0)

    def is_wanted(self):
        """A second label puts a test off: `all` has planted faults."""
        return self.labels[0] in SECONDS and len(self.labels) == 1 and \
            self.target.startswith("test_")

    def run(self, race, test=None):
        """The first test that fails, by its name, or "time" or "exit" if the
        program ends without one; None if all pass. With `test` only that."""
        limits = f"ulimit -t {2 + 2 * int(self.seconds)} -v {MEMORY_KIB}; " \
            'exec "$@"'
        arguments = self.command[1:] if test in (None, "time", "exit") \
            else [test]
        with tempfile.TemporaryDirectory(prefix="weir-mutants-") as folder:
            process = subprocess.Popen(
                ["sh", "-c", limits, "sh", self.command[0], *arguments],
                cwd=self.folder, start_new_session=True,
                env={**os.environ, **self.environment, "TMPDIR": folder},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace")
            race.enter(process.pid)
            timer = threading.Timer(40 + 5 * self.seconds, kill_session,
                                    [process.pid])
            timer.start()
            try:
                return _failure(process)
            finally:
                timer.cancel()
                race.leave(process.pid)
                process.wait()
                process.stdout.close()


def _failure(process):
    for line in process.stdout:
        if line.startswith("FAILED "):
            return line.split()[1].rstrip(":")
    return {0: None, -signal.SIGKILL: "time"}.get(process.wait(), "exit")


def kill_session(session):
    """Kill all that a program started, in whatever process groups."""
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.getsid(int(entry)) == session:
                os.kill(int(entry), signal.SIGKILL)
        except ProcessLookupError:
            pass


def find(tree):
    """The programs of the build of a tree."""
    shown = subprocess.run(
        ["ctest", "--test-dir", "build", "--show-only=json-v1"], cwd=tree,
        check=True, stdout=subprocess.PIPE).stdout
    found = map(Program, json.loads(shown)["tests"])
    return [program for program in found if program.is_wanted()]
