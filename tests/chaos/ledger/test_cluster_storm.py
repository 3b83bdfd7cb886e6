# SPDX-License-Identifier: MIT
"""Every fault of a cluster in a random order, for as long as wanted; a worker
uses no more memory in the end than after a while."""

import os
import random
import signal
import time

from cluster import ELECTIONS, Cluster, ask
from e2e import eventually, expect, expect_true, test
from ledger import GROWTH_KIB, SEED, now_ms, resident_kib
from offsets import Offsets
from patience import Stopwatch
from traffic import LEASE_MS, Traffic

SECONDS = int(os.environ.get("WEIR_CHAOS_SECONDS", "600"))


class Storm:
    def __init__(self, place):
        self.cluster = Cluster(place, replicas=1,
                               args=("--appendonly", "yes",
                                     "--appendfsync", "no",
                                     "--" + ELECTIONS[0], ELECTIONS[1]))
        self.random = random.Random(SEED)
        self.traffic = Traffic(place, self.cluster, self.cluster.nodes[0],
                               workers=3)  # the first one is never killed
        self.counts, self.unheard_ms = {}, 0

    def some_topic(self):
        return self.random.choice(self.traffic.topics)

    def owner(self, topic):
        return eventually(lambda: self.cluster.owner(topic.slot), "an owner")

    def move_slot(self):
        topic = self.some_topic()
        self.cluster.move_slot(topic.slot, self.cluster.next_to(topic.slot))

    def move_all_slots(self):
        for topic in self.traffic.topics:
            self.cluster.move_slot(topic.slot, self.cluster.next_to(topic.slot))

    def leave_slot_open(self):
        topic = self.some_topic()
        to = self.cluster.next_to(topic.slot)
        self.cluster.open_slot(topic.slot, to)
        keys = ask(self.owner(topic), "CLUSTER", "GETKEYSINSLOT", topic.slot, 9)
        self.cluster.move_keys(topic.slot, to, keys[:len(keys) // 2 + 1])
        time.sleep(self.random.uniform(0.0, 3.0))
        self.cluster.move_keys(topic.slot, to)
        self.cluster.close_slot(topic.slot, to)

    def hand_over(self):
        primary = self.owner(self.some_topic())
        self.cluster.fail_over(self.cluster.replica_of(primary))

    def kill_primary(self):
        topic = self.some_topic()
        primary = self.owner(topic)
        replica = self.cluster.replica_of(primary)
        offsets = Offsets(primary, replica)
        primary.kill()
        killed = now_ms()
        self.cluster.await_promoted(primary, topic.slot)
        self.unheard_ms += killed - offsets.known_until(replica)
        primary.start()

    def stop_node(self):
        """A primary that was replaced meanwhile answers what it had been sent
        before it hears of that."""
        node, begin = self.random.choice(self.cluster.running()), now_ms()
        node.pause()
        time.sleep(self.random.choice((0.2, 1.0, 1.0, 4.0)))
        node.resume()
        self.unheard_ms += now_ms() - begin + 500

    def kill_replica(self):
        node = self.cluster.replica_of(self.owner(self.some_topic()))
        node.kill()
        time.sleep(self.random.uniform(0.0, 3.0))
        node.start()

    def kill_clients(self):
        for node in self.cluster.running():
            ask(node, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def flush_scripts(self):
        for node in self.cluster.running():
            ask(node, "SCRIPT", "FLUSH")

    def kill_worker(self):
        self.traffic.kill_worker(self.random.choice(self.traffic.workers[1:]))
        self.traffic.start_worker()

    def freeze_worker(self):
        worker = self.random.choice(self.traffic.workers)
        worker.send_signal(signal.SIGSTOP)
        time.sleep(1.5 * LEASE_MS / 1000)  # time is the subject
        worker.send_signal(signal.SIGCONT)

    def rage(self, seconds):
        faults = [self.move_slot, self.move_all_slots, self.leave_slot_open,
                  self.hand_over, self.kill_primary, self.stop_node,
                  self.kill_replica, self.kill_clients, self.flush_scripts,
                  self.kill_worker, self.freeze_worker]
        watch = Stopwatch()
        while watch.seconds() < seconds:
            fault, begin = self.random.choice(faults), now_ms()
            name = fault.__name__
            self.counts[name] = self.counts.get(name, 0) + 1
            fault()
            self.cluster.await_well()
            self.traffic.goes_on(name)
            self.traffic.note(name, begin - 1000, now_ms() + 2 * LEASE_MS)


@test
def every_fault_of_a_cluster_in_any_order_loses_nothing(place):
    storm = Storm(place)
    traffic = storm.traffic
    storm.rage(SECONDS / 4)
    before = resident_kib(traffic.workers[0].pid)
    storm.rage(SECONDS * 3 / 4)
    after = resident_kib(traffic.workers[0].pid)
    print("%d s of faults (seed %d): %s" % (SECONDS, SEED, ", ".join(
        "%s %d" % item for item in sorted(storm.counts.items()))))
    for account in traffic.end():
        if account.kind in ("delay", "bounded"):
            expect([], account.wrong[:5], account.name)
        # Of the other kinds adds are not said again: what nobody heard of.
        expect_true(len(account.lost) <= account.rate * storm.unheard_ms / 1000,
                    "%s: %d are lost" % (account.name, len(account.lost)))
    print("memory of a worker: %d KiB after a quarter, %d KiB in the end"
          % (before, after))
    expect_true(after - before <= GROWTH_KIB, "the worker does not grow")
