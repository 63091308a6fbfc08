"""Records that a follower must have on its own disk before its next fetch acknowledges them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
    from protocol.errors import ErrorCode


def awaits_flushes(partition: Partition) -> bool:
    """Return whether its leader awaits its disk: `flush.messages` and `flush.replicas`."""
    durability = partition.durability
    return durability is not None and durability.is_for_all_replicas


def is_owing(partition: Partition) -> bool:
    """Return whether the next fetch would acknowledge more records than the disk has."""
    durability = partition.durability
    return (
        durability is not None
        and durability.is_for_all_replicas
        and durability.limit < partition.log.log_end_offset
    )


async def until_flushed(partition: Partition) -> ErrorCode:
    """Wait until the current log is on the disk; NONE, or the reason why it never will be."""
    over: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

    def decided(code: ErrorCode) -> None:
        if not over.done():
            over.set_result(code)

    wait = partition.when_flushed(partition.log.log_end_offset, decided)
    try:
        return await over
    finally:
        wait.cancel()
