# SPDX-License-Identifier: MIT
"""Workers in Python and of weir serve one topic and are killed; no job is
lost."""

import os
import subprocess
import sys
import time

import library
import ledger
from e2e import eventually, expect_true, test
from server import Server

KILLS = int(os.environ.get("WEIR_CHAOS_KILLS", "10"))


class Worker(ledger.Worker):
    """As the ledger's own, but in Python."""

    def __init__(self, ledger, name, kind, path):
        self.name = name
        self.record = ledger.place.path(name + ".record")
        self.log = ledger.place.path(name + ".log")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-B", os.path.join(library.HERE, "worker.py"),
                 kind, path, self.record, "4", "0.004", "20"],
                env={**ledger.place.env, "PYTHONPATH": library.FOLDER},
                stdin=subprocess.DEVNULL, stderr=log)
        ledger.place.started.append(self.process)

    def runs(self):
        return library.read_runs(self.name, self.record)


def start(book, kind):
    if kind == "weir":
        return book.start_worker()
    worker = Worker(book, "w%d" % len(book.workers), kind, book.server.socket)
    worker.kind = kind
    book.workers.append(worker)
    book.alive.append(worker)
    return worker


@test
def killed_workers_of_both_languages_lose_no_job(place):
    server = Server(place).start()
    place.ok("topic", "set", "t", "lease=2s", "retry=20ms ...",
             "max_dead=1000000", "--redis", server.url)
    book = ledger.Ledger(place, server,
                         options=["work=4ms", "retry_every=20"])
    for kind in library.KINDS + ("weir",):
        start(book, kind)
    book.produce(60)
    eventually(lambda: all(worker.runs() for worker in book.workers),
               "each kind runs jobs")
    for _ in range(KILLS):
        time.sleep(book.random.uniform(0.05, 0.4))
        victim = book.random.choice(book.at_work())
        book.kill(victim)
        start(book, getattr(victim, "kind", "weir"))
    account = book.close("%d kills" % KILLS)
    expect_true(account.counts["done"] > 100, "jobs were done")
