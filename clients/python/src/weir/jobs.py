# SPDX-License-Identifier: MIT
"""What a worker has in hand: topics, claims, nodes, jobs."""

from typing import Any, Dict, Optional, Tuple

from . import wire

DONE, RETRY, SNOOZE, FAIL, TIMEOUT, EXPIRED, LOST, DEAD = range(8)


class Retry(Exception):
    """Raised by a handler: again after the ladder's delay, or these seconds."""

    def __init__(self, error: str = "", delay: Optional[float] = None):
        super().__init__(error)
        self.delay = delay


class Snooze(Exception):
    """Raised by a handler: again after these seconds, no failure."""

    def __init__(self, delay: float):
        super().__init__("snoozed")
        self.delay = delay


class Fail(Exception):
    """Raised by a handler: the job is dead."""


class Claim:
    """Jobs that were taken together: a lease."""
    __slots__ = ("token", "left", "deadline")

    def __init__(self, token: int, left: int, deadline: float):
        self.token, self.left, self.deadline = token, left, deadline


class Node:
    """A part of a pack under a claim."""
    __slots__ = ("lane", "claim", "name", "header_len", "first", "state",
                 "mixed", "due")

    def __init__(self, lane: "Lane", claim: Claim, name: bytes, value: Any):
        self.lane, self.claim, self.name = lane, claim, name
        self.header_len = wire.HEADER_LEAST
        self.first, last = wire.bounds(name)
        self.state, self.mixed, self.due = wire.due_times(value, self.first,
                                                          last)


class Job:
    """What a handler gets. `is_lost`: somebody else has it by now, stop."""
    __slots__ = ("id", "topic", "due_ms", "record", "body", "is_lost",
                 "ended", "node", "slot", "deadline", "runner")

    def __init__(self, id: str, topic: str, due_ms: int, record: wire.Record,
                 node: Node, slot: int):
        self.id, self.topic, self.due_ms = id, topic, due_ms
        self.record, self.node, self.slot = record, node, slot
        self.body: Any = None
        self.is_lost, self.ended = False, 0
        self.deadline = 0.0
        self.runner: Any = None

    @property
    def attempt(self) -> int:
        """The number of this run, 1 for the first."""
        return self.record.attempt + 1

    @property
    def token(self) -> int:
        """Of the claim; it grows, and no two runs of a job have the same."""
        return self.node.claim.token

    @property
    def headers(self) -> Dict[str, str]:
        return self.record.options.get("headers") or {}

    @property
    def url(self) -> str:
        return self.record.options.get("url", "")


Outcome = Tuple[Job, int, str, Optional[float]]  # what, error, delay


class Lane:
    """What is known of one topic that is served."""

    def __init__(self, prefix: str, topic: str, handler: Any):
        self.keys, self.handler = wire.Topic(prefix, topic), handler
        self.claims: Dict[int, Claim] = {}
        self.revision, self.token = -1, 0
        self.opened = -1       # the connection that claimed last
        self.is_asleep = self.is_woken = self.is_refused = False
        self.claim_at = self.renew_at = 0.0
        self.pack_bytes = 4096.0
        self.clock = 0.0       # the server's, less ours, in seconds
        self.refused_until = 0.0  # it takes no verdicts; is_full: but DONE
        self.is_full = False
        self.set_options({})

    def next_claim(self) -> float:
        """When, by the monotonic clock."""
        if self.is_refused:
            return float("inf")
        return 0.0 if self.is_woken else self.claim_at

    def set_options(self, stored: Dict[str, str]) -> None:
        options = {**wire.DEFAULTS, **stored}
        self.is_refused = bool(stored.get("on_dead"))
        self.ladder = options["retry"]
        wire.ladder_delay_ms(self.ladder, 0)
        self.jitter = int(options["retry_jitter"].rstrip("%"))
        self.lease = wire.duration_ms(options["lease"]) / 1000
        self.ttl_ms = wire.duration_ms(options["ttl"])
        self.timeout = wire.duration_ms(options["timeout"]) / 1000
        self.max_crashes = int(options["max_crashes"])
        self.max_dead = int(options["max_dead"])
