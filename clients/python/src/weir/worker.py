# SPDX-License-Identifier: MIT
"""The worker, as in "Running" of docs/wire.md: it pulls jobs, hands them to
runners, says their verdicts to the server, and renews leases. Each of these is a
task of a loop; commands are sent by threads, which block."""

import asyncio
import collections
import contextlib
import errno
import inspect
import math
import os
import queue
import re
import secrets
import signal
import socket
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Set

import redis

from . import check
from .client import (LOST_CONNECTION, Link, Shared, call, logger, packb,
                     topic_keys, unpackb)

BEAT, RATE_SPAN, LINGER, DRAIN, LATER = 5.0, 0.1, 0.002, 10.0, 1.0  # seconds
MOST, NOT_YET = 1024, 2
SHORT_MS = 1000  # until a job runs again for which this worker lacked something
KEYS = "wait run lease ids meta idle held due dead rec options started absent"


def ms_of(delay: Optional[float]) -> Any:
    """As finish is told it."""
    return "" if delay is None else round(1000 * check.number(
        "delay", delay, 0, 9999999999, "a number of seconds"))


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


def frame_of(error: BaseException) -> str:
    """Where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return " (%s:%d)" % (os.path.basename(frames[-1].filename)[-60:],
                         frames[-1].lineno or 0) if frames else ""


def is_short(error: Optional[BaseException]) -> bool:
    """Was it raised since this worker lacks descriptors, memory, processes or
    threads? A library may have made another exception of it."""
    if getattr(error, "errno", 0) == errno.EAGAIN or \
            isinstance(error, RuntimeError) and \
            str(error) == "can't start new thread":
        return True
    for _ in range(16):
        if isinstance(error, MemoryError) or isinstance(error, OSError) and \
                error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            return True
        if error:
            error = error.__cause__ or (None if error.__suppress_context__
                                        else error.__context__)
    return False


def verdict_of(error: BaseException) -> Any:
    """What finish gets of a run that raised this: verdict, ms, why. 200
    bytes of the last are kept, with the place at its end."""
    try:
        if not isinstance(error, Retry):
            if is_short(error):
                return "snooze", SHORT_MS, ""
            frame = frame_of(error)
            text = ("%s: %s" % (type(error).__name__, error)).encode(
                errors="replace")[:200 - len(frame.encode(errors="replace"))]
            return "retry", "", text.decode(errors="ignore") + frame
        if isinstance(error, Snooze):
            return "snooze", ms_of(error.delay + 0), ""
        return ("fail" if isinstance(error, Fail) else "retry",
                ms_of(error.delay), str(error))
    except BaseException:  # its class may be anybody's
        return "retry", "", "%s: its text or delay is none" % \
            type(error).__name__


LAZY = (inspect.isgeneratorfunction, inspect.isasyncgenfunction)


def check_handler(topic: str, handler: Any, is_async: bool) -> None:
    """Refuses what would return before it has done its work."""
    kinds = LAZY if is_async else (inspect.iscoroutinefunction, *LAZY)
    if not callable(handler):
        raise TypeError("the handler of %s is %s, not a function"
                        % (topic, check.shown(handler)))
    if any(is_kind(handler) or is_kind(handler.__call__) for is_kind in kinds):
        raise TypeError("the handler of %s is not a plain function: coroutines "
                        "are for weir.aio.Worker, generators for none" % topic)


def raise_result(result: Any) -> None:
    """A verdict that is returned counts as raised; what is lazy did nothing."""
    if isinstance(result, BaseException):
        raise result
    if inspect.isawaitable(result) or inspect.isgenerator(result) or \
            inspect.isasyncgen(result):
        if inspect.iscoroutine(result):
            result.close()  # else Python warns
        raise TypeError("the handler returned a %s, which nothing runs"
                        % type(result).__name__)


class Lane:
    """What is known of one topic that is served."""

    woken: asyncio.Event  # of the loop that runs
    changed: asyncio.Event  # the length of leases

    def __init__(self, prefix: str, topic: str, handler: Any):
        self.topic, self.handler = topic, handler
        self.keys = topic_keys(prefix, topic, KEYS)
        self.lease = self.timeout = 0.0  # of the topic, once it answered
        self.looked_at = self.kept_at = 0.0  # by the loop; by the keeper, too


class Claim:
    """Jobs that came together: a lease, which is over at the deadline; where
    that is 0, the lease is lost."""

    def __init__(self, lane: Lane, token: int, deadline: float):
        self.lane, self.token, self.deadline = lane, token, deadline


class Job:
    """What a handler gets. `attempt` is the number of this run, 1 for the first.
    `token` grows, and no two runs of a job have the same. `is_lost`: somebody
    else has it by now, stop."""

    def __init__(self, claim: Claim, fields: List[Any]):
        self._claim, self._task, self._told_at = claim, None, 0.0
        self._verdict: Any = None  # what finish gets of it
        self._handle, id, self.body, self._facts = fields
        self.id, self.topic = id.decode(), claim.lane.topic
        self.token, self.is_lost = claim.token, False

    def _read(self) -> None:
        """Raises something where it has what Python cannot have."""
        (self.due_ms, attempt, self.failures, self.timeouts, self.crashes,
         self.snoozes, options, self.added_ms) = unpackb(self._facts)
        self.attempt, self.options = attempt + 1, options or {}
        self.headers: Dict[str, str] = self.options.get("headers") or {}
        self.url: str = self.options.get("url", "")
        self.body = unpackb(self.body)

    def _lose(self) -> None:
        self.is_lost = True
        if self._task:
            self._task.cancel()


HEARD: Set[int] = set()  # signals that a loop of this process hears
FORK = threading.local()


def hold_signals() -> None:
    """The child of a fork would tell the parent's loop of its own signals."""
    FORK.mask = signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)


