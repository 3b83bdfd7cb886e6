# SPDX-License-Identifier: MIT
"""What a worker does, as in "Running" of docs/wire.md: it claims jobs, hands them
to runners by a queue, hears of their outcomes, settles, renews. Like calls.py it
yields what to send; runners may be threads or tasks."""

import collections
import os
import queue
import secrets
import socket
import time
from typing import Any, Deque, Dict, List, Optional

import msgpack
import redis

from . import wire
from .calls import LOST_CONNECTION, Steps, ask, logger, one_of
from .jobs import (DEAD, DONE, EXPIRED, FAIL, LOST, RETRY, SNOOZE, TIMEOUT,
                   Claim, Fail, Job, Lane, Node, Outcome, Retry, Snooze)
from .settle import SettleCall

BEAT, RATE_SPAN, LINGER, DRAIN = 5.0, 0.1, 0.002, 10.0  # seconds
FETCH_BYTES = 4 << 20


class Engine:
    def __init__(self, handlers: Dict[str, Any], concurrency: int,
                 prefetch: int, prefix: str):
        host = "".join(letter if wire.is_topic(letter) else "-"
                       for letter in socket.gethostname())[:16]
        self.name = "%s-%d-%s" % (host, os.getpid(), secrets.token_hex(4))
        self.prefix, self.concurrency = prefix, concurrency
        self.prefetch, self.hold = prefetch, min(2 * concurrency, prefetch)
        self.lanes = [Lane(prefix, *one) for one in handlers.items()]
        self.waiting: Any = queue.SimpleQueue()
        self.running: Dict[Job, None] = {}
        self.outcomes: Deque[Outcome] = collections.deque()
        self.kept: List[Outcome] = []  # until the server takes them
        self.suspects: Deque[Job] = collections.deque()
        self.suspect: Optional[Job] = None
        self.held = self.settled = 0
        self.rated_at = self.beat_at = self.stop_at = self.kept_until = 0.0
        self.since_ms = int(time.time() * 1000)
        self.server = b""  # who it is, of the connection `opened`
        self.opened = -1

    # What the two kinds of worker do in their own way.
    def connections(self) -> int:
        """How often the connection for commands was opened."""
        raise NotImplementedError

    def start_runners(self) -> None:
        pass

    def cancel(self, job: Job) -> None:
        pass

    def wake(self) -> None:
        raise NotImplementedError

    def channel(self) -> str:
        return "%s:wake:%s" % (self.prefix, self.name)

    def hear(self, message: Any) -> None:
        """What came from the channel, perhaps on another thread."""
        topic = bytes(message[2] if message[0] == b"message" else b"").split()
        for lane in self.lanes:
            if not topic or lane.keys.name.encode() == topic[0]:
                lane.is_woken = True  # also by what came before it listened
        self.wake()

    # --- Runners: may be other threads ---------------------------------------

    def begin(self, job: Job) -> bool:
        """Whether the job may run now."""
        now = time.monotonic()
        if now >= job.node.claim.deadline:
            self.tell(job, LOST)
            return False
        try:
            job.body = wire.unpackb(job.record.body)
        except (ValueError, msgpack.UnpackException):
            self.tell(job, DEAD, "malformed")
            return False
        except TypeError as error:  # of a map that Python cannot have
            self.tell(job, RETRY, str(error))
            return False
        job.deadline = now + job.node.lane.timeout
        self.running[job] = None
        return True

    def end(self, job: Job, error: Optional[BaseException]) -> None:
        try:
            del self.running[job]
        except KeyError:  # it took too long, that was told
            return
        if error is None:
            self.tell(job, DONE)
        elif isinstance(error, Snooze):
            self.tell(job, SNOOZE, "", error.delay)
        elif isinstance(error, Fail):
            self.tell(job, FAIL, str(error))
        elif isinstance(error, Retry):
            self.tell(job, RETRY, str(error), error.delay)
        else:
            self.tell(job, RETRY, "%s: %s" % (type(error).__name__, error))

    def tell(self, job: Job, what: int, error: str = "",
             delay: Optional[float] = None) -> None:
        self.outcomes.append((job, what, error, delay))
        count = len(self.outcomes)
        if count == 1 or count == 256 or not self.waiting.qsize():
            self.wake()

    # --- The worker ---------------------------------------------------------

    def main(self) -> Steps[None]:
        yield from self.ask([("SADD", self.prefix + ":topics",
                              *(lane.keys.name for lane in self.lanes))])
        for lane in self.lanes:
            yield from self.configure(lane)
            if lane.is_refused:
                raise wire.Error("%s has on_dead: weir itself has to serve it"
                                 % lane.keys.name)
        while not (self.stop_at and not self.held):
            yield from self.turn()
        yield from self.ask([("HDEL", self.workers_key(), self.name)] + [
            ("ZREM", lane.keys.key(b"idle"), self.name)
            for lane in self.lanes])

    def turn(self) -> Steps[None]:
        now = time.monotonic()
        self.end_overdue(now)
        for lane in self.lanes:
            if now >= lane.renew_at:
                yield from self.renew(lane)
        if now >= self.beat_at:
            self.beat_at = now + BEAT
            yield from self.beat()
        yield from self.settle()
        self.rate()
        if self.stop_at:
            yield from self.give_back()
        else:
            yield from self.start_suspect()
            for lane in self.lanes:
                room = self.hold - self.held
                if room >= max(1, self.hold // 4) and \
                        time.monotonic() >= lane.next_claim():
                    yield from self.claim(lane, room)
            self.lanes = self.lanes[1:] + self.lanes[:1]  # in turn
        self.start_runners()
        if self.outcomes and self.waiting.qsize() and len(self.outcomes) < 256:
            yield LINGER  # more will be told
        elif not self.outcomes:
            yield self.pause()

    def ask(self, commands: List[wire.Command]) -> Steps[List[Any]]:
        """Repeated while the server is away; once told to stop, not for
        long."""
        return ask(commands, lambda: self.stop_at + DRAIN if self.stop_at
                   else float("inf"))

    def pause(self) -> float:
        now = time.monotonic()
        times = [self.beat_at] + [job.deadline for job in list(self.running)]
        times += [lane.renew_at for lane in self.lanes if lane.claims]
        times += [self.kept_until] if self.kept else []
        if not self.stop_at and self.hold - self.held >= max(1,
                                                             self.hold // 4):
            times += [lane.next_claim() for lane in self.lanes]
        return max(0.0, min(times) - now)

    def rate(self) -> None:
        """As much is held as runs in a tenth of a second."""
        now = time.monotonic()
        if now - self.rated_at >= RATE_SPAN:
            per_span = self.settled * RATE_SPAN / (now - self.rated_at)
            self.hold = min(max(2 * self.concurrency, int(per_span)),
                            self.prefetch)
            self.rated_at, self.settled = now, 0

    def end_overdue(self, now: float) -> None:
        for job in list(self.running):
            if now >= job.deadline and self.running.pop(job, self) is None:
                job.is_lost = True
                self.tell(job, TIMEOUT, "timeout")
                self.cancel(job)

    def configure(self, lane: Lane) -> Steps[None]:
        flat = one_of((yield from self.ask(
            [("HGETALL", lane.keys.key(b"options"))])))
        try:
            lane.set_options({name.decode(): value.decode() for name, value
                              in zip(flat[::2], flat[1::2])})
        except ValueError as error:
            raise wire.Error("an option of %s: %s" % (lane.keys.name, error))
        if lane.is_refused:
            logger.error("%s has on_dead: weir itself has to serve it",
                         lane.keys.name)

    def workers_key(self) -> str:
        return "%s:{%s:topics}:workers" % (self.prefix, self.prefix)

    def beat(self) -> Steps[None]:
        yield from self.ask([wire.call(
            "beat", [self.workers_key().encode()], self.name, wire.packb({
                "name": self.name, "host": socket.gethostname(),
                "version": "python", "pid": os.getpid(), "connections": 2,
                "topics_total": len(self.lanes), "held": self.held,
                "running": len(self.running), "since_ms": self.since_ms,
                "topics": sorted(lane.keys.name for lane in self.lanes)[:16],
                "stopping": bool(self.stop_at)}))])

    def renew(self, lane: Lane) -> Steps[None]:
        now = time.monotonic()
        lane.renew_at = now + lane.lease / 3
        if not lane.claims:
            return
        answer = (yield from self.ask([wire.call(
            "renew", lane.keys.keys("lease"), int(lane.lease * 1000),
            *lane.claims)]))[0]
        if isinstance(answer, Exception):
            logger.warning("%s: %s", lane.keys.name, answer)
            return
        lost = {int(token) for token in answer}
        for token, claim in list(lane.claims.items()):
            claim.deadline = now + lane.lease
            if token in lost:
                claim.deadline = 0.0
                del lane.claims[token]
        for job in list(self.running):
            if not job.node.claim.deadline and not job.is_lost:
                job.is_lost = True
                self.cancel(job)

    # --- Claim --------------------------------------------------------------

    def claim(self, lane: Lane, room: int) -> Steps[None]:
        keys, names = lane.keys, "wait run lease ids meta idle held due absent"
        nodes = int(min(1024, max(1, FETCH_BYTES // lane.pack_bytes)))
        args = [room, int(lane.lease * 1000), nodes, self.name,
                lane.is_asleep + 2 * (self.held > 0), "delay"]
        try:
            yield from self.meet_server()
            known = b" %d" % lane.token if lane.token and \
                lane.opened != self.opened else b""
            sent, lane.is_woken = time.monotonic(), False
            answer = (yield [wire.call("claim", keys.keys(names), *args,
                                       self.server + known)])[0]
        except redis.AuthenticationError:
            raise
        except LOST_CONNECTION:  # what it took comes back when its lease ends
            self.server = b""
            yield 0.1
            return
        if isinstance(answer, redis.exceptions.NoScriptError):
            self.server = b""
            return
        if isinstance(answer, Exception):
            logger.warning("%s: %s", keys.name, answer)
            lane.claim_at = sent + 1.0
            return
        kind = wire.kind_of(answer)
        if kind is not None:
            raise wire.WrongKind("%s is of kind %s" % (keys.name, kind))
        time_us, token, next_us, jobs, state = answer[:5]
        lane.opened = self.opened
        lane.clock = time_us / 1e6 - time.time()
        lane.is_asleep = jobs == 0 or jobs < room and next_us != 0
        wait = next_us / 1e6 if next_us >= 0 else lane.lease
        lane.claim_at = time.monotonic() + min(wait, lane.lease)
        if lane.revision != state >> 1:
            lane.revision = state >> 1
            yield from self.configure(lane)
        if jobs:
            lane.token = max(lane.token, token)
            claim = Claim(token, jobs, sent + lane.lease)
            lane.claims[token] = claim
            lane.renew_at = min(lane.renew_at, sent + lane.lease / 3)
            self.held += jobs
            yield from self.fetch(lane, claim, answer[5:], time_us // 1000)

    def meet_server(self) -> Steps[None]:
        """Which server it is, asked once per connection."""
        while self.opened != self.connections() or not self.server:
            answers = yield [("INFO", "server"), (
                "SCRIPT", "LOAD", wire.SCRIPTS["claim"].text)]
            one_of(answers)
            self.opened = self.connections()
            for line in answers[0].split(b"\r\n"):
                if line.startswith(b"run_id:"):
                    self.server = line[7:23]

    def fetch(self, lane: Lane, claim: Claim, flat: List[Any],
              now_ms: int) -> Steps[None]:
        pairs = list(zip(flat[::2], flat[1::2]))
        names = list({name[:12]: None for name, _ in pairs})
        found = one_of((yield from self.ask([("MGET", *(
            lane.keys.key(b"p:" + name) for name in names))])))
        size = sum(len(one or b"") for one in found) / len(names)
        lane.pack_bytes = (lane.pack_bytes + size) / 2
        packs: Dict[bytes, Any] = {}
        for name, data in zip(names, found):
            try:
                packs[name] = data and wire.Pack(name, data)
            except (ValueError, wire.Later) as error:
                packs[name] = error
        for name, value in pairs:
            self.take(Node(lane, claim, name, value), packs[name[:12]],
                      now_ms)

    def take(self, node: Node, pack: Any, now_ms: int) -> None:
        """The jobs of a node: to the runners, or at their end at once."""
        lane, lo = node.lane, node.first
        if isinstance(pack, wire.Pack):
            node.header_len = pack.header_len
        for slot in range(lo, lo + len(node.due)):
            record, id, why = wire.NO_RECORD, None, DEAD
            try:
                if isinstance(pack, Exception):
                    raise pack
                if pack is None:
                    why = DONE
                else:
                    id = pack.id_of(slot)
                    record = wire.read_record(pack.record(slot))
                    why = RETRY if id else DEAD
            except wire.Later:
                self.forget(lane, node.claim)
                continue
            except ValueError:
                pass
            job = Job(id or wire.made_id(node.name[:12], slot),
                      lane.keys.name, node.due[slot - lo], record, node, slot)
            job.ended = node.state // 2
            ttl = record.options.get("ttl_ms") or lane.ttl_ms
            if why == DONE:
                self.tell(job, DONE)
            elif why == DEAD:
                self.tell(job, DEAD, "malformed")
            elif ttl and now_ms - job.due_ms > ttl:
                self.tell(job, EXPIRED)
            elif not job.ended:
                self.waiting.put(job)
            elif job.ended > lane.max_crashes:
                self.tell(job, DEAD, "crashed")
            else:
                self.suspects.append(job)

    def start_suspect(self) -> Steps[None]:
        """One at a time: should the process die, the server knows of which."""
        while self.suspects and self.suspect is None:
            job = self.suspects.popleft()
            answer = one_of((yield from self.ask([wire.call(
                "start", job.node.lane.keys.keys("run started"),
                job.node.name, job.node.claim.token, self.name)])))
            if answer[0] == 1:
                self.suspect = job
                self.waiting.put(job)
            else:
                self.drop(job)

    def forget(self, lane: Lane, claim: Claim) -> None:
        """One job of it less in hand."""
        self.held -= 1
        claim.left -= 1
        if not claim.left:
            lane.claims.pop(claim.token, None)

    # --- Settle -------------------------------------------------------------

    def settle(self) -> Steps[None]:
        now = time.monotonic()
        taken = [self.outcomes.popleft() for _ in range(len(self.outcomes))]
        if now >= self.kept_until:
            taken, self.kept = self.kept + taken, []
            self.kept_until = now + 1.0
        for lane in self.lanes:
            call = SettleCall(lane, self.name)
            for outcome in taken:
                job, what = outcome[:2]
                if job.node.lane is not lane:
                    continue
                if what == LOST or not job.node.claim.deadline:
                    self.drop(job)
                    continue
                if now < lane.refused_until and not (what == DONE and
                                                     lane.is_full):
                    self.kept.append(outcome)
                    continue
                if call.is_full():
                    yield from self.send(call)
                    call = SettleCall(lane, self.name)
                call.add(outcome)
            yield from self.send(call)

    def drop(self, job: Job) -> None:
        self.forget(job.node.lane, job.node.claim)
        if job is self.suspect:
            self.suspect = None

    def send(self, call: SettleCall) -> Steps[None]:
        """What is refused is told again, until the worker is to stop."""
        if not call.outcomes and not call.back:
            return
        lane = call.lane
        answer = (yield from self.ask([call.command()]))[0]
        if isinstance(answer, Exception):
            logger.error("%s: %s", lane.keys.name, answer)
            if time.monotonic() < (self.stop_at or float("inf")) + DRAIN:
                # The server is full, all versions say so: what is done fits.
                lane.is_full = "when used memory >" in str(answer)
                lane.refused_until = time.monotonic() + 1.0
                self.kept += call.outcomes
                call.outcomes = []
        for job in [one[0] for one in call.outcomes] + call.given_back:
            self.settled += 1
            self.drop(job)

    def give_back(self) -> Steps[None]:
        """What has not begun."""
        jobs, self.suspects = list(self.suspects), collections.deque()
        while self.waiting.qsize():
            try:
                jobs.append(self.waiting.get_nowait())
            except queue.Empty:
                break
        for lane in self.lanes:
            call = SettleCall(lane, self.name)
            for job in jobs:
                if job.node.lane is lane:
                    if not job.node.claim.deadline:
                        self.drop(job)
                    else:
                        call.give_back(job)
            yield from self.send(call)
