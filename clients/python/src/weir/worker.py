# SPDX-License-Identifier: MIT
"""The worker, as in "Running" of docs/wire.md: it pulls jobs, hands them to
runners, says their verdicts to the server, and renews leases. Each of these is a
task of a loop; commands are sent by threads, which block."""

import asyncio
import collections
import functools
import os
import queue
import re
import secrets
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Deque, Dict, List, Optional

import msgpack
import redis

from .client import (LOST_CONNECTION, Link, call, logger, packb, topic_keys,
                     unpackb)

BEAT, RATE_SPAN, LINGER, DRAIN, LATER = 5.0, 0.1, 0.002, 10.0, 1.0  # seconds
MOST, NOT_YET = 1024, 2
KEYS = "wait run lease ids meta idle held due dead rec options started absent"


def ms_of(delay: Optional[float]) -> Any:
    """As finish is told it."""
    if delay is None:
        return ""
    if not isinstance(delay, (int, float)) or not 0 <= delay <= 9999999999:
        raise ValueError("the delay %r is not 0 to 9999999999 seconds"
                         % (delay,))
    return round(delay * 1000)


class Retry(Exception):
    """Raised by a handler: again after the ladder's delay, or these seconds."""

    def __init__(self, error: str = "", delay: Optional[float] = None):
        super().__init__(error)
        self.delay = delay
        ms_of(delay)


class Snooze(Retry):
    """Raised by a handler: again after these seconds, no failure."""

    def __init__(self, delay: float):
        super().__init__("", delay)


class Fail(Retry):
    """Raised by a handler: the job is dead."""


def verdict_of(error: Optional[BaseException]) -> Any:
    """What finish is told of a run that raised this: verdict, ms, why."""
    if error is None:
        return "done", "", ""
    try:
        if not isinstance(error, Retry):
            return "retry", "", "%s: %s" % (type(error).__name__, error)
        if isinstance(error, Snooze):
            return "snooze", ms_of(error.delay + 0), ""
        return ("fail" if isinstance(error, Fail) else "retry",
                ms_of(error.delay), str(error))
    except BaseException:  # its class may be anybody's
        return "retry", "", "%s: its text or delay is none" % \
            type(error).__name__


class Lane:
    """What is known of one topic that is served."""

    def __init__(self, prefix: str, topic: str, handler: Any):
        self.topic, self.handler = topic, handler
        self.keys = topic_keys(prefix, topic, KEYS)
        self.claims: Dict[int, Claim] = {}  # by token
        self.lease = self.timeout = 0.0  # of the topic, once it answered
        self.said = ""  # what is wrong
        self.woken = asyncio.Event()


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
        self._claim, self._task = claim, None
        self._deadline = self._told_at = 0.0
        self._handle, id, self.body, self._facts = fields
        self.id, self.topic = id.decode(), claim.lane.topic
        self.token, self.is_lost = claim.token, False

    def _read(self) -> None:
        try:
            (self.due_ms, attempt, self.failures, self.timeouts, self.crashes,
             self.snoozes, options, self.added_ms) = unpackb(self._facts)
            self.attempt, self.options = attempt + 1, options or {}
            self.headers: Dict[str, str] = self.options.get("headers") or {}
            self.url: str = self.options.get("url", "")
        except Exception as error:  # options that Python cannot have
            raise ValueError from error
        self.body = unpackb(self.body)


async def wait(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds or 1e-6)  # others' turn
    except asyncio.TimeoutError:
        pass
    event.clear()