def let_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, FORK.mask)


def forget_signals() -> None:
    if HEARD:
        signal.set_wakeup_fd(-1)
    while HEARD:
        signal.signal(HEARD.pop(), signal.SIG_DFL)
    let_signals()


os.register_at_fork(before=hold_signals, after_in_parent=let_signals,
                    after_in_child=forget_signals)


async def wait(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(event.wait(), seconds or 1e-6)  # others' turn
    event.clear()


async def insist(work: Any) -> None:
    """Does it to its end, however often the task that waits is cancelled."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    task.result()


class Engine(Shared):
    """What workers have in common, whatever runs their handlers."""

    _is_async = False

    def __init__(self, client: Any, handlers: Dict[str, Callable[[Job], Any]],
                 *, concurrency: int = 8, prefetch: int = 1024,
                 prefix: str = "weir", **unknown: Any):
        for name in unknown:
            raise check.unknown("Worker", name, ("concurrency", "prefetch",
                                                 "prefix"))
        check.prefix(prefix)
        check.count("concurrency", concurrency, 100000)
        check.count("prefetch", prefetch, 100000)
        if not isinstance(handlers, dict) or not handlers:
            raise TypeError("the handlers are %s, not a dict of a function for "
                            "each topic" % check.shown(handlers))
        self._name, self._pid = "", 0  # of the process that runs it
        self._link = Link(client, self._until)
        self._lanes = [Lane(prefix, *one) for one in handlers.items()]
        for lane in self._lanes:
            check_handler(lane.topic, lane.handler, self._is_async)
        self._prefix, self._stop_at = prefix, 0.0
        self._concurrency, self._prefetch = concurrency, prefetch
        self._hold = self._least = min(prefetch, 2 * concurrency)
        self._in_hand: Set[Job] = set()  # until the server took their verdict
        self._waiting: Deque[Job] = collections.deque()
        self._running: Dict[Job, float] = {}  # until when
        self._told: Deque[Any] = collections.deque()  # (job, verdict, ms, why)
        self._suspect: Optional[Job] = None
        self._pulling: Any = None  # lane, when it was sent, its answer to come
        self._is_cut = False  # run() was cancelled, or a task of it failed
        self._is_over = threading.Event()
        self._ready: Any = None  # a queue: True for runners to look, or False
        self._loop: Any = None

    def stop(self) -> None:
        """Give back what has not begun, end what runs, then run() returns. Any
        thread may call it, and a signal handler."""
        self._stop_at = self._stop_at or time.monotonic()
        if self._loop:
            self._set(self._heard)

    def _until(self, began: float) -> float:
        """When to give up what began then: once told to stop, before long."""
        return max(self._stop_at, began) + DRAIN if self._stop_at else math.inf

    # --- Jobs: on any thread ----------------------------------------------------

    def _set(self, event: asyncio.Event) -> None:
        with contextlib.suppress(RuntimeError):  # the loop ended
            self._loop.call_soon_threadsafe(event.set)

    def _jobs(self) -> Iterator[Job]:
        """Those that a runner is to run, until none waits. Once it is told to
        stop, all that wait are given back."""
        while True:
            try:
                job, now = self._waiting.popleft(), time.monotonic()
            except IndexError:
                return
            if self._stop_at or now >= job._claim.deadline:
                self._tell(job, "back")
                continue
            try:
                job._read()
            except MemoryError:
                self._tell(job, "snooze", SHORT_MS)
                continue
            except Exception:
                self._tell(job, "malformed")
                continue
            self._running[job] = now + job._claim.lane.timeout
            yield job

    def _leave_fork(self, error: Optional[BaseException] = None) -> None:
        """Ends a child that a handler forked and that came out of it: jobs,
        threads and loop are its parent's."""
        if self._pid in (0, os.getpid()):  # 0: run() was not called
            return
        is_well = error is None or isinstance(error, SystemExit) and \
            error.code in (None, 0)
        if not is_well:
            logger.error("a child that a handler forked", exc_info=error)
        os._exit(0 if is_well else 1)

    def _end(self, job: Job, *verdict: Any) -> bool:
        """A run is over: what is said first counts."""
        is_first = self._running.pop(job, None) is not None
        if is_first:
            self._tell(job, *verdict)
        return is_first

    def _end_raised(self, job: Job, error: BaseException) -> None:
        verdict = verdict_of(error)
        if self._end(job, *verdict) and not isinstance(error, Retry):
            why = verdict[2] or "this worker is short of something: the job " \
                "waits for 1 s and loses no attempt"
            logger.warning("%s: job %s, attempt %d: %s", job.topic, job.id,
                           job.attempt, why, exc_info=error)

    def _tell(self, job: Job, verdict: str, ms: Any = "",
              why: str = "") -> None:
        job._verdict = (job, verdict, ms, why[:512].encode(errors="replace"))
        self._told.append(job._verdict)
        if not self._heard.is_set():
            self._set(self._heard)

    # --- The loop ---------------------------------------------------------------

    def _start_runners(self) -> None:
        while self._ready.qsize() < min(len(self._waiting), self._concurrency):
            self._ready.put_nowait(True)

    def _enter(self) -> None:
        """Not when it is made, since a fork may come between."""
        if self._pid not in (0, os.getpid()):
            raise RuntimeError("this Worker ran before the fork: make another "
                               "one in this process")
        host = re.sub("[^A-Za-z0-9._:-]", "-", socket.gethostname())[:16]
        self._pid = os.getpid()
        self._name = "%s-%d-%s" % (host, self._pid, secrets.token_hex(6))

    async def _serve(self, signals: bool, *runners: Any) -> None:
        self._heard, self._freed = asyncio.Event(), asyncio.Event()
        self._pool = ThreadPoolExecutor(4)
        self._loop = asyncio.get_running_loop()  # now stop() may set events
        numbers = (signal.SIGTERM, signal.SIGINT) if signals else ()
        workers = "%s:{%s:topics}:workers" % (self._prefix, self._prefix)
        if self._is_async:  # its handlers may hold the loop, from now on
            threading.Thread(target=self._keep, daemon=True).start()
        tasks = [asyncio.ensure_future(one) for one in (
            *runners, self._settle(), self._beat(workers), self._watch(),
            *map(self._pull, self._lanes), *map(self._renew, self._lanes))]
        try:
            for number in numbers:
                self._loop.add_signal_handler(number, self.stop)
                HEARD.add(number)
            await self._ask(("SADD", self._prefix + ":topics",
                             *(lane.topic for lane in self._lanes)))
            threading.Thread(target=self._listen, daemon=True).start()
            await next(asyncio.as_completed(tasks))
        finally:
            self.stop()
            for number in numbers:
                self._loop.remove_signal_handler(number)
                HEARD.discard(number)
            for _ in range(self._concurrency):
                self._ready.put_nowait(False)
            try:
                if self._pulling or self._in_hand:
                    self._is_cut = True  # handlers see it in their next turn
                    await insist(self._give_back(tasks[:len(runners)]))
            finally:
                await insist(self._leave(tasks, workers))

    async def _leave(self, tasks: List[Any], workers: str) -> None:
        try:
            if self._link.has_met:
                await self._ask(("HDEL", workers, self._name), *(
                    ("ZREM", lane.keys[5], self._name)
                    for lane in self._lanes))
        finally:
            left, end = set(tasks), time.monotonic() + DRAIN
            while left and time.monotonic() < end:
                for task in left:  # wait_for of Python 3.11 may lose a cancel
                    task.cancel()
                _, left = await asyncio.wait(left, timeout=LATER)
            if left:
                logger.error("%d handlers go on though they were cancelled",
                             len(left))
            await asyncio.gather(*set(tasks) - left, return_exceptions=True)
            self._is_over.set()
            self._pool.shutdown(wait=False)
            self._link.close()

    async def _give_back(self, runners: List[Any]) -> None:
        """run() was cancelled, or a task failed, maybe all of them: handlers
        that can be are cancelled, and what is in hand goes back."""
        end = time.monotonic() + DRAIN
        renewing = [asyncio.ensure_future(self._renew(lane))
                    for lane in self._lanes]
        try:
            for job in list(self._running):
                if job._task:
                    job._task.cancel()
            if self._pulling:
                lane, sent, answer = self._pulling
                await asyncio.wait([answer], timeout=DRAIN)
                if answer.done() and not answer.cancelled() and \
                        not answer.exception():
                    self._take(lane, sent, answer.result()[0])
            if runners:
                await asyncio.wait(runners, timeout=DRAIN)
            while time.monotonic() < end and not all(
                    job._task and job._task.done() for job in self._running):
                await wait(self._heard, LATER)
            for job in self._in_hand:
                if not job._verdict:
                    self._tell(job, "back")
            while self._in_hand and time.monotonic() < end + DRAIN:
                await self._finish_all([job._verdict for job in self._in_hand])
                if self._in_hand:
                    await asyncio.sleep(LATER)
        finally:
            for task in renewing:
                task.cancel()

    def _ask(self, *commands: Any) -> Any:
        """A future of the answers."""
        self._leave_fork(RuntimeError("it cannot await: end it with os._exit"))
        return self._loop.run_in_executor(
            self._pool, lambda: self._link.ask(*commands, raises=False))

    async def _beat(self, workers: str) -> None:
        about = {"name": self._name, "host": socket.gethostname(),
                 "version": "python", "pid": os.getpid(), "connections": 2,
                 "topics": [lane.topic for lane in self._lanes[:16]],
                 "topics_total": len(self._lanes),
                 "since_ms": int(time.time() * 1000)}
        while True:
            about.update(held=len(self._in_hand), running=len(self._running),
                         stopping=bool(self._stop_at))
            await self._ask(call("beat", [workers], self._name, packb(about)))
            await asyncio.sleep(BEAT)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(min([1.0] + [
                lane.timeout / 10 for lane in self._lanes if lane.timeout]))
            for job, deadline in self._running.copy().items():
                if time.monotonic() >= deadline:
                    self._end(job, "timeout", "", "timeout")
                    job._lose()

    def _claims(self, lane: Lane) -> Any:
        """Those in hand by their tokens, and the call that renews them."""
        claims = {job._claim.token: job._claim for job in list(self._in_hand)
                  if job._claim.lane is lane and job._claim.deadline}
        return claims, call("renew", [lane.keys[2], lane.keys[6]],
                            int(lane.lease * 1000), *claims)

    async def _renew(self, lane: Lane) -> None:
        while True:
            await wait(lane.changed, lane.lease / 3 or BEAT)
            now = lane.looked_at = lane.kept_at = time.monotonic()
            claims, renew = self._claims(lane)
            if not claims:
                continue
            answer, = await self._ask(renew)
            if isinstance(answer, Exception):
                logger.warning("%s: %s", lane.topic, answer)
                continue
            lost = set(map(int, answer))
            for token, claim in claims.items():
                claim.deadline = 0.0 if token in lost else now + lane.lease
            for job in list(self._running):
                if not job._claim.deadline and not job.is_lost:
                    job._lose()

    def _keep(self) -> None:
        """Renews leases while a handler holds the loop, for no longer than a
        run may take; on a thread of its own."""
        while not self._is_over.wait(min([1.0] + [
                lane.lease / 6 for lane in self._lanes if lane.lease])):
            now = time.monotonic()
            for lane in self._lanes:
                if lane.lease and now - lane.kept_at > lane.lease / 2 and \
                        now - lane.looked_at < lane.lease + lane.timeout:
                    lane.kept_at = now
                    self._keep_lane(lane, now)

    def _keep_lane(self, lane: Lane, now: float) -> None:
        claims, renew = self._claims(lane)
        if not claims:
            return
        task = asyncio.current_task(self._loop)
        for job in list(self._running):
            if task and job._task is task:
                logger.warning("%s: job %s holds the loop for %.1f s; the lease "
                               "is renewed meanwhile", lane.topic, job.id,
                               now - lane.looked_at)
        try:
            lost, = self._link.ask(renew, timeout=lane.lease)
        except Exception as error:  # the next try comes soon
            logger.info("%s: %s", lane.topic, error)
            return
        for token in claims.keys() - set(map(int, lost)):
            claims[token].deadline = now + lane.lease

    async def _pull(self, lane: Lane) -> None:
        lane.woken, lane.changed, said = asyncio.Event(), asyncio.Event(), ""
        while True:
            room = self._hold - len(self._in_hand)
            if self._stop_at or self._pulling or 4 * room < self._hold:
                self._freed.clear()
                await self._freed.wait()
                continue
            sent = time.monotonic()
            lane.woken.clear()
            in_hand = 2 if self._suspect in self._in_hand else \
                min(len(self._in_hand), 1)
            answers = asyncio.ensure_future(self._ask(call(
                "pull", lane.keys, min(room, MOST), self._name, in_hand, "")))
            self._pulling = lane, sent, answers  # one may bring a suspect
            answer, = await asyncio.shield(answers)
            error = str(answer) if isinstance(answer, Exception) else \
                "it is of the kind %s" % answer[1].decode() \
                if answer[0] == -1 else ""
            pause = LATER if error else self._take(lane, sent, answer)
            self._pulling = None
            self._freed.set()
            self._heard.set()
            if error not in ("", said):
                logger.warning("%s: %s", lane.topic, error)
            said = error
            if error:
                await asyncio.sleep(LATER)
                continue
            self._start_runners()
            await wait(lane.woken, pause)

    def _take(self, lane: Lane, sent: float, answer: Any) -> float:
        """Jobs that came; returns the seconds until the next pull."""
        if isinstance(answer, Exception) or answer[0] == -1:
            return LATER
        _, token, next_us, _, _, lease, timeout, is_suspect, jobs = answer
        if lease / 1000 != lane.lease:  # claims from before have it, too
            lane.changed.set()
        lane.lease, lane.timeout = lease / 1000, timeout / 1000
        lane.looked_at = time.monotonic()
        claim = Claim(lane, token, sent + lane.lease)
        come = [Job(claim, one) for one in jobs]
        self._in_hand.update(come)
        self._waiting.extend(come)
        if is_suspect:  # it runs next, its start is noted
            self._suspect, = come
            self._waiting.rotate()
        return min(next_us / 1e6 if next_us >= 0 else lane.lease, lane.lease)

    async def _settle(self) -> None:
        ended: Deque[float] = collections.deque(maxlen=self._prefetch)  # when
        while not self._stop_at or self._in_hand or self._pulling:
            await wait(self._heard, BEAT)
            if self._waiting and len(self._told) < 256:
                await asyncio.sleep(LINGER)  # more will be told
            if self._stop_at:
                list(self._jobs())  # none is left to run
            told = [self._told.popleft() for _ in range(len(self._told))]
            await self._finish_all(told)
            now = time.monotonic()
            ended.extend([now] * len(told))
            while ended and ended[0] < now - RATE_SPAN:
                ended.popleft()
            self._hold = max(self._least, len(ended))  # what runs in this time
            self._freed.set()
            if not self._in_hand.isdisjoint(one[0] for one in told):
                await asyncio.sleep(LATER)
                self._heard.set()

    async def _finish_all(self, told: List[Any]) -> None:
        for lane in self._lanes:
            mine = [one for one in told if one[0]._claim.lane is lane]
            for first in range(0, len(mine), MOST):
                await self._finish(lane, mine[first:first + MOST])

    async def _finish(self, lane: Lane, told: List[Any]) -> None:
        """What the server does not take is told again, until it is to stop."""
        args = [part for job, *what in told for part in (job._handle, *what)]
        answer, = await self._ask(call("finish", lane.keys, self._name, *args))
        if isinstance(answer, Exception) and len(told) > 1:
            for one in told:  # what is refused does not hold the others
                await self._finish(lane, [one])
            return
        if isinstance(answer, Exception):
            logger.error("%s: %s", told[0][0].id, answer)
            answer = [NOT_YET]
        now = time.monotonic()
        for one, result in zip(told, answer):
            job = one[0]
            job._told_at = job._told_at or now
            if result == NOT_YET and now < self._until(job._told_at):
                self._told.append(one)
            else:
                self._in_hand.discard(job)

    def _listen(self) -> None:
        """Wake-ups, on a thread of their own."""
        ears = self._link.redis.pubsub()
        while not self._stop_at:
            try:
                if not ears.subscribed:
                    ears.subscribe("%s:wake:%s" % (self._prefix, self._name))
                told = ears.get_message(timeout=1.0)
                for lane in self._lanes if told else ():
                    if told["type"] != "message" or \
                            told["data"].split()[:1] == [lane.topic.encode()]:
                        self._set(lane.woken)
            except LOST_CONNECTION + (redis.ResponseError,) as error:
                logger.info("wake-ups: %s", error)
                time.sleep(1.0)


class Worker(Engine):
    """Runs jobs: `handlers` are functions of a Job, by topic, which run on
    `concurrency` threads. What returns is done; see Retry, Snooze and Fail. At
    most `prefetch` jobs are held, those that run among them."""

    def run(self) -> None:
        """Until stop(), SIGTERM or SIGINT."""
        self._enter()
        self._ready = queue.SimpleQueue()
        for _ in range(self._concurrency):
            threading.Thread(target=self._run_jobs, daemon=True).start()
        asyncio.run(self._serve(
            threading.current_thread() is threading.main_thread()))

    def _run_jobs(self) -> None:
        while self._ready.get():
            for job in self._jobs():
                try:
                    raise_result(job._claim.lane.handler(job))
                except BaseException as error:  # the thread goes on
                    self._leave_fork(error)
                    self._end_raised(job, error)
                else:
                    self._leave_fork()
                    self._end(job, "done")
