# SPDX-License-Identifier: MIT
"""Every fault there is, in a random order, for as long as wanted; workers and
server use no more memory in the end than after a while."""

import os
import time

from ledger import GROWTH_KIB, SEED, Ledger, expect_alive, resident_kib
from e2e import expect, expect_true, test
from patience import Stopwatch
from proxy import Proxy
from server import Server

SECONDS = int(os.environ.get("WEIR_CHAOS_SECONDS", "60"))


class Storm:
    def __init__(self, place):
        self.server = Server(place, fsync="always").start()
        self.proxy = Proxy(self.server.socket, SEED)
        self.ledger = Ledger(place, self.server, url=self.proxy.url,
                             options=["work=1ms", "retry_every=50"])
        self.random = self.ledger.random
        self.counts = {}
        for _ in range(3):  # the first one is never killed
            self.ledger.start_worker()

    def used_kib(self):
        return int(self.server.info("memory")["used_memory"]) // 1024

    def kill_worker(self):
        self.ledger.kill(self.random.choice(self.ledger.alive[1:]))
        self.ledger.start_worker()

    def freeze_worker(self):
        self.ledger.freeze(self.random.choice(self.ledger.alive),
                           1.5 * self.ledger.lease_ms / 1000)

    def kill_clients(self):
        self.ledger.during("clients", lambda: self.server.call(
            "CLIENT", "KILL", "TYPE", "normal"))

    def freeze_server(self):
        def freeze():
            self.server.freeze()
            time.sleep(self.random.uniform(0.1, 3.0))
            self.server.thaw()
        self.ledger.during("server stop", freeze)

    def kill_server(self):
        def restart():
            self.server.kill()
            time.sleep(self.random.uniform(0.0, 1.0))
            self.server.start()
        self.ledger.during("server kill", restart)

    def flush_scripts(self):
        self.server.call("SCRIPT", "FLUSH")

    def fill_server(self):
        def fill():
            self.server.call("CONFIG", "SET", "maxmemory", "1")
            time.sleep(self.random.uniform(0.1, 2.0))
            self.server.call("CONFIG", "SET", "maxmemory", "0")
        self.ledger.during("full", fill)

    def cut_line(self):
        self.ledger.note("cut", None, end=time.time_ns() // 1000000 + 5000)
        self.proxy.cut_after(self.random.randrange(1, 20000))

    def slow_line(self):
        def slow():
            self.proxy.delay, self.proxy.piece = 0.005, 100
            time.sleep(self.random.uniform(0.1, 2.0))
            self.proxy.delay, self.proxy.piece = 0.0, 0
        self.ledger.during("slow", slow)

    def swallow(self):
        def black():
            self.proxy.is_black.set()
            time.sleep(self.random.uniform(0.1, 3.0))
            self.proxy.is_black.clear()
        self.ledger.during("black hole", black)

    def rage(self, seconds):
        faults = [self.kill_worker, self.freeze_worker, self.kill_clients,
                  self.freeze_server, self.kill_server, self.flush_scripts,
                  self.fill_server, self.cut_line, self.slow_line,
                  self.swallow]
        watch = Stopwatch()
        while watch.seconds() < seconds:
            fault = self.random.choice(faults)
            self.counts[fault.__name__] = self.counts.get(fault.__name__, 0) + 1
            fault()
            expect_alive(self.ledger, fault.__name__, 30.0)


@test
def every_fault_in_any_order_loses_nothing(place):
    storm = Storm(place)
    ledger = storm.ledger
    empty = storm.used_kib()
    ledger.produce(30)
    ledger.has_runs(100)
    storm.rage(SECONDS / 4)
    before = resident_kib(ledger.workers[0].pid)
    storm.rage(SECONDS * 3 / 4)
    ledger.drain()
    after = resident_kib(ledger.workers[0].pid)
    print("faults: " + ", ".join("%s %d" % item
                                 for item in sorted(storm.counts.items())))
    account = ledger.close("%d s of faults" % SECONDS)
    expect(0, account.counts["never added"])
    expect(0, ledger.place.weir("dead", "purge", "t", "--all", "--redis",
                                ledger.url).code)
    left = storm.used_kib()
    print("memory: worker %d KiB after a quarter, %d KiB in the end; server "
          "%d KiB in the beginning, %d KiB with nothing left"
          % (before, after, empty, left))
    expect_true(after - before <= GROWTH_KIB, "the worker does not grow")
    expect_true(left - empty <= GROWTH_KIB, "the server keeps nothing")
    storm.proxy.close()
