# SPDX-License-Identifier: MIT
"""End-to-end tests of the weir command: a small harness.

Each test is a function decorated with @test; its name is the sentence that it
proves. It gets a Place: a data directory of its own with a private server, and
ways to run weir in it. Whatever was started there is killed and the directory
removed when the test is over. run.py runs the tests of a file and ends with
"N passed, N failed".
"""

import concurrent.futures
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

from patience import (PATIENCE, communicate, eventually, guarded, patient,
                      rest, run, wait)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("WEIR_BUILD", "build"))
WEIR = os.path.join(BUILD, "weir")
TEST_PLUGINS = os.path.join(BUILD, "tests", "plugins")
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"  # of a log line

tests = []
of_time = set()  # those whose subject is time


def test(fn):
    tests.append(fn)
    return fn


def time_test(fn):
    """A test whose subject is time, which a busy machine may fail: it runs
    with WEIR_TEST_TIME=only, or by its name."""
    of_time.add(fn)
    return test(fn)


def expect(wanted, got, what=""):
    if wanted != got:
        raise AssertionError("%swanted %r, got %r"
                             % (what + ": " if what else "", wanted, got))


def expect_in(wanted, text):
    if wanted not in text:
        raise AssertionError("wanted something with %r, got %r"
                             % (wanted, text))


def expect_true(condition, what):
    if not condition:
        raise AssertionError("not true: " + what)


def is_alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # gone before, or meanwhile
        return False


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def sentences(self):
        """Lines on stderr, but the one that says which server is used."""
        return [line for line in self.err.splitlines()
                if "private redis-server in" not in line]

    def expect_complaint(self, code, *words):
        """One sentence that begins with "weir: ", nothing on stdout."""
        expect(code, self.code, "exit code, stderr %r" % self.err)
        expect("", self.out)
        expect(1, len(self.sentences), "sentences in %r" % self.err)
        expect("weir: ", self.sentences[0][:6])
        for word in words:
            expect_in(word, self.sentences[0])
        return self


class Place:
    """A data directory and what runs in it."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="weir-e2e-", dir="/tmp")
        self.data = os.path.join(self.dir, "data")
        self.started = []
        self.is_evidence = False  # a failure keeps the directory
        self.env = {key: value for key, value in os.environ.items()
                    if not key.startswith("WEIR_") and key != "XDG_STATE_HOME"}
        self.env["WEIR_DATA"] = self.data
        self.env["WEIR_PLUGIN_PATH"] = TEST_PLUGINS
        self.env["WEIR_BLOCK_WARN"] = "1h"  # no warnings from a busy machine

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        """Make a file; returns its path."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def weir(self, *args, stdin=None, env=None, ulimit=None):
        """`ulimit`: of the shell's command, such as "-n 40"."""
        limited = ["sh", "-c", 'ulimit %s; exec "$@"' % ulimit, "sh"]
        done = run([*(limited if ulimit else ()), WEIR, *args], stdin,
                   env={**self.env, **(env or {})})
        return Result(done.returncode, done.stdout, done.stderr)

    def ok(self, *args, stdin=None):
        """weir with --json that must succeed; returns what it printed."""
        result = self.weir(*args, "--json", stdin=stdin)
        expect(0, result.code, "%r, stderr %r" % (args, result.err))
        return result.json

    def handler(self, plugin, topic="t", **options):
        """What --handle takes; `file` and `until` are names in this place."""
        for name in {"file", "until"} & set(options):
            options[name] = self.path(options[name])
        text = "&".join("%s=%s" % item for item in options.items())
        return "%s=%s%s%s" % (topic, plugin, "?" if text else "", text)

    def echo(self, topic="t", name="out"):
        """The handler that writes jobs as lines into a file."""
        return self.handler("echo", topic, file=name)

    def drain(self, *handlers, flags=(), ulimit=None):
        """weir run --until-empty, which must succeed."""
        handles = [word for one in handlers for word in ("--handle", one)]
        result = self.weir("run", "--until-empty", *handles, *flags,
                           ulimit=ulimit)
        expect(0, result.code, "exit code, stderr %r" % result.err)
        return result

    def work(self, *handlers, flags=()):
        """weir run in the background."""
        handles = [word for one in handlers for word in ("--handle", one)]
        return self.start("run", *handles, *flags)

    def add(self, topic, job_id, *args):
        return self.ok("add", topic, "--id", job_id, *args)

    def add_lines(self, topic, count, line='{"id":"%d"}'):
        """Jobs by --jsonl; `line` is told their number wherever it asks."""
        lines = ((line % ((i,) * line.count("%d"))) for i in range(count))
        return self.ok("add", topic, "--jsonl", "-", stdin="\n".join(lines))

    def add_many(self, topic, count, *args):
        """Several weir add at a time; ids are "0", "1", ..."""
        running = []
        for i in range(count):
            running.append(self.start("add", topic, "--id", str(i), *args))
            if len(running) >= 8:
                expect(0, wait(running.pop(0)))
        for process in running:
            expect(0, wait(process))

    def start(self, *args, stdin=None, stderr=subprocess.PIPE):
        """weir in the background."""
        process = subprocess.Popen([WEIR, *args], text=True, env=self.env,
                                   stdin=stdin, stdout=subprocess.PIPE,
                                   stderr=stderr)
        self.started.append(process)
        return process

    def stats(self, topic):
        return self.ok("stats", topic)["topics"][0]

    def expect_stats(self, topic, **wanted):
        stats = self.stats(topic)
        expect(wanted, {name: stats[name] for name in wanted})

    def dead(self, job_id, topic="t"):
        """[reason, error] of a job that must be dead."""
        job = self.ok("show", topic, job_id)
        expect("dead", job["state"])
        return [job["reason"], job["error"]]

    def lines(self, name):
        """JSON lines of a file; those that are complete."""
        try:
            with open(self.path(name), encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines(True)
                if line.endswith("\n")]

    def redis(self):
        """A connection to the private server."""
        return Redis(os.path.join(self.data, "redis.sock"))

    def server_pid(self):
        try:
            with open(os.path.join(self.data, "redis.pid")) as file:
                return int(file.read() or 0)
        except FileNotFoundError:
            return 0

    def close(self, has_failed=False):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        pid = self.server_pid()
        if pid > 1:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if has_failed and self.is_evidence:
            print("kept: %s" % self.dir)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)


