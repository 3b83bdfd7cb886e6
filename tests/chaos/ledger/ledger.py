# SPDX-License-Identifier: MIT
"""A ledger test: a producer adds numbered jobs through the weir command,
workers write down what they run, faults happen, and in the end every job has
to be accounted for (account.py)."""

import json
import os
import random
import signal
import subprocess
import threading
import time

from account import Account, Fault, Job, read_runs
from e2e import (PATIENCE, WEIR, eventually, expect, expect_true, terminate,
                 wait)
from patience import Clock, Stopwatch
from server import Client, Refused

TOPIC = "t"
SEED = int(os.environ.get("WEIR_CHAOS_SEED", "1"))
GROWTH_KIB = 4096  # more than this is a leak


def now_ms():
    return time.time_ns() // 1000000


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kib(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return 0


class Worker:
    """weir run in the background; its log and its records are files."""

    def __init__(self, ledger, name, url, options, flags):
        self.name = name
        self.record = ledger.place.path(name + ".record")
        self.log = ledger.place.path(name + ".log")
        handler = "&".join(["file=" + self.record] + options)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [WEIR, "run", "--redis", url, "--lease",
                 "%dms" % ledger.lease_ms, "--retry", "20ms ...",
                 "--max-dead", "1000000",
                 "--handle", "%s=ledger?%s" % (TOPIC, handler), *flags],
                env=ledger.place.env, stdin=subprocess.DEVNULL, stderr=log)
        ledger.place.started.append(self.process)

    @property
    def pid(self):
        return self.process.pid

    def runs(self):
        try:
            with open(self.record, encoding="utf-8") as file:
                return read_runs(self.name, file.read())
        except FileNotFoundError:
            return []

    def record_size(self):
        try:
            return os.path.getsize(self.record)
        except FileNotFoundError:
            return 0

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """SIGTERM, and the exit code must be 0."""
        terminate(self.process)
        expect(0, wait(self.process), "exit code of " + self.name)


def waits_of(pid):
    """By thread of a process: how many ns it has waited for a CPU so far."""
    threads, waits = "/proc/%d/task" % pid, {}
    try:
        for thread in os.listdir(threads):
            with open(os.path.join(threads, thread, "schedstat")) as file:
                waits[thread] = int(file.read().split()[1])
    except OSError:  # it is over, or the kernel does not count
        pass
    return waits


