# SPDX-License-Identifier: MIT
"""Jobs of weir: Client adds, looks and deletes, Worker runs; weir.aio has both
for asyncio."""

from .client import (Added, AddedMany, Client, Error, Found, Full,
                     WrongKind)
from .worker import Fail, Job, Retry, Snooze, Worker

__all__ = ["Added", "AddedMany", "Client", "Error", "Fail", "Found", "Full",
           "Job", "Retry", "Snooze", "Worker", "WrongKind"]
