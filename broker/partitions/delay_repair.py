"""Rebuilds the delay index of a segment while the log goes on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from broker.runtime.slices import Slices
    from storage.errors import DamagedDelaysError
    from storage.log.log import Log

MOST_ROUNDS: Final = 8
"""So often at most it is waited for the disk, because the log was flushed meanwhile."""


async def rebuild_delays(
    log: Log,
    damage: DamagedDelaysError,
    slices: Slices,
    disk_threads: Executor,
    is_over: Callable[[], bool],
) -> None:
    """Return once it is done or obsolete: once it `is_over`, or the segment was changed.

    Raises ApiError if it cannot be done, mostly because the log itself is damaged.
    """
    loop = asyncio.get_running_loop()
    rebuild = log.delays.rebuild(damage.base_offset)
    try:
        for _ in range(MOST_ROUNDS):
            for _ in rebuild.steps():
                await slices.give_way()
                if is_over():
                    return
            await loop.run_in_executor(disk_threads, rebuild.sync)
            if is_over():
                return
            for _ in rebuild.steps():
                await slices.give_way()
                if is_over():
                    return
            rebuild.put_in_place()
            if rebuild.is_over:
                await loop.run_in_executor(disk_threads, rebuild.sync)
                return
    finally:
        rebuild.close()
    text = f"{log.name} is flushed faster than its delay index can be made anew"
    raise ApiError(ErrorCode.REQUEST_TIMED_OUT, text)
