# SPDX-License-Identifier: MIT
"""Jobs of weir: Client adds, looks and deletes, Worker runs; weir.aio has both
for asyncio."""

from .calls import Added, AddedMany, Found
from .jobs import Fail, Job, Retry, Snooze
from .sync import Client, Worker
from .wire import Error, Full, WrongKind

__all__ = ["Added", "AddedMany", "Client", "Error", "Fail", "Found", "Full",
           "Job", "Retry", "Snooze", "Worker", "WrongKind"]
