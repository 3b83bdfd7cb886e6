# SPDX-License-Identifier: MIT
"""A worker dies at its n-th step, for n = 1, 2, 3 ... until there is none left:
before and after each run of a handler, each write to the server and each answer
from it. Whatever n is, another worker finishes all jobs, and those that each of
them adds to its topic and to another one are there exactly once. So are entries
of a list that go to other topics, and the dead in the topic of `on_dead`."""

import collections
import json
import os
import signal
import subprocess

from ledger import now_ms
from account import Account, Fault, Job, read_runs
from e2e import (BUILD, PATIENCE, TEST_PLUGINS, communicate, eventually,
                 expect, expect_true, test, wait)
from server import Server

STEP_WORKER = os.path.abspath(os.path.join(BUILD, "tests", "step_worker"))
LEASE_MS = 1000  # with 20 at a time some wait for a CPU
AT_ONCE = 20  # so many n at a time, each with a topic of its own


class Walk:
    """One n: a topic, the worker that dies, and the one that finishes."""

    kind = "delay"

    def __init__(self, place, server, steps):
        self.place, self.server, self.steps = place, server, steps
        self.topic = "t" + "-".join(map(str, steps))
        self.other = self.topic + "-other"
        self.graves = self.topic + "-graves"
        self.jobs, self.faults, self.names = {}, [], []
        self.process = None
        self.is_left = True  # it was killed each time

    def set(self, *options):
        result = self.place.weir("topic", "set", self.topic, *options,
                                 "--redis", self.server.url)
        expect(0, result.code, result.err)

    def add(self):
        self.set("on_dead=" + self.graves)
        plans = [("1", {}), ("2", {}), ("3", {"fail": True}), ("4", {}),
                 ("5", {})]
        lines = [json.dumps({"id": name, "body": body})
                 for name, body in plans]
        lines.append(json.dumps({"id": "6", "delay": "50ms"}))
        for name in "123456":
            for each in (name, name + ".here"):
                self.jobs[each] = Job(each)
                self.jobs[each].is_acknowledged = True
        result = self.place.weir("add", self.topic, "--redis", self.server.url,
                                 "--jsonl", "-", stdin="\n".join(lines) + "\n")
        expect(0, result.code, result.err)

    def record(self, worker):
        return self.place.path("%s.%s" % (self.topic, worker))

    def start(self, step):
        """A worker that dies at this step. Each third run is retried."""
        worker = "victim%d" % len(self.names)
        with open(self.record(worker + ".log"), "wb") as log:
            self.process = subprocess.Popen(
                [STEP_WORKER, self.server.url, self.topic,
                 os.path.join(TEST_PLUGINS, "ledger.so"),
                 "lease=%dms" % LEASE_MS, "kind=" + self.kind,
                 "file=" + self.record(worker), "retry_every=3",
                 "follow_to=" + self.follow_to()],
                env={**self.place.env, "WEIR_CHAOS_STEP": str(step)},
                stdin=subprocess.DEVNULL, stderr=log)
        self.place.started.append(self.process)
        return worker

    def follow_to(self):
        return self.other

    def is_empty(self):
        base = "weir:{%s}:" % self.topic
        return self.server.call("EXISTS", base + "wait", base + "run") == 0

    def wait(self, worker):
        """Until it is dead. One that outlives its jobs has no such step; it is
        told to stop, which takes some steps more."""
        eventually(lambda: self.process.poll() is not None or self.is_empty(),
                   "it dies or is done")
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            wait(self.process)
        with open(self.record(worker + ".log"), encoding="utf-8") as log:
            self.names.append(log.read())
        if self.process.returncode == 0:
            self.is_left = False
            return
        expect(-signal.SIGKILL, self.process.returncode, self.names)
        self.faults.append(Fault("kill", worker, now_ms()))

    def finish(self):
        """Its own leases may end no sooner than it, on a busy machine."""
        self.process = self.place.start(
            "run", "--redis", self.server.url, "--until-empty", "--lease",
            "%ds" % PATIENCE, "--retry", "20ms ...", "--handle",
            "%s=ledger?file=%s&follow_to=%s"
            % (self.topic, self.record("last"), self.follow_to()), "--handle",
            "%s=ledger?file=%s" % (self.other, self.record("other")))

    def judge(self):
        _, err = communicate(self.process)
        expect(0, self.process.returncode, err)
        runs = []
        for worker in ["victim%d" % i for i in range(len(self.names))]:
            runs += self.read(worker)
        runs += self.read("last")
        dead = self.server.call("HKEYS", "weir:{%s}:ids" % self.graves)
        dead = [name for name in dead if name != "!"]
        expect("1", self.server.call("HGET", "weir:{%s}:meta" % self.graves,
                                     "added"), "steps %r" % self.steps)
        account = Account(self.jobs, runs, dict.fromkeys(dead, "failed"),
                          self.faults)
        expect([], account.wrong, "steps %r (%s)" % (self.steps, self.names))
        expect(["3"], dead, "steps %r" % self.steps)
        expect([name + ".there" for name in "123456"],
               sorted(run.job for run in self.read("other")),
               "steps %r, the other topic" % self.steps)
        for topic in (self.topic, self.other):
            self.expect_nothing_left(topic)
        return len(account.repeated)

    def expect_nothing_left(self, topic):
        for key in ("run", "wait", "lease", "relay", "due", "held"):
            expect(0, self.server.call("EXISTS", "weir:{%s}:%s"
                                       % (topic, key)), key)
        for key in self.server.call("KEYS", "weir:{%s}:[po]:*" % topic):
            expect_true(self.server.call("PTTL", key) != -1,
                        "steps %r leave pack %s" % (self.steps, key))

    def read(self, worker):
        try:
            with open(self.record(worker), encoding="utf-8") as file:
                return read_runs(worker, file.read())
        except FileNotFoundError:
            return []


