# SPDX-License-Identifier: MIT
"""Topics of all kinds on the nodes of a cluster; each has a producer that goes
on, workers serve all of them, and in the end every job has to be accounted
for."""

import glob
import os
import subprocess
import time

from account import Account, Fault, read_runs
from cluster import slot_of
from e2e import (PATIENCE, WEIR, eventually, expect, expect_true, rest,
                 terminate, wait)
from ledger import cpu_seconds, now_ms
from patience import Stopwatch
from producer import Producer

KINDS = ("delay", "bounded", "list", "stream", "sync", "concurrent")
LEASE_MS = 5000
LONG_LEASE_MS = 60000  # where no worker is lost: it lasts, however busy it is


def longest_pause_ms(runs, excused=()):
    """Between starts. Time from `begin` to `end` of what is excused does not
    count."""
    starts = sorted(run.start for run in runs)
    return max(b - a - sum(max(0, min(b, end) - max(a, begin))
                           for begin, end in excused)
               for a, b in zip(starts, starts[1:]))


class Topic:
    """Of that kind, with a name whose slot the node has."""

    def __init__(self, traffic, kind, node, rate, nth):
        place = traffic.place
        self.place, self.kind = place, kind
        self.name = traffic.cluster.topic(node, nth, kind)
        self.slot = slot_of(self.name)
        place.ok("topic", "set", self.name, "kind=" + kind,
                 "lease=%dms" % traffic.lease_ms,
                 *(("delay=0ms",) if kind in ("sync", "concurrent") else ()),
                 *(("length=1000000",) if kind == "bounded" else ()))
        more = {"delay": ', "id": "%(n)d", "delay": "%(delay)dms"',
                "bounded": ', "group": "g%(group)d"'}.get(kind, "")
        line = '{"body": {"number": %(n)d}' + more + "}"
        self.producer = Producer(
            place, place.env["WEIR_REDIS"], self.name, rate,
            lambda number: line % {"n": number, "group": number % 7,
                                   "delay": number % 2 * 800},
            may_end=kind not in ("delay", "bounded"))

    def record(self, worker):
        return self.place.path("%s.%d.record" % (self.name, worker))

    def records(self):
        return glob.glob(self.place.path(self.name + ".*.record"))

    def size(self):
        """Of what is written down."""
        return sum(os.path.getsize(path) for path in self.records())

    def runs(self):
        runs = []
        for path in self.records():
            with open(path, encoding="utf-8") as file:
                runs += read_runs("w" + path.split(".")[-2], file.read())
        return runs

    def is_done(self):
        stats = self.place.stats(self.name)
        return all(stats[state] == 0 for state in
                   ("ready", "running", "scheduled") if state in stats)

    def have_begun(self, count):
        return len({run.job for run in self.runs()}) >= count

    def judge(self, faults):
        """What is handled without a lease is done at the server a moment before
        it begins. Its producer has ended."""
        jobs = self.producer.jobs
        try:
            eventually(self.is_done, "")
        except AssertionError:
            raise AssertionError("%s is not done: %s" % (
                self.name, self.place.stats(self.name))) from None
        try:
            eventually(lambda: self.have_begun(len(jobs)), "", 1.0)
        except AssertionError:
            pass  # the account tells which
        account = Account(jobs, self.runs(), {}, faults)
        account.name, account.kind = self.name, self.kind
        account.rate = self.producer.rate
        print("%s: %s" % (self.name, account.summary()))
        return account


serial = [0]  # topics of each test have names of their own


class Traffic:
    """`topics[0]` is of kind delay and gets `rate` jobs in a second; it lies on
    the node, as does one of each kind; the last one lies on another node."""

    def __init__(self, place, cluster, node, rate=200, others=50, workers=2,
                 lease_ms=LEASE_MS):
        self.place, self.cluster, self.faults = place, cluster, []
        self.lease_ms = lease_ms
        place.is_evidence = True
        serial[0] += 2
        self.topics = [Topic(self, "delay", node, rate, serial[0] + 1)]
        self.topics += [Topic(self, kind, node, others, serial[0])
                        for kind in KINDS]
        self.topics.append(Topic(self, "delay", cluster.next_to(
            self.topics[0].slot), others, serial[0]))
        self.topic, self.slot = self.topics[0].name, self.topics[0].slot
        self.workers, self.count = [], 0
        for _ in range(workers):
            self.start_worker()
        self.goes_on("the beginning")

    def start_worker(self):
        number = self.count
        self.count += 1
        log = self.place.path("w%d.log" % number)
        handlers = [word for topic in self.topics for word in
                    ("--handle", "%s=ledger?file=%s"
                     % (topic.name, topic.record(number)))]
        with open(log, "ab") as file:
            worker = subprocess.Popen([WEIR, "run", *handlers],
                                      env=self.place.env, stderr=file,
                                      stdin=subprocess.DEVNULL)
        self.place.started.append(worker)
        worker.number, worker.log = number, log
        self.workers.append(worker)
        return worker

    def goes_on(self, after, topics=None, patience=PATIENCE):
        """In each topic jobs run that were added from now on."""
        for topic in self.topics if topics is None else topics:
            before = topic.size() + 6 * topic.producer.rate
            try:
                eventually(lambda: topic.size() > before, "", patience)
            except AssertionError:
                raise AssertionError("%s stands still after %s" % (
                    topic.name, after)) from None

    def waits(self, topics, seconds):
        """Of these nothing runs meanwhile, and the workers use no CPU."""
        eventually(lambda: self.is_still(topics), "they wait")
        before = [cpu_seconds(worker.pid) for worker in self.workers]
        sizes = [topic.size() for topic in topics]
        watch = Stopwatch()
        time.sleep(seconds)
        expect(sizes, [topic.size() for topic in topics])
        took = watch.seconds()
        for worker, used in zip(self.workers, before):
            used = cpu_seconds(worker.pid) - used
            expect_true(used <= 0.1 + 0.3 * took,
                        "it used %.2f s of CPU in %.2f s" % (used, took))

    def is_still(self, topics):
        sizes = [topic.size() for topic in topics]
        rest()
        return sizes == [topic.size() for topic in topics]

    def note(self, what, begin, end):
        """A fault that concerns everybody."""
        self.faults.append(Fault(what, None, begin, end))

    def kill_worker(self, worker):
        at = now_ms()
        worker.kill()
        worker.wait()
        self.workers.remove(worker)
        self.faults.append(Fault("kill", "w%d" % worker.number, at, now_ms()))

    def end(self):
        """All jobs are accounted for; returns the accounts of all topics."""
        for topic in self.topics:
            topic.producer.end()
        accounts = [topic.judge(self.faults) for topic in self.topics]
        for worker in self.workers:
            terminate(worker)
            expect(0, wait(worker), "a worker")
        print("the longest pause of %s: %d ms" % (
            self.topic, longest_pause_ms(self.topics[0].runs())))
        return accounts

    def expect_each_once(self):
        """At the end: nothing was lost, nothing ran twice."""
        for account in self.end():
            expect([], account.wrong[:5], "%s: %d findings" % (
                account.name, len(account.wrong)))
            expect([], account.repeated, account.name)
            expect(0, account.counts["never added"], account.name)
