# SPDX-License-Identifier: MIT
"""The client and the worker for asyncio: those of sync.py, awaited."""

import asyncio
import queue
import signal
import time
from typing import (Any, Awaitable, Callable, Dict, List, Optional, Sequence,
                    Set)

import redis

from . import wire
from .calls import (LOST_CONNECTION, Added, AddedMany, Calls, Found, Steps, T,
                    check, own_connection)
from .engine import Engine, logger
from .jobs import Job

TURN = 0.005  # seconds after which handlers that await nothing let others on


class Link:
    """A connection for commands."""

    def __init__(self, client: Any):
        self.connection = own_connection(client)
        self.is_open, self.opened = False, 0  # opened: so many times

    async def close(self) -> None:
        self.is_open = False
        await self.connection.disconnect()

    async def send(self, commands: List[wire.Command]) -> List[Any]:
        try:
            if not self.is_open:
                await self.connection.connect()
                self.is_open = True
                self.opened += 1
            await self.connection.send_packed_command(
                self.connection.pack_commands(commands), check_health=False)
            return check([await self.read() for _ in commands])
        except BaseException:  # what else comes answers no later command
            await self.close()
            raise

    async def read(self) -> Any:
        try:
            return await self.connection.read_response(disable_decoding=True)
        except redis.ResponseError as error:
            return error


async def drive(steps: Steps[T], link: Link,
                wait: Callable[[float], Awaitable[Any]]) -> T:
    try:
        request = next(steps)
        while True:
            try:
                answer = await (link.send(request) if isinstance(request, list)
                                else wait(request))
            except LOST_CONNECTION as error:
                request = steps.throw(error)
            else:
                request = steps.send(answer)
    except StopIteration as end:
        return end.value


class Client:
    """weir.Client, of a redis.asyncio.Redis."""

    def __init__(self, client: Any, prefix: str = "weir"):
        self._calls, self._link = Calls(prefix), Link(client)
        self._lock = asyncio.Lock()

    async def _do(self, steps: Steps[T]) -> T:
        async with self._lock:
            return await drive(steps, self._link, asyncio.sleep)

    async def add(self, topic: str, body: Any, *, id: str = "",
                  delay: float = 0, at: Optional[float] = None,
                  **options: Any) -> Added:
        return await self._do(self._calls.add(
            topic, body, id, wire.when(delay, at),
            wire.job_options(**options)))

    async def add_many(self, topic: str, bodies: Sequence[Any],
                       ids: Optional[List[str]] = None, *, delay: float = 0,
                       at: Optional[float] = None, **options: Any
                       ) -> AddedMany:
        return await self._do(self._calls.add_many(
            topic, bodies, ids, wire.when(delay, at),
            wire.job_options(**options)))

    async def counts(self, topic: str) -> Dict[str, Any]:
        return await self._do(self._calls.counts(topic))

    async def look(self, topic: str, id: str) -> Optional[Found]:
        return await self._do(self._calls.look(topic, id))

    async def delete(self, topic: str, id: str) -> Optional[Found]:
        return await self._do(self._calls.look(topic, id, "delete"))

    async def close(self) -> None:
        await self._link.close()


class Worker(Engine):
    """weir.Worker, of a redis.asyncio.Redis; handlers are coroutine functions,
    `concurrency` of which run at a time. One that runs too long, or whose lease
    is lost, is cancelled."""

    def __init__(self, client: Any,
                 handlers: Dict[str, Callable[[Job], Awaitable[Any]]], *,
                 concurrency: int = 100, prefetch: int = 1024,
                 prefix: str = "weir"):
        super().__init__(handlers, concurrency, prefetch, prefix)
        self._link, self._ears = Link(client), own_connection(client)
        self._ears.socket_timeout = None
        self._wake = asyncio.Event()
        self._runners: Set[Any] = set()

    def connections(self) -> int:
        return self._link.opened

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        """Give back what has not begun, end what runs, then run() returns."""
        self.stop_at = self.stop_at or time.monotonic()
        self.wake()

    async def run(self, signals: bool = True) -> None:
        """Until stop(), or SIGTERM or SIGINT where it is to hear these."""
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGTERM, signal.SIGINT) if signals else ()
        for number in numbers:
            loop.add_signal_handler(number, self.stop)
        ears = asyncio.ensure_future(self._listen())
        try:
            await drive(self.main(), self._link, self._wait)
        finally:
            self.stop_at = self.stop_at or time.monotonic()
            for number in numbers:
                loop.remove_signal_handler(number)
            for task in [ears, *self._runners]:
                task.cancel()
            await asyncio.gather(ears, *self._runners, return_exceptions=True)
            await self._link.close()
            await self._ears.disconnect()

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except asyncio.TimeoutError:
            pass
        self._wake.clear()

    def start_runners(self) -> None:
        wanted = min(self.waiting.qsize(),
                     self.concurrency - len(self._runners))
        for _ in range(wanted):
            task = asyncio.ensure_future(self._run_jobs())
            self._runners.add(task)
            task.add_done_callback(self._runners.discard)

    def cancel(self, job: Job) -> None:
        job.runner.cancel()

    async def _run_jobs(self) -> None:
        turn = time.monotonic()
        while True:
            try:
                job = self.waiting.get_nowait()
            except queue.Empty:
                return
            if not self.begin(job):
                continue
            job.runner, error = asyncio.current_task(), None
            try:
                await job.node.lane.handler(job)
            except asyncio.CancelledError:
                if not job.is_lost:
                    raise
                getattr(job.runner, "uncancel", int)()  # Python 3.11
            except Exception as raised:
                error = raised
            self.end(job, error)
            if time.monotonic() - turn > TURN:
                await asyncio.sleep(0)
                turn = time.monotonic()

    async def _listen(self) -> None:
        while not self.stop_at:
            try:
                await self._ears.connect()
                await self._ears.send_command("SUBSCRIBE", self.channel())
                while True:
                    self.hear(await self._ears.read_response(
                        disable_decoding=True))
            except LOST_CONNECTION + (redis.ResponseError,) as error:
                await self._ears.disconnect()
                logger.info("wake-ups: %s", error)
                await asyncio.sleep(1.0)
