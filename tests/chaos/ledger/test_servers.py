# SPDX-License-Identifier: MIT
"""The server is stopped, killed and filled up; workers go on by themselves."""

import os
import time

from ledger import TOPIC, Ledger, Outage, expect_alive
from e2e import eventually, expect, expect_true, test
from server import Server
from walker import expect_sound

RESTARTS = int(os.environ.get("WEIR_CHAOS_RESTARTS", "2"))
JOBS = int(os.environ.get("WEIR_CHAOS_JOBS", "2000"))
AWAY_S = 3.0  # longer than a lease
ROUNDS = int(os.environ.get("WEIR_CHAOS_ROUNDS", "1"))


def start(place, fsync="everysec", batch=60, limit=None, **options):
    server = Server(place, fsync=fsync).start()
    ledger = Ledger(place, server, **options)
    ledger.limit = limit
    for _ in range(2):
        ledger.start_worker()
    ledger.produce(batch)
    ledger.has_runs(100)
    return server, ledger


@test
def a_server_that_stands_still_for_seconds_loses_nothing(place):
    server, ledger = start(place)

    def stand_still():
        server.freeze()
        with Outage(ledger):
            time.sleep(AWAY_S)
        server.thaw()

    for _ in range(ROUNDS):
        ledger.during("server stop", stand_still)
        expect_alive(ledger, "the server stood still")
    ledger.close("server stopped for %d s, %d times" % (AWAY_S, ROUNDS))


@test
def a_server_killed_and_started_again_loses_nothing_acknowledged(place):
    each = JOBS // RESTARTS  # added while the server goes down and comes back
    server, ledger = start(place, fsync="always", batch=each // 5, limit=each)

    def restart():
        server.kill()
        with Outage(ledger):
            time.sleep(0.5)  # time is the subject: so long it is away
        server.start()
        expect_sound(server, [TOPIC], "the server is back")

    for i in range(RESTARTS):
        ledger.limit = each * (i + 1)
        time.sleep(ledger.random.uniform(0.0, 0.3))
        ledger.during("server kill", restart)
        expect_alive(ledger, "the server was restarted")
    eventually(lambda: len(ledger.jobs) >= JOBS, "all jobs are added")
    ledger.drain(60 + JOBS / 500)
    account = ledger.close("%d server restarts" % RESTARTS)
    expect(0, account.counts["never added"])


@test
def scripts_forgotten_by_the_server_are_loaded_again(place):
    server, ledger = start(place)
    for _ in range(10 * ROUNDS):
        server.call("SCRIPT", "FLUSH")
        time.sleep(0.1)
    expect_alive(ledger, "scripts were flushed")
    account = ledger.close("%d script flushes" % (10 * ROUNDS))
    if not ledger.faults:
        expect([], account.repeated, "a flush repeats nothing")


@test
def a_full_server_takes_no_jobs_and_loses_none(place):
    server, ledger = start(place)

    def fill():
        server.call("CONFIG", "SET", "maxmemory", "1")
        with Outage(ledger):
            time.sleep(AWAY_S)
        result = place.weir("add", "t", "--redis", server.url)
        expect_true(result.code in (1, 5), "an add fails: %r" % result.err)
        server.call("CONFIG", "SET", "maxmemory", "0")

    for _ in range(ROUNDS):
        ledger.during("server full", fill)
        expect_alive(ledger, "the server was full")
    ledger.close("server full for %d s, %d times" % (AWAY_S, ROUNDS))
