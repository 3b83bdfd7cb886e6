# SPDX-License-Identifier: MIT
"""The topic to which handlers add jobs takes none for a while, for
WEIR_CHAOS_AWAY_SECONDS: each job is there once afterwards."""

import json
import os
import time

from ledger import cpu_seconds
from account import read_runs
from e2e import (PATIENCE, eventually, expect, expect_true, main, terminate,
                 test, wait)
from server import Server

AWAY_S = float(os.environ.get("WEIR_CHAOS_AWAY_SECONDS", "2"))
JOBS = 300


class Pair:
    """Topic t, whose handler adds a job to topic u for each of its own."""

    def __init__(self, place):
        self.place, self.server = place, Server(place).start()
        self.source = place.start(
            "run", "--redis", self.server.url, "--handle",
            "t=ledger?file=%s&follow_to=u" % place.path("t.record"))
        self.sink = place.start(
            "run", "--redis", self.server.url, "--handle",
            "u=ledger?file=%s" % place.path("u.record"))

    def weir(self, *args, **more):
        result = self.place.weir(*args, "--redis", self.server.url, **more)
        expect(0, result.code, result.err)
        return result

    def add(self, first):
        lines = [json.dumps({"id": str(first + i)}) for i in range(JOBS)]
        self.weir("add", "t", "--jsonl", "-", stdin="\n".join(lines) + "\n")

    def relaying(self):
        stats = json.loads(self.weir("stats", "t", "--json").out)
        return stats["topics"][0]["relaying"]

    def ran(self):
        try:
            with open(self.place.path("u.record"), encoding="utf-8") as file:
                return [run.job for run in read_runs("u", file.read())]
        except FileNotFoundError:
            return []

    def judge(self, jobs, what):
        wanted = {"%d.there" % i for i in range(jobs)}
        eventually(lambda: wanted <= set(self.ran()), what + ": all are there",
                   PATIENCE)
        eventually(lambda: self.relaying() == 0, what + ": nothing is left")
        expect(str(jobs), self.server.call("HGET", "weir:{u}:meta", "added"))
        for key in self.server.call("KEYS", "weir:{t}:o:*"):
            expect_true(self.server.call("PTTL", key) != -1, key + " is left")
        for process in (self.source, self.sink):
            terminate(process)
            expect(0, wait(process), what)


@test
def jobs_for_a_topic_that_is_full_for_long_are_there_once(place):
    pair = Pair(place)
    pair.weir("topic", "set", "u", "max_pending=1")
    pair.weir("pause", "u")
    pair.add(0)
    pair.add(JOBS)
    eventually(lambda: pair.relaying() > 0, "some wait")
    before = cpu_seconds(pair.source.pid)
    time.sleep(AWAY_S)
    used = cpu_seconds(pair.source.pid) - before
    expect_true(used <= 0.1 + 0.1 * AWAY_S, "it used %.2f s of CPU" % used)
    expect_true(pair.relaying() > 0, "they wait")
    pair.weir("topic", "set", "u", "max_pending=100000")
    pair.weir("resume", "u")
    pair.judge(2 * JOBS, "full for %g s" % AWAY_S)


if __name__ == "__main__":
    main()
