"""What a follower must have on its own disk before it says, by fetching on, that it has it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
    from protocol.errors import ErrorCode


def awaits_flushes(partition: Partition) -> bool:
    """Whether its leader waits for this replica's disk: `flush.messages` and `flush.replicas`."""
    durability = partition.durability
    return durability is not None and durability.is_for_all_replicas


def is_owing(partition: Partition) -> bool:
    """Whether to fetch on now would acknowledge more than the disk has."""
    durability = partition.durability
    return (
        durability is not None
        and durability.is_for_all_replicas
        and durability.limit < partition.log.log_end_offset
    )


async def until_flushed(partition: Partition) -> ErrorCode:
    """Wait until the disk has what is in the log now; NONE, or why it never will."""
    over: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

    def decided(code: ErrorCode) -> None:
        if not over.done():
            over.set_result(code)

    wait = partition.when_flushed(partition.log.log_end_offset, decided)
    try:
        return await over
    finally:
        wait.cancel()
