# SPDX-License-Identifier: MIT
"""The client and the worker for asyncio."""

import asyncio
import contextlib
import inspect
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Optional

from . import client as blocking
from .worker import Engine, raise_result

TURN = 0.005  # seconds after which handlers that await nothing let others on


def awaited(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        if self._process != blocking.process():  # its thread stayed there
            self._pool = ThreadPoolExecutor(1)
            self._process = blocking.process()
        return asyncio.get_running_loop().run_in_executor(
            self._pool, lambda: getattr(self._client, name)(*args, **options))
    return method


class Client(blocking.Shared):
    """The methods of weir.Client, to be awaited; a thread does them."""

    def __init__(self, client: Any, prefix: str = "weir",
                 timeout: Optional[float] = None):
        self._client = blocking.Client(client, prefix, timeout)
        self._pool, self._process = ThreadPoolExecutor(1), blocking.process()

    add, add_many, counts, look, delete, close = map(
        awaited, "add add_many counts look delete close".split())


class Worker(Engine):
    """weir.Worker; handlers are coroutine functions, `concurrency` of which run
    at a time. One that runs too long, or whose lease is lost, is cancelled."""

    _is_async = True

    def __init__(self, client: Any, handlers: Any, *, concurrency: int = 100,
                 **options: Any):
        super().__init__(client, handlers, concurrency=concurrency, **options)

    async def run(self, signals: bool = True) -> None:
        """Until stop(), or SIGTERM or SIGINT if `signals`. If run() is
        cancelled, handlers are, too, and their jobs go back."""
        self._enter()
        self._ready = asyncio.Queue()
        await self._serve(signals, *(self._run_jobs() for _ in
                                     range(self._concurrency)))

    async def _run_jobs(self) -> None:
        turn, task = time.monotonic(), asyncio.current_task()
        while await self._ready.get():
            for job in self._jobs():
                job._task = task
                try:
                    result = job._claim.lane.handler(job)
                    if not inspect.isawaitable(result):
                        raise TypeError("the handler returned no coroutine: "
                                        "write async def")
                    raise_result(await result)
                except BaseException as error:  # it was cancelled, perhaps
                    self._leave_fork(error)
                    await self._end_task(job, error)
                else:
                    self._leave_fork()
                    self._end(job, "done")
                if job.is_lost:
                    getattr(task, "uncancel", int)()  # Python 3.11
                if time.monotonic() - turn > TURN:
                    await asyncio.sleep(0)
                    turn = time.monotonic()

    async def _end_task(self, job: Any, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError) and not job.is_lost:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)  # run() is cancelled as well, perhaps
            if self._is_cut:
                self._end(job, "back")
        self._end_raised(job, error)
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise error
