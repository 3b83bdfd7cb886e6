# SPDX-License-Identifier: MIT
"""Workers in JavaScript and of weir serve one topic and are killed; no job is
lost."""

import os
import subprocess
import time

import library
import ledger
from account import Run
from e2e import eventually, expect_true, test
from server import Server

KILLS = int(os.environ.get("WEIR_CHAOS_KILLS", "10"))


class Worker(ledger.Worker):
    """As the ledger's own, but in JavaScript; runs overlap."""

    def __init__(self, book, name):
        self.name = name
        self.record = book.place.path(name + ".record")
        self.log = book.place.path(name + ".log")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["node", os.path.join(library.FOLDER, "tests", "worker.js"),
                 book.server.socket, self.record, "4", "4", "20"],
                env=library.ENV, stdin=subprocess.DEVNULL, stderr=log)
        book.place.started.append(self.process)

    def end(self):
        """Node hears SIGTERM before its program does, and ends by it."""
        eventually(lambda: os.path.exists(self.record), "it serves")
        super().end()

    def runs(self):
        runs = {}
        try:
            with open(self.record, encoding="ascii") as file:
                lines = [line.split() for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []
        for what, job, token, detail, at in lines:
            if what == "S":
                runs[job, token] = Run(self.name, job, int(token), int(detail),
                                       int(at))
            else:
                runs[job, token].end = int(at)
                runs[job, token].verdict = detail
        return list(runs.values())


def start(book, is_weir):
    if is_weir:
        return book.start_worker()
    worker = Worker(book, "w%d" % len(book.workers))
    book.workers.append(worker)
    book.alive.append(worker)
    return worker


@test
def killed_workers_of_both_languages_lose_no_job(place):
    server = Server(place).start()
    place.ok("topic", "set", "t", "lease=2s", "retry=20ms ...",
             "max_dead=1000000", "--redis", server.url)
    book = ledger.Ledger(place, server, options=["work=4ms", "retry_every=20"])
    for is_weir in (False, True, False):
        start(book, is_weir)
    book.produce(60)
    eventually(lambda: all(worker.runs() for worker in book.workers),
               "each of them runs jobs")
    for _ in range(KILLS):
        time.sleep(book.random.uniform(0.05, 0.4))
        victim = book.random.choice(book.at_work())
        book.kill(victim)
        start(book, not isinstance(victim, Worker))
    account = book.close("%d kills" % KILLS)
    expect_true(account.counts["done"] > 100, "jobs were done")
