# SPDX-License-Identifier: MIT
"""Workers are killed, stopped and cut off; no job is lost."""

import os
import time

from ledger import Ledger, cpu_seconds, expect_alive
from e2e import eventually, expect, expect_true, test, time_test
from server import Server

KILLS = int(os.environ.get("WEIR_CHAOS_KILLS", "20"))
LEASE_MS = int(os.environ.get("WEIR_CHAOS_LEASE_MS", "1000"))
KILL_LEASE_MS = int(os.environ.get("WEIR_CHAOS_KILL_LEASE_MS", "2000"))
ROUNDS = int(os.environ.get("WEIR_CHAOS_ROUNDS", "1"))


@test
def workers_killed_at_random_moments_lose_no_job(place):
    ledger = Ledger(place, Server(place).start(), KILL_LEASE_MS,
                    options=["work=4ms", "retry_every=20"])
    for _ in range(3):
        ledger.start_worker()
    ledger.produce(60)
    ledger.has_runs(100)
    kills = []
    for _ in range(KILLS):
        time.sleep(ledger.random.uniform(0.05, 0.4))
        victim = ledger.random.choice(ledger.at_work())
        kills.append((victim.name, ledger.kill(victim)))
        ledger.start_worker()
    account = ledger.close("%d kills" % KILLS)
    delays = [delay for name, at in kills
              for delay in account.delays_after(name, at)]
    expect_true(delays, "kills interrupted runs")
    print("%d jobs begun at a kill ran again after %d ms at most, %d ms after "
          "the last kill that held them up, lease %d ms"
          % (len(delays), max(delays),
             max(account.delays_after_last(kills, ledger.lease_ms)),
             ledger.lease_ms))


def last_job_back_ms(place, lease_ms):
    """From the kill of a worker until the last of the jobs that it had claimed
    and not finished runs at another one; and how much of that the machine was
    busy with something else."""
    ledger = Ledger(place, Server(place).start(), lease_ms, options=[])
    ledger.add(["now"] * 400)
    victim = ledger.start_worker("--prefetch", "400", options=[
        "work=%dms" % (lease_ms / 50)])
    ledger.has_runs(10)
    ledger.start_worker()
    time.sleep(lease_ms / 1000)  # it renewed its lease by now
    at = ledger.kill(victim)
    before = ledger.waited_ms()
    ledger.drain()
    waited = ledger.waited_ms() - before
    account = ledger.close("one kill, lease %d ms" % lease_ms)
    rescued = [run.start - at for run in ledger.workers[1].runs()]
    expect(400, account.counts["done"])
    expect_true(len(rescued) > 50, "the victim left much behind")
    return max(rescued), ledger.heart.stalled_ms(at) + waited


@test
def jobs_of_a_killed_worker_are_back_a_second_after_their_lease(place):
    took, waited = last_job_back_ms(place, LEASE_MS)
    print("the last job was back %d ms after the kill, lease %d ms"
          % (took, LEASE_MS))
    expect_true(took <= LEASE_MS + 1000 + waited,
                "%d ms, of these %d without a CPU" % (took, waited))


@test
def a_worker_stopped_beyond_its_lease_repeats_only_what_it_held(place):
    ledger = Ledger(place, Server(place).start())
    victim = ledger.start_worker()
    ledger.start_worker()
    ledger.produce(60)
    ledger.has_runs(100)
    for _ in range(ROUNDS):
        ledger.freeze(victim, 1.5 * ledger.lease_ms / 1000)
        before = len(victim.runs())
        eventually(lambda: len(victim.runs()) > before, "it works again")
    ledger.close("%d stops beyond the lease" % ROUNDS)


@test
def connections_killed_by_the_server_come_back(place):
    server = Server(place).start()
    ledger = Ledger(place, server)
    for _ in range(2):
        ledger.start_worker()
    ledger.produce(60)
    ledger.has_runs(100)
    for _ in range(4 * ROUNDS):
        for kind in ("normal", "pubsub"):
            ledger.during("client kill", lambda: server.call(
                "CLIENT", "KILL", "TYPE", kind))
        expect_alive(ledger, "a kill of all connections")
    ledger.close("%d times all connections" % (4 * ROUNDS))


@time_test
def after_everything_idle_workers_are_quiet(place):
    server = Server(place).start()
    ledger = Ledger(place, server)
    for _ in range(2):
        ledger.start_worker()
    ledger.add(["now"] * 20)
    ledger.has_runs(20)
    server.call("CLIENT", "KILL", "TYPE", "normal")
    server.call("SCRIPT", "FLUSH")
    ledger.freeze(ledger.alive[0], 1.5 * ledger.lease_ms / 1000)
    ledger.add(["now"] * 20)
    ledger.drain()
    ledger.heart.stop()
    time.sleep(1.0)
    cpu = [cpu_seconds(worker.pid) for worker in ledger.alive]
    commands = server.command_count()
    time.sleep(2.0)
    used = sum(cpu_seconds(worker.pid) for worker in ledger.alive) - sum(cpu)
    commands = server.command_count() - commands
    print("two idle workers in 2 s: %d ms of CPU, %d commands"
          % (used * 1000, commands))
    expect_true(used <= 0.3, "%s s of CPU" % used)
    expect_true(commands <= 100, "%d commands" % commands)
    ledger.close("idle")
