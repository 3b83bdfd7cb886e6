# SPDX-License-Identifier: MIT
"""Handlers that hold the loop beyond lease and timeout, and one that takes its
process down."""

import time

from ledger import TOPIC, Ledger, now_ms
from patience import Clock
from e2e import eventually, expect, expect_in, expect_true, test
from server import Server

LEASE_MS = 2000
BLOCK_MS = 4 * LEASE_MS


def runs_of(worker, name):
    return [run for run in worker.runs() if run.job == name]


def set_options(ledger, *options):
    result = ledger.place.weir("topic", "set", TOPIC, "--redis", ledger.url,
                               *options)
    expect(0, result.code, result.err)


@test
def a_handler_that_blocks_for_four_leases_runs_once_and_is_named(place):
    place.env["WEIR_BLOCK_WARN"] = "100ms"
    ledger = Ledger(place, Server(place).start(), LEASE_MS, options=[])
    blocking = ["block=%dms" % BLOCK_MS, "block_id=7"]
    ledger.add(["now"] * 15)
    for _ in range(2):
        ledger.start_worker(options=blocking)
    ledger.has_runs(15)
    account = ledger.close("a handler blocks for 4 leases")
    expect(15, account.counts["done"])
    (run,) = account.runs["7"]
    expect_true(run.end - run.start >= BLOCK_MS, "it did block")
    log = ledger.workers[int(run.worker[1:])].log_text()
    expect_in("held the loop for", log)
    expect_in(" 7", log)
    stats = place.ok("stats", TOPIC, "--redis", ledger.url)["topics"][0]
    if not ledger.faults:  # nobody else stood still
        expect([], account.repeated)
        expect(0, stats["crashed_total"], "nobody lost a lease")


@test
def a_handler_that_blocks_beyond_its_timeout_is_settled_meanwhile(place):
    ledger = Ledger(place, Server(place).start(), 3000, options=[])
    ledger.add(["now"])
    set_options(ledger, "timeout=600ms")
    victim = ledger.start_worker(options=["block=10s", "block_id=0"])
    ledger.has_runs(1)
    ledger.start_worker()
    ledger.note("timeout", victim)
    eventually(lambda: runs_of(ledger.workers[1], "0"), "it runs elsewhere")
    (first,), (second,) = (runs_of(worker, "0") for worker in ledger.workers)
    expect(None, first.end, "the first run still blocks")
    expect([1, 2], [first.attempt, second.attempt])
    took = second.start - first.start
    print("a run with timeout 600 ms, lease %d ms, was settled and began "
          "elsewhere after %d ms, while it blocked for 10000 ms"
          % (ledger.lease_ms, took))
    expect_true(took >= 600, "not before its timeout")
    eventually(lambda: runs_of(victim, "0")[0].end, "the first run ends")
    eventually(lambda: "timed out" in victim.log_text(), "it is told")
    account = ledger.close("a handler blocks beyond its timeout")
    expect(2, len(account.runs["0"]))


@test
def a_poison_job_is_dead_and_its_neighbours_are_not_blamed(place):
    ledger = Ledger(place, Server(place).start(), lease_ms=300, options=[])
    ledger.add(["now"] * 30)
    deaths = 0
    worker = ledger.start_worker(options=["work=1ms", "crash_id=11"])
    clock = Clock()
    while not ledger.is_empty():
        expect_true(not clock.is_over(), "it ends")
        time.sleep(0.02)
        if worker.process.poll() is not None:
            deaths += 1
            ledger.alive.remove(worker)
            ledger.note("crash", worker, now_ms())
            worker = ledger.start_worker(
                options=["work=1ms", "crash_id=11"])
    (poison,) = ledger.weir((0,), "dead list")[0].json
    account = ledger.close("a poison job")
    print("the poison job took %d workers down" % deaths)
    expect(["11", "crashed"], [poison["id"], poison["reason"]])
    expect([1, 29], [account.counts["dead"], account.counts["done"]])
    # The first crash blames nobody, then max_crashes of 3.
    expect(4, deaths)
    expect(4, len(account.runs["11"]))
