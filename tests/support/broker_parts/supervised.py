"""Supervision of tasks that a test owns."""

from __future__ import annotations

import asyncio

from broker.runtime.clock import SystemClock
from broker.runtime.supervision import Supervision
from broker.runtime.timers import Timers


def supervision(timers: Timers | None = None) -> Supervision:
    """Supervision on the running loop; its tasks are ended by `end`."""
    loop = asyncio.get_running_loop()
    return Supervision(loop, timers or Timers(loop), SystemClock())


async def end(supervised: Supervision) -> None:
    """Cancel all tasks and wait until they have ended."""
    tasks = list(supervised._tasks)
    supervised.close()
    await asyncio.gather(*tasks, return_exceptions=True)
