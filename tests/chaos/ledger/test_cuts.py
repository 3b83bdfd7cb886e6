# SPDX-License-Identifier: MIT
"""The server is killed at its n-th command, for n = 1, 2, 3 ... until there is
none left: once instead of the command, once behind it and ahead of its answer.
It comes back with its append-only file. Whatever n is, all that is there fits
together (walker.py), all jobs end, those that they add are there exactly once,
and no id stays behind."""

import collections
import os
import threading

from ledger import TOPIC, Ledger
from gate import Gate
from account import Account, Job
from e2e import eventually, expect, expect_true, test
from server import Server
from walker import expect_sound

STRIDE = int(os.environ.get("WEIR_CHAOS_STRIDE", "1"))
LEASE_MS = 300
GRAVE, OTHER = "grave", "other"  # nobody serves these
PLANS = ["now"] * 9 + ["soon", "fail", "fail", "delete", "reschedule"]


class Cuts:
    """A server that dies, a producer and two workers that go on."""

    def __init__(self, place):
        self.server = Server(place, fsync="always").start()
        self.gate = Gate(place.path("gate.sock"), self.server)
        expect(0, place.weir("topic", "set", TOPIC, "on_dead=" + GRAVE,
                             "--redis", self.server.url).code)
        self.ledger = Ledger(place, self.server, lease_ms=LEASE_MS,
                             url=self.gate.url, options=[
                                 "work=1ms", "retry_every=5",
                                 "follow_to=" + OTHER])
        for _ in range(2):
            self.ledger.start_worker()
        self.names = collections.Counter()

    def expect_sound(self, what):
        expect_sound(self.server, (TOPIC, OTHER, GRAVE), what)

    def ids(self, topic):
        return self.server.call("HKEYS", "weir:{%s}:ids" % topic)

    def revive(self, what):
        self.gate.is_down.wait()
        if self.gate.killed is None:
            return
        try:
            self.server.start()
            self.expect_sound(what + ", when it is back")
        except BaseException as trouble:
            self.ledger.trouble = trouble

    def act(self):
        ledger = self.ledger
        for plan, job in zip(PLANS, ledger.add(PLANS)):
            if plan == "delete":
                ledger.delete(job)
            elif plan == "reschedule":
                ledger.reschedule(job)
        eventually(lambda: ledger.trouble or ledger.is_empty(),
                   "all jobs end")

    def round(self, number, is_behind):
        """False: there were fewer commands."""
        what = "killed %s command %d" % ("behind" if is_behind else "ahead of",
                                         number)
        reviver = threading.Thread(target=self.revive, args=(what,))
        self.gate.arm(number, is_behind)
        reviver.start()
        self.ledger.during("server kill", self.act)
        self.gate.disarm()
        words = self.gate.killed
        self.gate.is_down.set()  # else the other thread would wait
        reviver.join()
        if self.ledger.trouble is not None:
            raise self.ledger.trouble
        self.expect_sound(what)
        if words is not None:
            self.names[words[0].decode()] += 1
        return words is not None

    def close(self):
        """The account, with the jobs that jobs have added."""
        ledger = self.ledger
        for worker in ledger.alive:
            worker.end()
        ledger.heart.stop()
        self.gate.close()
        ledger.check_server()
        buried, there = self.ids(GRAVE), set(self.ids(OTHER))
        for name in list(ledger.jobs):
            ledger.jobs[name + ".here"] = Job(name + ".here")
        account = Account(ledger.jobs, ledger.runs(),
                          dict.fromkeys(buried, "failed"),
                          ledger.faults)
        expect([], account.wrong[:5], "%d findings" % len(account.wrong))
        ended = {name for name, job in ledger.jobs.items()
                 if not name.endswith(".here") and
                 job.deleted_at is None and not job.may_be_gone}
        expect(set(), {name for name in ended
                       if name + ".here" not in account.runs},
               "jobs that were to be added here")
        expect(set(), {name for name in ended
                       if name + ".there" not in there},
               "jobs that were to be added there")
        print("killed %d times (%s): %s" % (
            sum(self.names.values()), ", ".join(
                "%s %d" % item for item in sorted(self.names.items())),
            account.summary()))


def sweep(place, is_behind):
    cuts, number = Cuts(place), 1
    while cuts.round(number, is_behind):
        number += STRIDE
    expect_true(number > 20, "there are commands to die at")
    cuts.close()


@test
def a_server_killed_instead_of_any_command_loses_nothing(place):
    sweep(place, False)


@test
def a_server_killed_ahead_of_any_answer_loses_nothing(place):
    sweep(place, True)
