# SPDX-License-Identifier: MIT
"""A producer that goes on, whatever happens."""

import json
import subprocess
import threading

from account import Job
from e2e import WEIR, expect, wait


class Producer(threading.Thread):
    """`weir add` that is fed numbered jobs until it is told to end, `rate` in a
    second. `line` makes the JSON of a number. Where repeats are not recognised
    it ends with what got no answer, and another one goes on behind that."""

    def __init__(self, place, url, topic, rate, line, may_end=False):
        super().__init__(daemon=True)
        self.place, self.url, self.topic = place, url, topic
        self.rate, self.line, self.may_end = rate, line, may_end
        self.count, self.jobs = 0, {}
        self.is_over = threading.Event()
        self.log = place.path("producer.%s.log" % topic)
        self.told = place.path("producer.%s.json" % topic)
        self.launch()
        self.start()

    def launch(self):
        self.first = self.count
        with open(self.log, "ab") as log, open(self.told, "wb") as told:
            self.process = subprocess.Popen(
                [WEIR, "add", self.topic, "--jsonl", "-", "--json", "--redis",
                 self.url], env=self.place.env, stdin=subprocess.PIPE,
                stdout=told, stderr=log)
        self.place.started.append(self.process)

    def run(self):
        part = max(self.rate // 50, 1)
        while not self.is_over.is_set():
            lines = "".join(self.line(self.count + i) + "\n"
                            for i in range(part)).encode()
            self.count += part
            try:
                self.process.stdin.write(lines)
                self.process.stdin.flush()
            except (OSError, ValueError):
                if not self.may_end:
                    return
                self.reap()
                self.launch()
            self.is_over.wait(part / self.rate)

    def reap(self):
        """The first ones were taken, of the others nobody knows."""
        try:
            self.process.stdin.close()
        except (OSError, ValueError):
            pass
        self.process.stdin = None  # as nobody has to flush it
        wait(self.process)
        with open(self.told, encoding="utf-8") as file:
            taken = json.loads(file.read() or '{"added": 0}')["added"]
        if not self.may_end:
            expect(0, self.process.returncode, self.log_text())
            expect(self.count, taken)
        for i in range(self.first, self.count):
            job = self.jobs[str(i)] = Job(str(i))
            job.is_acknowledged = i < self.first + taken
            job.is_uncertain = not job.is_acknowledged

    def end(self):
        """Returns its jobs, by name."""
        self.is_over.set()
        self.join()
        self.reap()
        return self.jobs

    def log_text(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()
