# SPDX-License-Identifier: MIT
"""The worker, as in "Running" of docs/wire.md: it pulls jobs, hands them to its
threads, hears of their verdicts, says these to the server, renews leases."""

import collections
import os
import queue
import re
import secrets
import signal
import socket
import threading
import time
from typing import Any, Callable, Deque, Dict, List, Optional

import msgpack
import redis

from .client import (LOST_CONNECTION, Error, Link, call, check_kind, logger,
                     packb, topic_keys, unpackb)

BEAT, RATE_SPAN, LINGER, DRAIN = 5.0, 0.1, 0.002, 10.0  # seconds
MOST, LATER = 1024, 2
KEYS = "wait run lease ids meta idle held due dead rec options started absent"


class Retry(Exception):
    """Raised by a handler: again after the ladder's delay, or these seconds."""

    def __init__(self, error: str = "", delay: Optional[float] = None):
        super().__init__(error)
        self.delay = delay


class Snooze(Retry):
    """Raised by a handler: again after these seconds, no failure."""

    def __init__(self, delay: float):
        super().__init__("", delay)


class Fail(Exception):
    """Raised by a handler: the job is dead."""
    delay = None


class Lane:
    """What is known of one topic that is served."""

    def __init__(self, prefix: str, topic: str, handler: Any):
        self.topic, self.handler = topic, handler
        self.keys = topic_keys(prefix, topic, KEYS)
        self.claims: Dict[int, Claim] = {}  # by token
        self.lease = self.timeout = 0.0  # of the topic, once it answered
        self.pull_at = self.renew_at = 0.0


class Claim:
    """Jobs that came together: a lease, which is over at the deadline."""

    def __init__(self, lane: Lane, token: int, left: int, deadline: float):
        self.lane, self.token, self.left = lane, token, left
        self.deadline = deadline


class Job:
    """What a handler gets. `attempt` is the number of this run, 1 for the first.
    `token` grows, and no two runs of a job have the same. `is_lost`: somebody
    else has it by now, stop."""

    def __init__(self, claim: Claim, fields: List[Any]):
        self._claim, self._deadline, self._runner = claim, 0.0, None
        self._handle, id, self.body, facts = fields
        (self.due_ms, attempt, self.failures, self.timeouts, self.crashes,
         self.snoozes, options) = unpackb(facts)
        self.id, self.topic = id.decode(), claim.lane.topic
        self.attempt, self.token, self.is_lost = attempt + 1, claim.token, False
        self.options = options or {}
        self.headers: Dict[str, str] = self.options.get("headers") or {}
        self.url: str = self.options.get("url", "")


