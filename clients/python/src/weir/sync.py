# SPDX-License-Identifier: MIT
"""The client and the worker that block, whose handlers run on threads."""

import queue
import signal
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

import redis

from . import wire
from .calls import (LOST_CONNECTION, Added, AddedMany, Calls, Found, Steps, T,
                    check, own_connection)
from .engine import Engine, logger
from .jobs import Job


class Link:
    """A connection for commands."""

    def __init__(self, client: Any):
        self.connection = own_connection(client)
        self.is_open, self.opened = False, 0  # opened: so many times

    def close(self) -> None:
        self.is_open = False
        self.connection.disconnect()

    def send(self, commands: List[wire.Command]) -> List[Any]:
        try:
            if not self.is_open:
                self.connection.connect()
                self.is_open = True
                self.opened += 1
            self.connection.send_packed_command(
                self.connection.pack_commands(commands), check_health=False)
            return check([self.read() for _ in commands])
        except BaseException:  # what else comes answers no later command
            self.close()
            raise

    def read(self) -> Any:
        try:
            return self.connection.read_response(disable_decoding=True)
        except redis.ResponseError as error:
            return error


def drive(steps: Steps[T], link: Link, wait: Callable[[float], Any]) -> T:
    try:
        request = next(steps)
        while True:
            try:
                answer = link.send(request) if isinstance(request, list) \
                    else wait(request)
            except LOST_CONNECTION as error:
                request = steps.throw(error)
            else:
                request = steps.send(answer)
    except StopIteration as end:
        return end.value


class Client:
    """Adds jobs, looks at them, deletes them. Threads may share one. `client`
    is a redis.Redis, whose settings it takes for a connection of its own."""

    def __init__(self, client: Any, prefix: str = "weir"):
        self._calls, self._link = Calls(prefix), Link(client)
        self._lock = threading.Lock()

    def _do(self, steps: Steps[T]) -> T:
        with self._lock:
            return drive(steps, self._link, time.sleep)

    def add(self, topic: str, body: Any, *, id: str = "", delay: float = 0,
            at: Optional[float] = None, **options: Any) -> Added:
        """Add a job that is due after `delay` seconds, or at a time in seconds
        since 1970. Options: retry (a ladder), ttl (seconds), url, headers (a
        dict). An id is made where none is given."""
        return self._do(self._calls.add(topic, body, id, wire.when(delay, at),
                                        wire.job_options(**options)))

    def add_many(self, topic: str, bodies: Sequence[Any],
                 ids: Optional[List[str]] = None, *, delay: float = 0,
                 at: Optional[float] = None, **options: Any) -> AddedMany:
        """The same for many jobs, in packs. After an error some of them may
        have been added."""
        return self._do(self._calls.add_many(
            topic, bodies, ids, wire.when(delay, at),
            wire.job_options(**options)))

    def counts(self, topic: str) -> Dict[str, Any]:
        """The numbers of weir stats, as docs/wire.md names them."""
        return self._do(self._calls.counts(topic))

    def look(self, topic: str, id: str) -> Optional[Found]:
        return self._do(self._calls.look(topic, id))

    def delete(self, topic: str, id: str) -> Optional[Found]:
        """The job that was deleted; None: there was none."""
        return self._do(self._calls.look(topic, id, "delete"))

    def close(self) -> None:
        self._link.close()


class Worker(Engine):
    """Runs jobs: `handlers` are functions of a Job, by topic, which run on
    `concurrency` threads. What returns is done; see Retry, Snooze and Fail. At
    most `prefetch` jobs are held, those that run among them."""

    def __init__(self, client: Any, handlers: Dict[str, Callable[[Job], Any]],
                 *, concurrency: int = 8, prefetch: int = 1024,
                 prefix: str = "weir"):
        super().__init__(handlers, concurrency, prefetch, prefix)
        self._link, self._ears = Link(client), own_connection(client)
        self._wake: Any = queue.SimpleQueue()  # a signal handler may put

    def connections(self) -> int:
        return self._link.opened

    def wake(self) -> None:
        self._wake.put(None)

    def stop(self) -> None:
        """Give back what has not begun, end what runs, then run() returns. Any
        thread may call it, and a signal handler."""
        self.stop_at = self.stop_at or time.monotonic()
        self.wake()

    def run(self) -> None:
        """Until stop(), SIGTERM or SIGINT."""
        for target in [self._listen] + [self._run_jobs] * self.concurrency:
            threading.Thread(target=target, daemon=True).start()
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                before[number] = signal.signal(number,
                                               lambda *_: self.stop())
        try:
            drive(self.main(), self._link, self._wait)
        finally:
            self.stop_at = self.stop_at or time.monotonic()
            for number, handler in before.items():
                signal.signal(number, handler)
            for _ in range(self.concurrency):
                self.waiting.put(None)
            self._link.close()

    def _wait(self, seconds: float) -> None:
        try:
            self._wake.get(timeout=seconds)
            while True:
                self._wake.get_nowait()
        except queue.Empty:
            pass

    def _run_jobs(self) -> None:
        while True:
            job = self.waiting.get()
            if job is None:
                return
            if self.begin(job):
                error = None
                try:
                    job.node.lane.handler(job)
                except BaseException as raised:  # the thread goes on
                    error = raised
                self.end(job, error)

    def _listen(self) -> None:
        while not self.stop_at:
            try:
                self._ears.connect()
                self._ears.send_command("SUBSCRIBE", self.channel())
                while not self.stop_at:
                    if self._ears.can_read(1.0):
                        self.hear(self._ears.read_response(
                            disable_decoding=True))
            except LOST_CONNECTION + (redis.ResponseError,) as error:
                logger.info("wake-ups: %s", error)
                time.sleep(1.0)
            finally:
                self._ears.disconnect()
