# SPDX-License-Identifier: MIT
"""The call that tells the server what became of jobs."""

import collections
import random
import time
from typing import Any, Dict, List, Optional, Tuple

from . import wire
from .jobs import (DEAD, DONE, EXPIRED, FAIL, RETRY, SNOOZE, TIMEOUT, Job,
                   Lane, Node, Outcome)

SETTLE_JOBS, SETTLE_BYTES = 1024, 1 << 20
ERROR_BYTES, ATTEMPTS_BYTES, MOST_ATTEMPTS = 512, 2048, 8
FAILURES = (RETRY, TIMEOUT, FAIL)  # as the history of attempts counts them


class SettleCall:
    """The lists of one call of settle.lua."""

    def __init__(self, lane: Lane, worker: str):
        self.lane, self.worker = lane, worker
        self.outcomes: List[Outcome] = []
        self.given_back: List[Job] = []
        self.slots: Dict[Node, Tuple[int, bytearray]] = {}
        self.back: Dict[Node, bytearray] = {}
        self.moves: List[Any] = []
        self.ends: List[Any] = []
        self.bytes = 0

    def is_full(self) -> bool:
        return (len(self.outcomes) >= SETTLE_JOBS or
                self.bytes >= SETTLE_BYTES)

    def give_back(self, job: Job) -> None:
        self.given_back.append(job)
        self.back.setdefault(job.node, bytearray()).append(job.slot)

    def add(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        job, what, error, delay = outcome
        place = self.slots.get(job.node)
        if place is None:
            place = self.slots[job.node] = (256 * len(self.slots), bytearray())
        place[1].append(job.slot)
        if what == DONE:
            return
        source, data = place[0] + job.slot, b""
        if what != EXPIRED:
            reason, delay_ms = self.fate(job, what, error, delay)
            data = wire.write_record(self.rewritten(job, what, error, reason))
            if not reason:
                self.moves += [data, 1, job.id, "r%d" % delay_ms,
                               int(what != SNOOZE), [source], b""]
        if what == EXPIRED or reason:
            self.ends += source, job.id, data
        self.bytes += len(data)

    def fate(self, job: Job, what: int, error: str, delay: Optional[float]
             ) -> Tuple[str, int]:
        """Why it is dead, or after how many ms it runs again."""
        if what == DEAD:
            return error, 0
        if what == FAIL:
            return "failed", 0
        if what == SNOOZE:
            return "", round((delay or 0) * 1000)
        options = job.record.options
        ladder = options.get("retry", self.lane.ladder)
        step = max(0, job.record.attempt - options.get("spent", 0))
        try:
            delay_ms = wire.ladder_delay_ms(ladder, step)
        except ValueError:
            delay_ms = wire.ladder_delay_ms(self.lane.ladder, step)
        if delay_ms < 0:
            return "exhausted", 0
        if delay is not None:
            return "", round(delay * 1000)
        span = delay_ms * self.lane.jitter // 100
        return "", max(1, delay_ms + random.randint(-span, span))

    def attempts(self, job: Job, what: int, error: str) -> List[Any]:
        """The last ones that did not finish the job, this one among them."""
        found = job.record.options.get("attempts")
        now = round((time.time() + self.lane.clock) * 1000)
        found = [one for one in found if isinstance(one, list)] \
            if isinstance(found, list) else []
        found += [[now, 3, "", ""]] * min(job.ended, MOST_ATTEMPTS)
        if what in FAILURES:
            found.append([now, FAILURES.index(what), error, self.worker])
        while len(found) > MOST_ATTEMPTS or \
                len(wire.packb(found)) > ATTEMPTS_BYTES:
            del found[0]
        return found

    def rewritten(self, job: Job, what: int, error: str, reason: str
                  ) -> wire.Record:
        record, options = job.record, dict(job.record.options)
        options.setdefault("added_ms", wire.added_ms(job.node.name))
        if reason:
            options["reason"] = reason
        ran = what in FAILURES
        if ran:
            error = error.encode(errors="replace")[:ERROR_BYTES].decode(
                errors="ignore")
            options["error"] = error
        if ran or job.ended:
            options["attempts"] = self.attempts(job, what, error)
        return record._replace(
            attempt=record.attempt + ran, failures=record.failures + ran,
            timeouts=record.timeouts + (what == TIMEOUT),
            crashes=record.crashes + job.ended,
            snoozes=record.snoozes + (what == SNOOZE), options=options)

    def command(self) -> wire.Command:
        keys = self.lane.keys
        packs: Dict[bytes, int] = {}
        nodes: List[Any] = []
        back: List[Any] = []
        left = collections.Counter(one[0].node.claim for one in self.outcomes)
        left.update(job.node.claim for job in self.given_back)
        for node, (_, slots) in self.slots.items():
            name = keys.key(b"p:" + node.name[:12])
            place = packs.setdefault(name, 11 + len(packs))
            nodes += (place + wire.OF_MIXED * node.mixed, node.name,
                      node.claim.token, node.header_len, bytes(slots))
        for node, slots in self.back.items():
            whole = len(slots) == len(node.due)
            back += (node.name, node.claim.token,
                     node.due[0] + wire.MIXED_MS * node.mixed,
                     b"" if whole else bytes(slots))
        closed = [claim.token for claim, count in left.items()
                  if claim.left == count]
        return wire.call(
            "settle", keys.keys("run lease ids meta wait dead rec idle held "
                                "due") + list(packs) +
            keys.keys("absent"), keys.name, *map(wire.script_list, (
                nodes, back, closed, self.moves, self.ends)),
            self.lane.max_dead, 0)
