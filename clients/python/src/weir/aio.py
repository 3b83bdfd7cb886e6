# SPDX-License-Identifier: MIT
"""The client and the worker for asyncio."""

import asyncio
import functools
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Set

from . import client as blocking
from .worker import Engine, Job

TURN = 0.005  # seconds after which handlers that await nothing let others on


def awaited(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        return asyncio.get_running_loop().run_in_executor(
            self._pool, functools.partial(getattr(self._client, name), *args,
                                          **options))
    return method


class Client:
    """The methods of weir.Client, to be awaited; a thread does them."""

    def __init__(self, client: Any, prefix: str = "weir"):
        self._client = blocking.Client(client, prefix)
        self._pool = ThreadPoolExecutor(1)

    add, add_many, counts, look, delete, close = map(
        awaited, "add add_many counts look delete close".split())


class Worker(Engine):
    """weir.Worker; handlers are coroutine functions, `concurrency` of which run
    at a time. One that runs too long, or whose lease is lost, is cancelled."""

    def __init__(self, client: Any, handlers: Any, *, concurrency: int = 100,
                 **options: Any):
        super().__init__(client, handlers, concurrency=concurrency, **options)
        self._runners: Set[Any] = set()
        self._is_over = False

    async def run(self, signals: bool = True) -> None:
        """Until stop(), or SIGTERM or SIGINT where it is to hear these."""
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGTERM, signal.SIGINT) if signals else ()
        for number in numbers:
            loop.add_signal_handler(number, self.stop)
        try:
            await self._serve()
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
            self._is_over = True
            for task in self._runners:
                task.cancel()
            await asyncio.gather(*self._runners, return_exceptions=True)

    def _start_runners(self) -> None:
        for _ in range(min(len(self._waiting),
                           self._concurrency - len(self._runners))):
            task = asyncio.ensure_future(self._run_tasks())
            self._runners.add(task)
            task.add_done_callback(self._runners.discard)

    def _lose(self, job: Job) -> None:
        super()._lose(job)
        job._task.cancel()

    async def _run_tasks(self) -> None:
        turn = time.monotonic()
        while self._waiting:
            job, error = self._next_job(), None
            if not job:
                continue
            job._task = asyncio.current_task()
            try:
                await job._claim.lane.handler(job)
            except asyncio.CancelledError as raised:
                if self._is_over:
                    break
                if job.is_lost:
                    getattr(job._task, "uncancel", int)()  # Python 3.11
                error = raised  # a handler's own
            except Exception as raised:
                error = raised
            self._end(job, error)
            if time.monotonic() - turn > TURN:
                await asyncio.sleep(0)
                turn = time.monotonic()
        # In this step: a job that comes in the next one has its place.
        self._runners.discard(asyncio.current_task())
