# SPDX-License-Identifier: MIT
"""Workers of a bounded topic are killed and stopped: every event is handled or
dropped for a reason, and each group is handled in its order."""

import collections
import os
import random
import signal
import sys
import time

sys.path.append(os.path.join(os.path.dirname(__file__), "../../e2e"))

from e2e import PATIENCE, expect, expect_true, main, test  # noqa: E402

KILLS = int(os.environ.get("WEIR_CHAOS_KILLS", "20"))
SEED = int(os.environ.get("WEIR_CHAOS_SEED", "1"))
WORKERS, LEASE_MS = 3, 500


class Groups:
    """A topic with its workers, and what was added to which group."""

    def __init__(self, place):
        self.place, self.random = place, random.Random(SEED)
        self.handle = "t=batches?work=4ms&file=" + place.path("out")
        self.added = collections.defaultdict(list)
        self.count = 0
        self.workers = []
        place.ok("topic", "set", "t", "kind=bounded", "length=200", "batch=16",
                 "lease=%dms" % LEASE_MS, "max_crashes=100", "linger=20ms")

    def staff(self):
        while len(self.workers) < WORKERS:
            self.workers.append(self.place.start("run", "--handle",
                                                 self.handle))

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
            worker.send_signal(signal.SIGSTOP)
            time.sleep(1.5 * LEASE_MS / 1000)
            worker.send_signal(signal.SIGCONT)
            return
        self.workers.remove(worker)
        if what == "kill":
            worker.kill()
            worker.wait(PATIENCE)
        else:
            self.end(worker)

    def end(self, worker):
        worker.send_signal(signal.SIGTERM)
        expect(0, worker.wait(PATIENCE), "a worker that was told to stop")

    def close(self):
        """Stop everybody, handle what is left; (group, numbers) of each
        batch."""
        for worker in self.workers:
            self.end(worker)
        last = self.place.weir("run", "--until-empty", "--handle", self.handle)
        expect(0, last.code, last.err)
        with open(self.place.path("out")) as file:
            lines = [line.split() for line in file]
        return [(line[0], [int(word) for word in line[2:]]) for line in lines]


def first_runs(batches):
    """Each group's events in the order in which they first ran, and how many
    runs were not the first of their event."""
    first, seen, repeated = collections.defaultdict(list), set(), 0
    for group, numbers in batches:
        for number in numbers:
            if number in seen:
                repeated += 1
                continue
            seen.add(number)
            first[group].append(number)
    return first, seen, repeated


@test
def killed_workers_lose_no_event_and_change_no_order(place):
    groups = Groups(place)
    for _ in range(KILLS):
        groups.staff()
        groups.add(groups.random.randrange(200, 1500))
        time.sleep(groups.random.random() * 0.15)
        groups.strike()
    first, seen, repeated = first_runs(groups.close())
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
    expect_true(len(seen) >= stats["done_total"], "what is done has run")
    expect_true(groups.count - len(seen) <= dropped,
                "%d never ran, %d were dropped"
                % (groups.count - len(seen), dropped))
    expect_true(repeated <= stats["crashed_total"],
                "%d runs again, but only %d events came back after a lease"
                % (repeated, stats["crashed_total"]))
    expect_true(stats["crashed_total"] > 0, "leases ended")
    print("%d events, %d faults: %d ran, %d of them again, %d were dropped"
          % (groups.count, KILLS, len(seen), repeated, dropped))


if __name__ == "__main__":
    main()
