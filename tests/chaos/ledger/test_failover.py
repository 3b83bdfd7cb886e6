# SPDX-License-Identifier: MIT
"""A server is gone, and what comes in its place never heard of the last things
that it had acknowledged: a replica that was cut off, or the server itself with
a file that lacks its last second. Processes that live on say them again."""

import os
import time

from e2e import eventually, expect, expect_true, test
from ledger import TOPIC, Ledger, now_ms
from producer import Producer
from ports import free_port
from server import Server

RATE = int(os.environ.get("WEIR_CHAOS_RATE", "2000"))  # jobs in a second
KILLS = int(os.environ.get("WEIR_CHAOS_KILLS", "3"))
LEASE_MS = 5000
LATE_MS = 500  # from a start until its verdict arrives, on a busy machine


def line(number):
    """Half of them run at once; the others are still to run where they are
    forgotten."""
    return '{"id": "%d", "delay": "%dms"}' % (number, number % 2 * 800)


def offset(server):
    return int(server.info("replication")["master_repl_offset"])


def cut_off(primary, replica):
    """Returns until when the replica heard everything: behind what the primary
    had said so far it may be late."""
    said = []
    for _ in range(50):
        said.append((now_ms(), offset(primary)))
        time.sleep(0.02)
    eventually(lambda: offset(replica) >= said[0][1], "it hears of that")
    replica.call("REPLICAOF", "NO", "ONE")
    heard = offset(replica)
    return max(at for at, end in said if end <= heard)


def added(server):
    return int(server.call("HGET", "weir:{%s}:meta" % TOPIC, "added"))


def start(place, server, rate):
    ledger = Ledger(place, server, lease_ms=LEASE_MS, options=("work=0ms",))
    for _ in range(2):
        ledger.start_worker("--log-level", "info")
    producer = Producer(place, ledger.url, TOPIC, rate, line)
    work_for_a_second(ledger, producer)
    return ledger, producer


def work_for_a_second(ledger, producer):
    """About as many jobs run as come in a second."""
    def written():
        return sum(worker.record_size() for worker in ledger.workers)

    enough = written() + producer.rate * 2 * len("S 12345 12345 1 1795398247455")
    eventually(lambda: written() > enough, "jobs run")


def shorten(server):
    """The file, so that it is read at once at the next start."""
    server.call("BGREWRITEAOF")
    eventually(lambda: server.info("persistence")["aof_rewrite_in_progress"]
               == server.info("persistence")["aof_rewrite_scheduled"] == "0",
               "the file is written anew")


def written_by(server):
    """A moment, and the length of the file that has all that was answered
    before it: while the disk is busy a server writes up to two seconds later.
    """
    while True:
        since = now_ms()
        if server.info("persistence")["aof_buffer_length"] == "0":
            return since, os.path.getsize(server.aof())
        time.sleep(0.001)


def judge(ledger, producer, gaps, what):
    """`gaps`: from when to when that was said which was forgotten, how many
    adds of it had been acknowledged, and when the server was gone. What had
    been claimed there may start later than what was claimed behind it."""
    ledger.jobs.update(producer.end())
    print("%s jobs had been acknowledged and were forgotten"
          % ", ".join(str(gap[2]) for gap in gaps))
    account = ledger.close(what)
    expect_true(sum(gap[2] for gap in gaps) > 0, "something was forgotten")
    expect(0, account.counts["never added"])
    given = {}  # the largest token, until a server was gone
    for *_, gone in gaps:
        given[gone] = max(run.token for runs in account.runs.values()
                          for run in runs if run.start <= gone)
    for before, after in account.repeated:
        gone = next((gap[3] for gap in gaps
                     if gap[0] - LATE_MS <= before.start <= gap[1]), None)
        expect_true(gone, "%s ran twice, at %d and %d, and its claim was known"
                    % (before.job, before.start, after.start))
        expect_true(max(before.token, after.token) > given[gone],
                    "%s: tokens %d and %d, and %d had been given"
                    % (before.job, before.token, after.token, given[gone]))


@test
def a_replica_cut_off_before_its_primary_died_loses_nothing_acknowledged(place):
    port = free_port()
    primary = Server(place, "primary", port=port).start()
    replica = Server(place, "replica").start()
    replica.call("REPLICAOF", "127.0.0.1", port)
    eventually(lambda: replica.info("replication")["master_link_status"]
               == "up", "it replicates")
    ledger, producer = start(place, primary, RATE)
    cut = cut_off(primary, replica)
    known = added(replica)
    eventually(lambda: added(primary) > known, "an add is acknowledged")
    forgotten = added(primary) - known
    primary.kill()
    gone = now_ms()
    os.rename(replica.socket, primary.socket)
    replica.socket, replica.url = primary.socket, primary.url
    ledger.server = replica
    gap = (cut, now_ms() + LEASE_MS, forgotten, gone)
    ledger.note("failover", None, *gap[:2])
    work_for_a_second(ledger, producer)
    judge(ledger, producer, [gap], "a replica cut off")


@test
def a_file_that_lacks_the_last_second_loses_nothing_acknowledged(place):
    server = Server(place, fsync="everysec")
    server.options += ["--auto-aof-rewrite-percentage", 0]
    server.start()
    ledger, producer = start(place, server, min(RATE, 5000))
    gaps = []
    for _ in range(KILLS):
        shorten(server)
        since, synced = written_by(server)
        known = added(server)
        eventually(lambda: added(server) > known + 500, "adds go on")
        forgotten = added(server) - known
        server.kill()
        gone = now_ms()
        # What a killed server wrote is in the kernel; only a machine that dies
        # loses it. As if this one had, and no more had been synced.
        os.truncate(server.aof(), synced)
        server.start()
        gaps.append((since, now_ms() + LEASE_MS, forgotten, gone))
        ledger.note("machine", None, *gaps[-1][:2])
        work_for_a_second(ledger, producer)
    judge(ledger, producer, gaps, "%d ends of a machine" % KILLS)