def set_names(place, lines):
    """What names resolve to from now on, see tests/harness/names.h."""
    os.rename(place.write("names.new", lines), place.path("names"))
    place.env.update(
        LD_PRELOAD=os.path.join(BUILD, "tests", "test_names.so"),
        WEIR_TEST_NAMES=place.path("names"),
        ASAN_OPTIONS="verify_asan_link_order=0:" +
        os.environ.get("ASAN_OPTIONS", ""))


def fail_forks(place, most):
    """Of each program `most` forks work from now on, and all others fail."""
    place.env.update(
        LD_PRELOAD=os.path.join(BUILD, "tests", "test_no_forks.so"),
        WEIR_TEST_FORKS=str(most),
        ASAN_OPTIONS="verify_asan_link_order=0:" +
        os.environ.get("ASAN_OPTIONS", ""))


class Redis:
    """A bare connection to a server's unix socket."""

    def __init__(self, path):
        self.socket = patient(socket.socket(socket.AF_UNIX))
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def send(self, line):
        self.socket.sendall(line.encode() + b"\r\n")

    def line(self):
        return self.file.readline().decode(errors="replace").rstrip("\r\n")

    def close(self):
        self.file.close()
        self.socket.close()


class Heard:
    """A process that runs, and what it says on its stderr."""

    def __init__(self, process):
        self.process = process
        self.lines, self.seen = [], 0
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def says(self, words):
        """The next line with these words."""
        def is_said():
            while self.seen < len(self.lines):
                self.seen += 1
                if words in self.lines[self.seen - 1]:
                    return True
            return False
        try:
            eventually(is_said, "")
        except AssertionError:
            raise AssertionError("it says %r, not only %r" % (
                words, self.lines)) from None
        return self.lines[self.seen - 1]


def await_line(process, words):
    """The next line with these words on its stderr."""
    with guarded(process):
        for line in process.stderr:
            if words in line:
                return line
    raise AssertionError("it does not say %r" % words)


def hears_sigterm(process):
    """Whether it has a handler for SIGTERM, or is over."""
    if process.poll() is not None:
        return True
    with open("/proc/%d/status" % process.pid) as file:
        status = dict(line.split(":", 1) for line in file)
    return int(status.get("SigCgt", "0"), 16) >> (signal.SIGTERM - 1) & 1


def terminate(process):
    """SIGTERM for one that may have been started just now: without its handler
    it would die of it."""
    eventually(lambda: hears_sigterm(process), "it has a handler for SIGTERM")
    process.send_signal(signal.SIGTERM)


def signal_again(process, number=signal.SIGTERM):
    """What comes within 100 ms of a signal counts as the same one."""
    time.sleep(0.15)
    process.send_signal(number)


def end_cleanly(process):
    """It ends by itself, and the exit code must be 0; returns its stderr."""
    _, err = communicate(process)
    expect(0, process.returncode, "exit code, stderr %r" % err)
    return err


def stop_cleanly(process):
    """The same, of SIGTERM."""
    terminate(process)
    return end_cleanly(process)


def kill(process):
    process.kill()
    communicate(process)


together = [1]  # the last one: so many tests of the program run at once


def run_together(count):
    """So many at once, for tests that wait more than they work."""
    together.append(count)


def run_one(fn):
    place, is_good = Place(), False
    try:
        fn(place)
        is_good = True
    except Exception:
        print("FAILED %s" % fn.__name__)
        traceback.print_exc(file=sys.stdout)
    finally:
        place.close(has_failed=not is_good)
    return is_good


def main(names):
    is_time = os.environ.get("WEIR_TEST_TIME") == "only"
    wanted = [fn for fn in tests if (fn.__name__ in names if names
                                     else (fn in of_time) == is_time)]
    with concurrent.futures.ThreadPoolExecutor(together[-1]) as pool:
        results = list(pool.map(run_one, wanted))
    failed = results.count(False)
    print("%d passed, %d failed" % (len(results) - failed, failed))
    sys.exit(1 if failed or not (results if names else tests) else 0)