class Worker:
    """Runs jobs: `handlers` are functions of a Job, by topic, which run on
    `concurrency` threads. What returns is done; see Retry, Snooze and Fail. At
    most `prefetch` jobs are held, those that run among them."""

    def __init__(self, client: Any, handlers: Dict[str, Callable[[Job], Any]],
                 *, concurrency: int = 8, prefetch: int = 1024,
                 prefix: str = "weir"):
        host = re.sub("[^A-Za-z0-9._:-]", "-", socket.gethostname())[:16]
        self._name = "%s-%d-%s" % (host, os.getpid(), secrets.token_hex(4))
        self._link, self._prefix = Link(client), prefix
        self._lanes = [Lane(prefix, *one) for one in handlers.items()]
        self._concurrency, self._prefetch = concurrency, prefetch
        self._hold, self._held, self._settled = 2 * concurrency, 0, 0
        self._waiting: Deque[Job] = collections.deque()
        self._running: Dict[Job, None] = {}
        self._told: Deque[Any] = collections.deque()  # (job, verdict, ms, why)
        self._suspect: Optional[Job] = None
        self._rated_at = self._beat_at = self._stop_at = self._tell_at = 0.0
        self._is_over, self._since_ms = False, int(time.time() * 1000)
        self._wake: Any = queue.SimpleQueue()   # a signal handler may put
        self._ready: Any = queue.SimpleQueue()  # for each job that waits

    def stop(self) -> None:
        """Give back what has not begun, end what runs, then run() returns. Any
        thread may call it, and a signal handler."""
        self._stop_at = self._stop_at or time.monotonic()
        self._wake.put(None)

    def run(self) -> None:
        """Until stop(), SIGTERM or SIGINT."""
        for _ in range(self._concurrency):
            threading.Thread(target=self._run_jobs, daemon=True).start()
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                before[number] = signal.signal(number,
                                               lambda *_: self.stop())
        try:
            self._serve()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            for _ in range(self._concurrency):
                self._ready.put(False)

    # --- Runners: other threads -----------------------------------------------

    def _start_runners(self) -> None:
        for _ in range(len(self._waiting) - self._ready.qsize()):
            self._ready.put(True)

    def _cancel(self, job: Job) -> None:
        pass

    def _run_jobs(self) -> None:
        while self._ready.get():
            job, error = self._next_job(), None
            if job:
                try:
                    job._claim.lane.handler(job)
                except BaseException as raised:  # the thread goes on
                    error = raised
                self._end(job, error)

    def _next_job(self) -> Optional[Job]:
        """One that may run now."""
        try:
            job, now = self._waiting.popleft(), time.monotonic()
        except IndexError:
            return None
        try:
            if now < job._claim.deadline:
                job.body = unpackb(job.body)
                job._deadline = now + job._claim.lane.timeout
                self._running[job] = None
                return job
            self._tell(job, "back")
        except (ValueError, msgpack.UnpackException):
            self._tell(job, "malformed")
        except TypeError as error:  # of a map that Python cannot have
            self._tell(job, "retry", error)
        return None

    def _end(self, job: Job, error: Optional[BaseException]) -> None:
        if self._running.pop(job, self) is self:
            return  # it took too long, that was told
        if error is None:
            self._tell(job, "done")
        elif isinstance(error, (Retry, Fail)):
            self._tell(job, type(error).__name__.lower(), error, error.delay)
        else:
            self._tell(job, "retry", "%s: %s" % (type(error).__name__, error))

    def _tell(self, job: Job, verdict: str, why: Any = "",
              delay: Optional[float] = None) -> None:
        ms = "" if delay is None else max(0, round(delay * 1000))
        self._told.append((job, verdict, ms,
                           str(why)[:512].encode(errors="replace")))
        if len(self._told) in (1, 256) or not self._waiting:
            self._wake.put(None)

    # --- The worker's own thread ------------------------------------------------

    def _ask(self, *commands: Any) -> List[Any]:
        """Repeated while the server is away; once told to stop, not for
        long."""
        return self._link.ask(*commands, until=lambda: self._stop_at + DRAIN
                              if self._stop_at else float("inf"))

    def _serve(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        workers = "%s:{%s:topics}:workers" % (self._prefix, self._prefix)
        try:
            self._ask(("SADD", self._prefix + ":topics",
                       *(lane.topic for lane in self._lanes)))
            while not (self._stop_at and (self._is_over or not self._held)):
                self._turn(workers)
            self._ask(("HDEL", workers, self._name), *(
                ("ZREM", lane.keys[5], self._name) for lane in self._lanes))
        finally:
            self._stop_at = self._stop_at or time.monotonic()
            self._link.close()

    def _turn(self, workers: str) -> None:
        now = time.monotonic()
        for job in list(self._running):
            if now >= job._deadline and self._running.pop(job, self) is None:
                self._tell(job, "timeout", "timeout")
                self._lose(job)
        for lane in self._lanes:
            if lane.claims and now >= lane.renew_at:
                self._renew(lane)
        if now >= self._beat_at:
            self._beat_at = now + BEAT
            self._ask(call("beat", [workers], self._name, packb({
                "name": self._name, "host": socket.gethostname(),
                "version": "python", "pid": os.getpid(), "connections": 2,
                "topics_total": len(self._lanes), "held": self._held,
                "running": len(self._running), "since_ms": self._since_ms,
                "topics": sorted(lane.topic for lane in self._lanes)[:16],
                "stopping": bool(self._stop_at)})))
        while self._stop_at and self._waiting:
            self._tell(self._waiting.popleft(), "back")
        if now >= self._tell_at:
            self._finish()
        for lane in self._lanes:
            if self._room() and time.monotonic() >= lane.pull_at:
                self._pull(lane)
        self._lanes = self._lanes[1:] + self._lanes[:1]  # in turn
        self._start_runners()
        self._pause()

    def _pause(self) -> None:
        """Until something is to be done, or somebody says so."""
        times = [self._beat_at] + [job._deadline for job in list(self._running)]
        times += [lane.renew_at for lane in self._lanes if lane.claims]
        times += [lane.pull_at for lane in self._lanes if self._room()]
        if self._told:  # a bit later, if more will be told
            times.append(max(self._tell_at, time.monotonic() + LINGER if
                             self._waiting and len(self._told) < 256 else 0.0))
        try:
            self._wake.get(timeout=max(0.0, min(times) - time.monotonic()))
            while True:
                self._wake.get_nowait()
        except queue.Empty:
            pass

    def _room(self) -> int:
        room = self._hold - self._held
        return 0 if self._stop_at or room < max(1, self._hold // 4) else room

    def _lose(self, job: Job) -> None:
        job.is_lost = True
        self._cancel(job)

    def _renew(self, lane: Lane) -> None:
        now = time.monotonic()
        lane.renew_at = now + lane.lease / 3
        answer, = self._ask(call("renew", [lane.keys[2]],
                                 int(lane.lease * 1000), *lane.claims))
        if isinstance(answer, Exception):
            logger.warning("%s: %s", lane.topic, answer)
            return
        for claim in lane.claims.values():
            claim.deadline = now + lane.lease
        for token in map(int, answer):
            lane.claims.pop(token).deadline = 0.0
        for job in list(self._running):
            if not job._claim.deadline and not job.is_lost:
                self._lose(job)

    def _pull(self, lane: Lane) -> None:
        sent = lane.pull_at = time.monotonic()  # a wake-up sets it back
        answer, = self._ask(call(
            "pull", lane.keys, min(self._room(), MOST), self._name,
            2 if self._suspect else min(self._held, 1), ""))
        if isinstance(answer, Exception):
            if not lane.lease:
                raise Error("%s: %s" % (lane.topic, answer))
            logger.warning("%s: %s", lane.topic, answer)
            lane.pull_at = sent + 1.0
            return
        check_kind(lane.topic, answer)
        _, token, next_us, _, _, lease, timeout, is_suspect, jobs = answer
        lane.lease, lane.timeout = lease / 1000, timeout / 1000
        wait = next_us / 1e6 if next_us >= 0 else lane.lease
        if lane.pull_at == sent:
            lane.pull_at = time.monotonic() + min(wait, lane.lease)
        if not jobs:
            return
        claim = Claim(lane, token, len(jobs), sent + lane.lease)
        lane.claims[token] = claim
        lane.renew_at = min(lane.renew_at, sent + lane.lease / 3)
        self._held += len(jobs)
        self._waiting.extend(Job(claim, one) for one in jobs)
        if is_suspect:  # it runs next, its start is noted
            self._suspect = self._waiting.pop()
            self._waiting.appendleft(self._suspect)

    def _finish(self) -> None:
        told = [self._told.popleft() for _ in range(len(self._told))]
        for lane in self._lanes:
            mine = [one for one in told if one[0]._claim.lane is lane]
            for first in range(0, len(mine), MOST):
                self._send(lane, mine[first:first + MOST])
        now = time.monotonic()
        if now - self._rated_at >= RATE_SPAN:  # hold what runs in this time
            rate = self._settled / (now - self._rated_at)
            self._hold = min(max(2 * self._concurrency, int(rate * RATE_SPAN)),
                             self._prefetch)
            self._rated_at, self._settled = now, 0

    def _send(self, lane: Lane, told: List[Any]) -> None:
        """What the server does not take is told again, until it is to stop."""
        args = [part for job, *what in told for part in (job._handle, *what)]
        answer, = self._ask(call("finish", lane.keys, self._name, *args))
        now = time.monotonic()
        if isinstance(answer, Exception):
            logger.error("%s: %s", lane.topic, answer)
            answer = [LATER] * len(told)
        for one, result in zip(told, answer):
            if result == LATER and now < (self._stop_at or now) + DRAIN:
                self._told.append(one)
                self._tell_at = now + 1.0
                continue
            job, claim = one[0], one[0]._claim
            self._settled += 1
            self._held -= 1
            claim.left -= 1
            if not claim.left:
                lane.claims.pop(claim.token, None)
            if job is self._suspect:
                self._suspect = None

    # --- Wake-ups: a thread of their own ----------------------------------------

    def _listen(self) -> None:
        ears = self._link.redis.pubsub()
        while not self._stop_at:
            try:
                if not ears.subscribed:
                    ears.subscribe("%s:wake:%s" % (self._prefix, self._name))
                told = ears.get_message(timeout=1.0)
                for lane in self._lanes if told else ():
                    words = bytes(told["data"]).split()
                    if told["type"] != "message" or \
                            words[:1] == [lane.topic.encode()]:
                        lane.pull_at = 0.0  # also for what came before it
                self._wake.put(None)
            except LOST_CONNECTION + (redis.ResponseError,) as error:
                logger.info("wake-ups: %s", error)
                time.sleep(1.0)
