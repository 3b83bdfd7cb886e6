# SPDX-License-Identifier: MIT
"""Workers of a bounded topic are killed and stopped: every event is handled or
dropped for a reason, and each group is handled in its order."""

import collections
import os
import random
import signal
import time

from e2e import expect, expect_true, terminate, test, wait

KILLS = int(os.environ.get("WEIR_CHAOS_KILLS", "20"))
SEED = int(os.environ.get("WEIR_CHAOS_SEED", "1"))
WORKERS, LEASE_MS = 3, 500


# One batch, as batches.c wrote it down `ms` after it was called.
Run = collections.namedtuple("Run", "group token ms numbers")


class Groups:
    """A topic with its workers, and what was added to which group. Each worker
    has the next of `served`: which groups it serves."""

    def __init__(self, place, *served):
        self.place, self.random = place, random.Random(SEED)
        self.served = served
        self.handle = "t=batches?work=4ms&file=" + place.path("out")
        self.added = collections.defaultdict(list)
        self.count = 0
        self.freezes = 0
        self.workers = []
        place.ok("topic", "set", "t", "kind=bounded", "length=200", "batch=16",
                 "lease=%dms" % LEASE_MS, "max_crashes=100", "linger=20ms")

    def staff(self):
        while len(self.workers) < WORKERS:
            self.served = self.served[1:] + self.served[:1]
            flags = ("--groups", self.served[0]) if self.served else ()
            self.workers.append(self.place.start(
                "run", "--handle", self.handle, *flags))

    def add(self, count):
        lines = []
        for _ in range(count):
            group = "g%d" % min(int(self.random.expovariate(0.1)), 40)
            lines.append('{"group":"%s","body":%d}\n' % (group, self.count))
            self.added[group].append(self.count)
            self.count += 1
        self.place.ok("add", "t", "--jsonl", "-", stdin="".join(lines))

    def strike(self):
        """Mostly kill -9; some are told to stop, some stand still for longer
        than their lease."""
        worker = self.random.choice(self.workers)
        what = self.random.choice(["kill"] * 6 + ["stop", "freeze"])
        if what == "freeze":
            self.freezes += 1
            worker.send_signal(signal.SIGSTOP)
            time.sleep(1.5 * LEASE_MS / 1000)  # time is the subject
            worker.send_signal(signal.SIGCONT)
            return
        self.workers.remove(worker)
        if what == "kill":
            worker.kill()
            wait(worker)
        else:
            self.end(worker)

    def end(self, worker):
        terminate(worker)
        expect(0, wait(worker), "a worker that was told to stop")

    def close(self):
        """Stop everybody, handle what is left; the runs of all batches."""
        for worker in self.workers:
            self.end(worker)
        last = self.place.weir("run", "--until-empty", "--handle", self.handle)
        expect(0, last.code, last.err)
        with open(self.place.path("out")) as file:
            lines = [line.split() for line in file]
        return [Run(line[0], int(line[2]), int(line[3]),
                    [int(word) for word in line[4:]]) for line in lines]


def split_late(runs):
    """Runs under tokens that grow in each group, and the others: a worker that
    stood still in the middle of a run ends it after what began since."""
    newest, in_time, late = collections.defaultdict(int), [], []
    for run in runs:
        (late if run.token < newest[run.group] else in_time).append(run)
        newest[run.group] = max(newest[run.group], run.token)
    return in_time, late


def first_runs(runs):
    """Each group's events in the order in which they first ran."""
    first, seen = collections.defaultdict(list), set()
    for run in runs:
        first[run.group].extend(n for n in run.numbers if n not in seen)
        seen.update(run.numbers)
    return first, seen


def check_late(late, freezes):
    """Leases are renewed each third: who loses one within a run stood still for
    two thirds of it, whether the test or the machine had it so, and the run
    took as long. One that took less began when its lease was over: it was just
    being called when its worker was stopped."""
    short = [run for run in late if run.ms < LEASE_MS / 2]
    expect_true(len(short) <= freezes,
                "%d workers were stopped, but late runs without a pause: %r"
                % (freezes, short))


def strike_and_check(place, groups):
    for _ in range(KILLS):
        groups.staff()
        groups.add(groups.random.randrange(200, 1500))
        time.sleep(groups.random.random() * 0.15)
        groups.strike()
    in_time, late = split_late(groups.close())
    first, seen = first_runs(in_time)
    stats = place.stats("t")
    dropped = stats["dropped_total"]
    expect([0, 0, 0], [stats["ready"], stats["running"],
                       stats["failed_total"]], "left or given up")
    expect([groups.count] * 2, [stats["added_total"],
                                stats["done_total"] + dropped])
    for group, numbers in groups.added.items():
        expect([], [pair for pair in zip(
            (number for number in numbers if number in seen), first[group])
            if pair[0] != pair[1]][:3], "added, first run of " + group)
    check_late(late, groups.freezes)
    runs = sum(len(run.numbers) for run in in_time + late)
    seen.update(number for run in late for number in run.numbers)
    repeated = runs - len(seen)
    expect_true(len(seen) >= stats["done_total"], "what is done has run")
    expect_true(groups.count - len(seen) <= dropped,
                "%d never ran, %d were dropped"
                % (groups.count - len(seen), dropped))
    expect_true(repeated <= stats["crashed_total"],
                "%d runs again, but only %d events came back after a lease"
                % (repeated, stats["crashed_total"]))
    expect_true(stats["crashed_total"] > 0, "leases ended")
    print("%d events, %d faults: %d ran, %d of them again, %d batches late, "
          "%d were dropped" % (groups.count, KILLS, len(seen), repeated,
                               len(late), dropped))


@test
def killed_workers_lose_no_event_and_change_no_order(place):
    strike_and_check(place, Groups(place))


@test
def nor_do_those_who_serve_only_some_groups(place):
    strike_and_check(place, Groups(place, "g1*", "!g1* !g3", "g3 g2* g1",
                                   "!g1*", "g*"))
