# SPDX-License-Identifier: MIT
"""The limits of a topic hold to the job over several workers, whoever is
killed."""

import os
import time

from ledger import Ledger
from e2e import PATIENCE, expect, expect_true, test
from server import Server

KILLS = int(os.environ.get("WEIR_CHAOS_KILLS", "20"))
RATE = int(os.environ.get("WEIR_CHAOS_RATE", "1000"))
# Of the rate, most of which a busy machine does not reach.
LEAST = float(os.environ.get("WEIR_CHAOS_RATE_LEAST", "0.1"))
LEASE_MS = 1000
BURST = 350  # a stall that costs tokens is noticed


def limit(ledger, *options):
    result, _ = ledger.weir((0,), "topic set", *options)
    expect(0, result.code)


def kill_some(ledger, gaps):
    for _ in range(KILLS):
        time.sleep(ledger.random.uniform(*gaps))
        ledger.kill(ledger.random.choice(ledger.alive))
        ledger.start_worker()


def starts_of(ledger):
    return sorted(run.start for run in ledger.runs())


def most_beyond(starts, rate):
    """By how many starts the worst stretch of time exceeds the rate."""
    least = most = 0
    for count, start in enumerate(starts):
        ahead = count - (start - starts[0]) * rate / 1000
        least = min(least, ahead)
        most = max(most, ahead + 1 - least)
    return most


@test
def a_rate_is_kept_by_four_workers_though_they_are_killed(place):
    ledger = Ledger(place, Server(place).start(), LEASE_MS,
                    options=["work=0ms"])
    limit(ledger, "rate=%d/s burst %d" % (RATE, BURST))
    for _ in range(RATE * max(KILLS // 2, 10) // 1000):
        ledger.add(["now"] * 1000)
    total = len(ledger.jobs)
    for _ in range(4):
        ledger.start_worker()
    kill_some(ledger, (0.1, 0.4))
    ledger.drain(patience=10 * total / RATE + 60)
    stalled = ledger.heart.stalled_ms(0) / 1000
    crashed = place.ok("stats", "t", "--redis",
                       ledger.url)["topics"][0]["crashed_total"]
    ledger.close("%d kills" % KILLS)
    starts = starts_of(ledger)
    starts = starts[:len(starts) * 9 // 10]  # the last ones wait for leases
    took, beyond = (starts[-1] - starts[0]) / 1000, most_beyond(starts, RATE)
    rate = (len(starts) - BURST) / took
    print("%d starts in %.2f s: %.1f/s, %d claimed by workers that were "
          "killed, stalled %.2f s; %.0f beyond the rate in the worst stretch"
          % (len(starts), took, rate, crashed, stalled, beyond))
    # What a killed worker held has used its tokens.
    expect_true(rate + crashed / took >= RATE * (LEAST - stalled / took),
                "%d starts in %.2f s" % (len(starts), took))
    # What was claimed starts within its lease, or not.
    expect_true(beyond <= BURST + RATE * (LEASE_MS / 1000 + stalled),
                "%.0f starts beyond the rate" % beyond)


def has_lease(ledger, run):
    """As far as is known: another worker may have what a stall has ended."""
    return not any(fault.what == "stall" and
                   fault.worker in (None, run.worker) and
                   run.start <= fault.end and
                   (run.end is None or fault.begin <= run.end)
                   for fault in ledger.faults)


def most_at_once(ledger):
    """Runs of killed workers last until they are killed."""
    ends = {fault.worker: fault.begin for fault in ledger.faults
            if fault.what == "kill"}
    events = []
    for run in ledger.runs():
        if not has_lease(ledger, run):
            continue
        events.append((run.start, 1))
        events.append((run.end or ends[run.worker], -1))
    at_once = most = 0
    for _, change in sorted(events, key=lambda event: (event[0], event[1])):
        at_once += change
        most = max(most, at_once)
    return most


@test
def never_more_jobs_run_than_may_though_workers_are_killed(place):
    ledger = Ledger(place, Server(place).start(), LEASE_MS,
                    options=["work=5ms", "retry_every=20",
                             "until=" + place.path("go")])
    limit(ledger, "parallel=3")
    for _ in range(6):
        ledger.start_worker()
    ledger.produce(60)
    ledger.has_runs(3)  # none of them ends before the others have begun
    place.write("go", "")
    ledger.has_runs(50)
    kill_some(ledger, (0.05, 0.3))
    ledger.limit = 0
    ledger.drain(PATIENCE + KILLS)  # who was killed kept its places
    ledger.close("%d kills" % KILLS)
    most = most_at_once(ledger)
    print("%d jobs at once at most" % most)
    expect_true(most <= 3, "%d jobs at once" % most)
