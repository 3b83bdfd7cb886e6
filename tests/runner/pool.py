# SPDX-License-Identifier: MIT
"""Runs tasks side by side: as many as their weights allow, longest first."""

import os
import select
from dataclasses import dataclass, field

import supervise


@dataclass
class Task:
    build: str
    name: str
    command: list
    cwd: str
    log: str  # where the program's output goes
    env: dict = field(default_factory=dict)  # beside the runner's own
    labels: frozenset = frozenset()
    lock: str = ""  # tasks with the same lock do not run side by side
    limit_s: float = 300.0  # of patience
    nice: int = 0
    cpu_s: float = 0.5  # expected
    wall_s: float = 1.0
    wanted_text: str = ""  # a pattern in the output that means success

    @property
    def weight(self):
        """How many CPUs it keeps busy."""
        return max(self.cpu_s / max(self.wall_s, 0.01), 0.05)

    @property
    def title(self):
        return "%s %s" % (self.build, self.name)


class Pool:
    """`ended(task, record)` is called for each task that ends, and may add
    more tasks."""

    def __init__(self, cpus, most, ended):
        self.cpus, self.most, self.ended = cpus, most, ended
        self.waiting, self.running = [], {}

    def add(self, tasks):
        self.waiting += tasks
        self.waiting.sort(key=lambda task: -task.wall_s)

    def run(self):
        try:
            while self.waiting or self.running:
                self._start_what_fits()
                self._hurry()
                self._finish_some()
        finally:
            for task, pid in self.running.values():
                os.kill(pid, 15)  # the supervisor kills what it started

    def _fits(self, task):
        running = [other for other, _ in self.running.values()]
        if not running:
            return True
        if len(running) >= self.most or \
                task.lock and task.lock in {other.lock for other in running}:
            return False
        load = sum(other.weight for other in running if not other.nice)
        return load + task.weight <= self.cpus

    def _start_what_fits(self):
        for task in list(self.waiting):
            if self._fits(task):
                self.waiting.remove(task)
                pid, reading = supervise.start(
                    task.command, {**os.environ, **task.env}, task.cwd,
                    task.log, task.limit_s, task.nice)
                self.running[reading] = task, pid

    def _hurry(self):
        """Builds yield to tests. Where none runs, other work on the machine
        would starve them."""
        running = list(self.running.values())
        if all(task.nice for task, _ in running):
            for task, pid in running:
                if supervise.hurry(pid):
                    task.nice = 0

    def _finish_some(self):
        for reading in select.select(list(self.running), [], [], 1)[0]:
            task, pid = self.running.pop(reading)
            self.ended(task, supervise.finish(pid, reading))