class Engine:
    """What workers have in common, whatever runs their handlers."""

    def __init__(self, client: Any, handlers: Dict[str, Callable[[Job], Any]],
                 *, concurrency: int = 8, prefetch: int = 1024,
                 prefix: str = "weir"):
        host = re.sub("[^A-Za-z0-9._:-]", "-", socket.gethostname())[:16]
        self._name = "%s-%d-%s" % (host, os.getpid(), secrets.token_hex(4))
        self._link, self._prefix, self._handlers = Link(client), prefix, \
            handlers
        self._concurrency, self._prefetch = concurrency, prefetch
        self._hold, self._held, self._stop_at = 2 * concurrency, 0, 0.0
        self._waiting: Deque[Job] = collections.deque()
        self._running: Dict[Job, None] = {}
        self._told: Deque[Any] = collections.deque()  # (job, verdict, ms, why)
        self._suspect: Optional[Job] = None
        self._may_come = False  # one, by a pull that is out
        self._loop: Any = None

    def stop(self) -> None:
        """Give back what has not begun, end what runs, then run() returns. Any
        thread may call it, and a signal handler."""
        self._stop_at = self._stop_at or time.monotonic()
        self._hear()

    def _hear(self) -> None:
        """Have the verdicts looked at."""
        try:
            if self._loop:
                self._loop.call_soon_threadsafe(self._heard.set)
        except RuntimeError:  # the loop ended
            pass

    # --- Jobs: on any thread ----------------------------------------------------

    def _start_runners(self) -> None:
        raise NotImplementedError

    def _lose(self, job: Job) -> None:
        job.is_lost = True

    def _next_job(self) -> Optional[Job]:
        """One that may run now."""
        try:
            job, now = self._waiting.popleft(), time.monotonic()
        except IndexError:
            return None
        try:
            if now < job._claim.deadline:
                job._read()
                job._deadline = now + job._claim.lane.timeout
                self._running[job] = None
                return job
            self._tell(job, "back")
        except (ValueError, msgpack.UnpackException):
            self._tell(job, "malformed")
        except TypeError as error:  # of a map that Python cannot have
            self._tell(job, "retry", "", error)
        return None

    def _end(self, job: Job, error: Optional[BaseException]) -> None:
        if self._running.pop(job, self) is self:
            return  # it took too long, that was told
        self._tell(job, *verdict_of(error))

    def _tell(self, job: Job, verdict: str, ms: Any = "",
              why: Any = "") -> None:
        self._told.append((job, verdict, ms,
                           str(why)[:512].encode(errors="replace")))
        if len(self._told) in (1, 256) or not self._waiting:
            self._hear()

    # --- The loop ---------------------------------------------------------------

    async def _serve(self) -> None:
        self._loop, self._heard = asyncio.get_running_loop(), asyncio.Event()
        self._freed, self._pool = asyncio.Event(), ThreadPoolExecutor(4)
        self._lanes = [Lane(self._prefix, *one)
                       for one in self._handlers.items()]
        threading.Thread(target=self._listen, daemon=True).start()
        workers = "%s:{%s:topics}:workers" % (self._prefix, self._prefix)
        tasks = [asyncio.ensure_future(one) for one in (
            self._settle(), self._beat(workers), self._watch(),
            *map(self._pull, self._lanes), *map(self._renew, self._lanes))]
        try:
            await self._ask(("SADD", self._prefix + ":topics",
                             *self._handlers))
            done, _ = await asyncio.wait(
                tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            await self._ask(("HDEL", workers, self._name), *(
                ("ZREM", lane.keys[5], self._name) for lane in self._lanes))
        finally:
            self.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._pool.shutdown(wait=False)
            self._link.close()

    async def _ask(self, *commands: Any) -> List[Any]:
        """Repeated while the server is away; once told to stop, not for
        long."""
        began = time.monotonic()
        return await self._loop.run_in_executor(self._pool, functools.partial(
            self._link.ask, *commands, raises=False, until=lambda:
            max(self._stop_at, began) + DRAIN if self._stop_at else
            float("inf")))

    async def _beat(self, workers: str) -> None:
        about = {"name": self._name, "host": socket.gethostname(),
                 "version": "python", "pid": os.getpid(), "connections": 2,
                 "topics": sorted(self._handlers)[:16],
                 "topics_total": len(self._handlers),
                 "since_ms": int(time.time() * 1000)}
        while True:
            await self._ask(call("beat", [workers], self._name, packb({
                **about, "held": self._held, "running": len(self._running),
                "stopping": bool(self._stop_at)})))
            await asyncio.sleep(BEAT)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(min([1.0] + [
                lane.timeout / 10 for lane in self._lanes if lane.timeout]))
            for job in list(self._running):
                if time.monotonic() >= job._deadline and \
                        self._running.pop(job, self) is None:
                    self._tell(job, "timeout", "", "timeout")
                    self._lose(job)

    async def _renew(self, lane: Lane) -> None:
        while True:
            await asyncio.sleep(lane.lease / 3 or 0.05)
            if not lane.claims:
                continue
            now = time.monotonic()
            answer, = await self._ask(call("renew", [lane.keys[2]], int(
                lane.lease * 1000), *lane.claims))
            if isinstance(answer, Exception):
                logger.warning("%s: %s", lane.topic, answer)
                continue
            for claim in lane.claims.values():
                claim.deadline = max(claim.deadline, now + lane.lease)
            for token in set(map(int, answer)) & set(lane.claims):
                lane.claims.pop(token).deadline = 0.0
            for job in list(self._running):
                if not job._claim.deadline and not job.is_lost:
                    self._lose(job)

    async def _pull(self, lane: Lane) -> None:
        while True:
            room = self._hold - self._held
            if self._stop_at or room < max(1, self._hold // 4):
                self._freed.clear()
                await self._freed.wait()
                continue
            self._held += room  # nobody else's
            sent = time.monotonic()
            lane.woken.clear()
            in_hand = 2 if self._suspect or self._may_come else \
                min(self._held - room, 1)
            self._may_come |= in_hand < 2
            answer, = await self._ask(call("pull", lane.keys, min(
                room, MOST), self._name, in_hand, ""))
            self._may_come &= in_hand == 2
            self._held -= room
            self._freed.set()
            self._heard.set()
            said = str(answer) if isinstance(answer, Exception) else \
                "it is of the kind %s" % answer[1].decode() \
                if answer[0] == -1 else ""
            if said and said != lane.said:
                logger.warning("%s: %s", lane.topic, said)
            lane.said = said
            if said:
                await asyncio.sleep(LATER)
                continue
            (_, token, next_us, _, _, lease, timeout, is_suspect,
             jobs) = answer
            lane.lease, lane.timeout = lease / 1000, timeout / 1000
            claim = Claim(lane, token, len(jobs), sent + lane.lease)
            if jobs:
                lane.claims[token] = claim
            self._held += len(jobs)
            if is_suspect:  # it runs next, its start is noted
                self._suspect = Job(claim, *jobs)
                self._waiting.appendleft(self._suspect)
            else:
                self._waiting.extend(Job(claim, one) for one in jobs)
            if not self._stop_at:
                self._start_runners()
            await wait(lane.woken, min(next_us / 1e6 if next_us >= 0 else
                                       lane.lease, lane.lease))

    async def _settle(self) -> None:
        rated_at, settled = time.monotonic(), 0
        while not (self._stop_at and not self._held):
            await wait(self._heard, BEAT)
            if self._waiting and len(self._told) < 256:
                await asyncio.sleep(LINGER)  # more will be told
            while self._stop_at and self._waiting:
                self._tell(self._waiting.popleft(), "back")
            told = [self._told.popleft() for _ in range(len(self._told))]
            for lane in self._lanes:
                mine = [one for one in told if one[0]._claim.lane is lane]
                for first in range(0, len(mine), MOST):
                    await self._finish(lane, mine[first:first + MOST])
            settled += len(told)
            now = time.monotonic()
            if now - rated_at >= RATE_SPAN:  # hold what runs in this time
                rate = settled / (now - rated_at)
                self._hold = min(self._prefetch, max(
                    2 * self._concurrency, int(rate * RATE_SPAN)))
                rated_at, settled = now, 0
            self._freed.set()

    async def _finish(self, lane: Lane, told: List[Any]) -> None:
        """What the server does not take is told again, until it is to stop."""
        for job, *_ in told:
            job._told_at = job._told_at or time.monotonic()
        answer, now = await self._results(lane, told), time.monotonic()
        for one, result in zip(told, answer):
            job, claim = one[0], one[0]._claim
            if result == NOT_YET and now < DRAIN + (
                    max(self._stop_at, job._told_at) if self._stop_at else now):
                self._told.append(one)
                continue
            self._held -= 1
            claim.left -= 1
            if not claim.left:
                lane.claims.pop(claim.token, None)
            if job is self._suspect:
                self._suspect = None
        if NOT_YET in answer:
            await asyncio.sleep(LATER)
            self._heard.set()

    async def _results(self, lane: Lane, told: List[Any]) -> List[int]:
        """One that the server refuses does not hold the others."""
        args = [part for job, *what in told for part in (job._handle, *what)]
        answer, = await self._ask(call("finish", lane.keys, self._name, *args))
        if not isinstance(answer, Exception):
            return answer
        if len(told) > 1:
            return [(await self._results(lane, [one]))[0] for one in told]
        logger.error("%s: %s", told[0][0].id, answer)
        return [NOT_YET]

    def _listen(self) -> None:
        """Wake-ups, on a thread of their own."""
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
                        self._loop.call_soon_threadsafe(lane.woken.set)
            except LOST_CONNECTION + (redis.ResponseError,) as error:
                logger.info("wake-ups: %s", error)
                time.sleep(1.0)
            except RuntimeError:  # the loop ended
                return


class Worker(Engine):
    """Runs jobs: `handlers` are functions of a Job, by topic, which run on
    `concurrency` threads. What returns is done; see Retry, Snooze and Fail. At
    most `prefetch` jobs are held, those that run among them."""

    def run(self) -> None:
        """Until stop(), SIGTERM or SIGINT."""
        self._ready: Any = queue.SimpleQueue()  # for each job that waits
        for _ in range(self._concurrency):
            threading.Thread(target=self._run_jobs, daemon=True).start()
        try:
            asyncio.run(self._run())
        finally:
            for _ in range(self._concurrency):
                self._ready.put(False)

    async def _run(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number,
                                                              self.stop)
        await self._serve()

    def _start_runners(self) -> None:
        for _ in range(len(self._waiting) - self._ready.qsize()):
            self._ready.put(True)

    def _run_jobs(self) -> None:
        while self._ready.get():
            job, error = self._next_job(), None
            if job:
                try:
                    job._claim.lane.handler(job)
                except BaseException as raised:  # the thread goes on
                    error = raised
                self._end(job, error)