class ListWalk(Walk):
    """The same of a list whose retries and dead entries are for one other
    topic. What was recorded for it and what is done make up all entries."""

    kind = "list"

    def add(self):
        self.set("kind=list", "on_retry=" + self.other,
                 "on_dead=" + self.other)
        self.server.call("RPUSH", self.topic, *("{}" for _ in range(8)),
                         '{"fail": true}')

    def follow_to(self):
        return ""

    def is_empty(self):
        return super().is_empty() and \
            self.server.call("EXISTS", self.topic) == 0

    def judge(self):
        _, err = communicate(self.process)
        expect(0, self.process.returncode, err)
        done, added = [int(self.server.call("HGET", "weir:{%s}:meta" % topic,
                                            field) or 0)
                       for topic, field in ((self.topic, "done"),
                                            (self.other, "added"))]
        what = "steps %r (%s)" % (self.steps, self.names)
        expect(9, done + added, what)
        expect_true(added > 0, "the one that fails is moved, " + what)
        expect(added, len({run.job for run in self.read("other")}), what)
        for topic in (self.topic, self.other):
            self.expect_nothing_left(topic)
        for key in ("held", "past"):
            expect(0, self.server.call("EXISTS", "weir:{%s}:%s"
                                       % (self.topic, key)), key)
        return self.count_runs() - 9

    def count_runs(self):
        workers = ["victim%d" % i for i in range(len(self.names))] + ["last"]
        return sum(len(self.read(worker)) for worker in workers)


def walk_all(place, before, kind=Walk):
    """Every n for the last of the workers; those before it die at the steps
    `before`. Returns the names of the steps and how many runs were repeated."""
    server = Server(place).start()
    names, repeated, first = collections.Counter(), 0, 1
    while True:
        walks = [kind(place, server, before + [n])
                 for n in range(first, first + AT_ONCE)]
        for walk in walks:
            walk.add()
        for level in range(len(before) + 1):
            workers = [walk.start(walk.steps[level]) for walk in walks]
            for walk, worker in zip(walks, workers):
                walk.wait(worker)
        for walk in walks:
            walk.finish()
        for walk in walks:
            repeated += walk.judge()
            if walk.is_left:
                names[walk.names[-1]] += 1
        if not any(walk.is_left for walk in walks):
            return names, repeated
        first += AT_ONCE


def first_step(place, name):
    """The number of the first step that is called so."""
    server = Server(place, "look").start()
    step = 1
    while True:
        walk = Walk(place, server, [step])
        walk.add()
        walk.wait(walk.start(step))
        expect_true(walk.is_left, "there is a step " + name)
        if walk.names[-1] == name:
            return step
        step += 1


def report(what, names, repeated):
    print("%s: killed at %d steps (%s), lost 0, repeated runs %d"
          % (what, sum(names.values()),
             ", ".join("%s %d" % item for item in sorted(names.items())),
             repeated))
    expect({"answer", "ran", "run", "write", "written"}, set(names))
    expect_true(sum(names.values()) > 20, names)


@test
def a_worker_killed_at_any_step_loses_nothing(place):
    names, repeated = walk_all(place, [])
    report("first claim", names, repeated)


@test
def entries_that_go_to_another_topic_are_there_once_whatever_dies(place):
    names, repeated = walk_all(place, [], ListWalk)
    report("a list", names, repeated)


@test
def a_worker_killed_at_any_step_of_handling_suspects_loses_nothing(place):
    begun = first_step(place, "ran")
    names, repeated = walk_all(place, [begun])
    report("suspects", names, repeated)