class Heart(threading.Thread):
    """Notes when the machine, the server or a worker stood still for so long
    that a lease may have ended without anybody's fault."""

    def __init__(self, ledger):
        super().__init__(daemon=True)
        self.ledger = ledger
        self.is_over = threading.Event()
        self.client = None
        self.waited = {}  # by thread

    def beat(self):
        try:
            if self.client is None:
                self.client = Client(self.ledger.server.socket)
            self.client.call("PING")
        except (OSError, Refused):
            self.client = None

    def note(self, worker, begin, end):
        lease_ms = self.ledger.lease_ms
        if end - begin > lease_ms / 3:
            self.ledger.note("stall", worker, begin, end + lease_ms)

    def feel(self, worker):
        """It stood still when a thread of it waited for a CPU."""
        for thread, ns in waits_of(worker.pid).items():
            now, waited = now_ms(), ns - self.waited.get(thread, ns)
            self.note(worker, now - waited // 1000000, now)
            self.waited[thread] = ns

    def run(self):
        while not self.is_over.is_set():
            begin = now_ms()
            time.sleep(0.02)
            self.beat()
            self.note(None, begin, now_ms())
            for worker in list(self.ledger.alive):
                self.feel(worker)

    def stop(self):
        self.is_over.set()
        self.join()

    def stalled_ms(self, since):
        """How long all stood still since then."""
        return sum(fault.end - self.ledger.lease_ms - fault.begin
                   for fault in self.ledger.faults
                   if fault.what == "stall" and fault.worker is None and
                   fault.end >= since)


class Ledger:
    def __init__(self, place, server, lease_ms=2000, options=("work=1ms",),
                 url=None):
        self.place, self.server, self.lease_ms = place, server, lease_ms
        place.is_evidence = True
        self.url = url or server.url
        self.options = list(options)
        self.random = random.Random(SEED)
        self.jobs, self.faults = {}, []
        self.workers, self.alive = [], []
        self.producer, self.is_produced = None, threading.Event()
        self.trouble = None  # what the producer stumbled over
        self.limit = None    # so many jobs for now
        self.is_watched = False  # workers must have some in any case
        self.heart = Heart(self)
        self.heart.start()

    # --- workers and what is done to them --------------------------------

    def start_worker(self, *flags, options=None):
        worker = Worker(self, "w%d" % len(self.workers), self.url,
                        self.options if options is None else options, flags)
        self.workers.append(worker)
        self.alive.append(worker)
        return worker

    def note(self, what, worker=None, begin=None, end=None):
        begin = now_ms() if begin is None else begin
        fault = Fault(what, worker and worker.name, begin, end)
        self.faults.append(fault)
        return fault

    def kill(self, worker):
        """kill -9; returns when it was."""
        at = now_ms()
        worker.kill()
        self.alive.remove(worker)
        self.note("kill", worker, at, now_ms())
        return at

    def freeze(self, worker, seconds):
        """SIGSTOP, SIGCONT."""
        fault = self.note("stop", worker)
        worker.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        worker.process.send_signal(signal.SIGCONT)
        fault.end = now_ms() + self.lease_ms

    def during(self, what, fn, slack_ms=None):
        """A fault that concerns everybody, while fn() runs and until all have
        noticed that it is over."""
        fault = self.note(what, None)
        fault.end = fault.begin + 3600000
        fn()
        fault.end = now_ms() + (2 * self.lease_ms if slack_ms is None
                                else slack_ms)

    def runs(self):
        return [run for worker in self.workers for run in worker.runs()]

    def has_runs(self, count, what="runs"):
        eventually(lambda: len(self.runs()) >= count,
                   "%d %s were written down" % (count, what))

    def at_work(self):
        """Workers that live and have run a job: one at least."""
        return eventually(
            lambda: [worker for worker in self.alive if worker.runs()],
            "somebody runs jobs")

    def waited_ms(self):
        """How long the server and the workers have waited for a CPU so far."""
        pids = [self.server.process.pid] + [worker.pid for worker in self.alive]
        return sum(ns for pid in pids
                   for ns in waits_of(pid).values()) // 1000000

    # --- the producer -----------------------------------------------------

    def weir(self, codes, *args, stdin=None):
        """weir until it ends with one of `codes`; (result, how often it ended
        otherwise). What it printed is JSON."""
        clock, failures = Clock(2 * PATIENCE), 0
        while True:
            result = self.place.weir(*args[0].split(), TOPIC, *args[1:],
                                     "--json", "--redis", self.url,
                                     stdin=stdin)
            if result.code in codes or "only what is" in result.err:
                return result, failures
            failures += 1
            expect_true(result.code in (1, 5), "weir %r: exit %d, %s"
                        % (args, result.code, result.err))
            expect_true(not clock.is_over(), "weir %r: %s"
                        % (args, result.err))
            time.sleep(0.05)

    def line(self, job, plan):
        """The JSON line of a job; notes what the plan makes of it."""
        delay = {"soon": self.random.randrange(1, 1500), "race": 300,
                 "delete": 3600000, "reschedule": 3600000}.get(plan, 0)
        if delay < 3600000:
            job.not_before = now_ms() + delay
        return json.dumps({"id": job.name, "delay": "%dms" % delay,
                           "body": {"n": len(self.jobs),
                                    "fail": plan == "fail"}})

    def add(self, plans):
        """Add a job for each plan; returns the jobs."""
        jobs = []
        lines = []
        for plan in plans:
            job = Job(str(len(self.jobs)))
            self.jobs[job.name] = job
            jobs.append(job)
            lines.append(self.line(job, plan))
        result, failures = self.weir((0, 4), "add", "--jsonl", "-",
                                     stdin="\n".join(lines) + "\n")
        if failures == 0:
            expect(len(jobs), result.json["added"], result.err)
        for job in jobs:
            job.is_uncertain = failures > 0
            job.is_acknowledged = True
        return jobs

    def delete(self, job):
        result, failures = self.weir((0, 3), "delete", job.name)
        if failures > 0 or (result.code == 0 and
                            result.json["was"] == "running"):
            job.may_be_gone = True
        elif result.code == 0:
            job.deleted_at = now_ms()

    def reschedule(self, job):
        delay = self.random.randrange(0, 500)
        begin = now_ms()
        # Where no answer came the first time it may run or be done by now.
        result, failures = self.weir((0, 3), "reschedule", job.name,
                                     "--delay", "%dms" % delay)
        if failures == 0:
            expect(0, result.code, result.err)
        job.not_before = begin + delay

    def add_batch(self, count):
        """Jobs of every sort, and what has to follow for them."""
        plans = self.random.choices(
            ("now", "soon", "fail"), (70, 25, 5), k=count)
        plans += ["delete", "race", "reschedule"]
        for job, plan in zip(self.add(plans), plans):
            if plan in ("delete", "race"):
                self.delete(job)
            elif plan == "reschedule":
                self.reschedule(job)

    def produce(self, count, gap=0.05):
        """Add batches of `count` until told to stop."""
        def work():
            try:
                while not self.is_produced.is_set():
                    if self.limit is None or len(self.jobs) < self.limit:
                        self.add_batch(count)
                    elif self.is_watched:
                        self.add_batch(60)
                    self.is_produced.wait(gap)
            except BaseException as trouble:
                self.trouble = trouble
        self.producer = threading.Thread(target=work, daemon=True)
        self.producer.start()

    def stop_producing(self):
        self.is_produced.set()
        if self.producer is not None:
            self.producer.join()
        if self.trouble is not None:
            raise self.trouble

    # --- the end -----------------------------------------------------------

    def is_empty(self):
        result = self.place.weir("stats", TOPIC, "--json", "--redis",
                                 self.server.url)
        if result.code != 0:
            return False
        stats = result.json["topics"][0]
        return all(stats[state] == 0
                   for state in ("scheduled", "ready", "running"))

    def drain(self, patience=PATIENCE):
        self.stop_producing()
        try:
            eventually(self.is_empty, "", patience)
        except AssertionError:
            raise AssertionError("something is left to run: %s" % (
                self.place.weir("list", TOPIC, "--limit", "5", "--redis",
                                self.url).out)) from None

    def dead(self):
        result, _ = self.weir((0, 3), "dead list")
        return {job["id"]: job["reason"] for job in result.json}

    def check_leases(self, key):
        """Of two calls that are sent again, as their script was forgotten, the
        second may come first, where another client loads it between them. If
        that one was to end a lease, the lease stays until its time."""
        leases = self.server.call("ZRANGE", key, "0", "-1", "WITHSCORES")
        seconds, us = map(int, self.server.call("TIME"))
        latest = seconds * 1000 + us // 1000 + self.lease_ms
        expect([], [end for end in leases[1::2] if int(end) > latest],
               "leases of nothing that do not end within %d ms"
               % self.lease_ms)

    def check_server(self):
        """Nothing is left behind but dead jobs and packs that vanish."""
        base = "weir:{%s}:" % TOPIC
        for key in ("wait", "run"):
            expect(0, self.server.call("EXISTS", base + key), key + " is left")
        self.check_leases(base + "lease")
        for key in self.server.call("KEYS", base + "p:*"):
            expect_true(self.server.call("PTTL", key) != -1,
                        "pack %s is nobody's" % key)
        ids = self.server.call("HGETALL", base + "ids")
        left = {name: pack for name, pack in zip(ids[::2], ids[1::2])
                if pack != "D" and name != "!"}
        expect_true(not left, "ids without a job: " + self.tell(left))

    def tell(self, left):
        """What became of jobs whose ids were left behind, id -> pack."""
        runs = sorted((run for run in self.runs() if run.job in left),
                      key=lambda run: run.start)
        lines = ["%d in packs %s" % (len(left), sorted(set(left.values())))]
        for name in sorted(left):
            lines.append("%s: %s" % (name, ", ".join(
                "%s %d-%s token %d attempt %d %s"
                % (run.worker, run.start, run.end, run.token, run.attempt,
                   run.verdict) for run in runs if run.job == name)
                or "never ran"))
        for worker in self.workers:
            lines += [worker.name + ": " + line
                      for line in worker.log_text().splitlines()
                      if any(pack in line for pack in left.values())]
        return "\n  ".join(lines)

    def close(self, what):
        """Wait for the end, end the workers, and make the account."""
        self.drain()
        for worker in self.alive:
            worker.end()
        self.heart.stop()
        account = Account(self.jobs, self.runs(), self.dead(), self.faults)
        with open(self.place.path("account"), "w", encoding="utf-8") as file:
            file.write(account.text())
        self.check_server()
        print("%s (seed %d): %s" % (what, SEED, account.summary()))
        expect([], account.wrong[:5], "%d findings" % len(account.wrong))
        expect_true(self.jobs, "there were jobs")
        return account


def expect_alive(ledger, what, patience=PATIENCE):
    """Every worker runs jobs again."""
    ledger.is_watched = True
    for worker in ledger.alive:
        before = worker.record_size()
        try:
            eventually(lambda: worker.record_size() > before or
                       ledger.trouble is not None, "", patience)
        except AssertionError:
            raise AssertionError(
                "%s does not work after %s: %s" % (
                    worker.name, what, worker.log_text()[-500:])) from None
        if ledger.trouble is not None:
            raise ledger.trouble
    ledger.is_watched = False


class Outage:
    """Workers must not spin while something is away."""

    def __init__(self, ledger):
        self.ledger, self.watch, self.cpu = ledger, None, []

    def __enter__(self):
        self.watch = Stopwatch()
        self.cpu = [cpu_seconds(worker.pid) for worker in self.ledger.alive]

    def __exit__(self, kind, *_):
        took = self.watch.seconds()
        for worker, before in zip(self.ledger.alive, self.cpu):
            used = cpu_seconds(worker.pid) - before
            if kind is None:
                expect_true(used <= 0.1 + 0.3 * took,
                            "%s used %.2f s of CPU in %.2f s"
                            % (worker.name, used, took))
