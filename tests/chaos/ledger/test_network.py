# SPDX-License-Identifier: MIT
"""The network cuts, delays, splits and swallows; a replica takes over."""

import os
import time

from ledger import SEED, Ledger, Outage, expect_alive
from e2e import eventually, expect, test
from proxy import Proxy
from server import Server

ROUNDS = int(os.environ.get("WEIR_CHAOS_ROUNDS", "1"))
# A connection without answers is given up after 10 s.
BLACK_S = int(os.environ.get("WEIR_CHAOS_BLACK_SECONDS", "3"))


def start(place, workers=2, **options):
    """Workers and producers behind one proxy."""
    server = Server(place).start()
    proxy = Proxy(server.socket, SEED)
    ledger = Ledger(place, server, url=proxy.url, **options)
    for _ in range(workers):
        ledger.start_worker()
    ledger.produce(60)
    ledger.has_runs(100)
    return proxy, ledger


@test
def connections_cut_at_any_byte_lose_nothing(place):
    proxy, ledger = start(place)

    def cut():
        before = proxy.cuts
        proxy.cut_after(ledger.random.randrange(1, 4000))
        eventually(lambda: proxy.cuts > before, "it is cut")

    for _ in range(6 * ROUNDS):
        ledger.during("cut", cut)
        time.sleep(0.1)
    expect_alive(ledger, "cuts")
    ledger.close("%d cuts" % proxy.cuts)
    proxy.close()


@test
def a_slow_line_in_small_pieces_loses_nothing(place):
    proxy, ledger = start(place)
    proxy.delay, proxy.piece = 0.02, 7
    for _ in range(3 * ROUNDS):
        expect_alive(ledger, "delays")
    ledger.stop_producing()
    proxy.delay, proxy.piece = 0.0, 0
    ledger.close("20 ms late, 7 bytes at a time")
    proxy.close()


@test
def a_line_that_swallows_everything_for_a_while_loses_nothing(place):
    proxy, ledger = start(place)

    def swallow():
        proxy.is_black.set()
        with Outage(ledger):
            time.sleep(BLACK_S)
        proxy.is_black.clear()

    for _ in range(ROUNDS):
        ledger.during("black hole", swallow)
        expect_alive(ledger, "a black hole")
    ledger.close("black hole for %d s, %d times" % (BLACK_S, ROUNDS))
    proxy.close()


@test
def a_replica_that_takes_over_has_every_job_it_had_heard_of(place):
    primary, replica = Server(place).start(), Server(place, "replica").start()
    line = Proxy(primary.socket)  # replication is TCP only
    replica.call("REPLICAOF", "127.0.0.1", line.port)
    eventually(lambda: replica.info("replication")["master_link_status"]
               == "up", "it replicates")
    proxy = Proxy(primary.socket)
    ledger = Ledger(place, primary, url=proxy.url, options=["work=3ms"])
    for _ in range(6):
        ledger.add_batch(200)
    # WAIT is about what its own connection wrote, which is nothing here.
    end = int(primary.info("replication")["master_repl_offset"])
    eventually(lambda: int(replica.info("replication")["slave_repl_offset"])
               >= end, "it heard of all")
    for _ in range(2):
        ledger.start_worker()
    ledger.has_runs(100)

    def take_over():
        primary.kill()
        with Outage(ledger):
            time.sleep(0.5)  # time is the subject: so long it is away
        replica.call("REPLICAOF", "NO", "ONE")
        proxy.target = replica.socket
        proxy.cut_all()

    ledger.server = replica
    ledger.during("primary killed", take_over)
    ledger.produce(20)  # or one worker might leave nothing to the other
    expect_alive(ledger, "the replica took over")
    account = ledger.close("a replica took over")
    expect(0, account.counts["never added"])
    proxy.close()
    line.close()
