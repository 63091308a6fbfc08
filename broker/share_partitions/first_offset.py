"""First offset of a share group in a partition that it has not consumed yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.partitions.log_search import searched
from broker.runtime.deferred import in_background
from coordinator.share_partitions.settings import ResetKind
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from broker.partitions.partition import Partition
    from broker.runtime.compute_pool import ComputePool
    from broker.runtime.deferred import Deferred
    from broker.runtime.event_loop import BackgroundLoop
    from coordinator.share_partitions.settings import AutoOffsetReset


class FirstOffsets:
    """`share.auto.offset.reset` at work."""

    def __init__(
        self,
        loop: BackgroundLoop,
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[object]],
        compute_pool: ComputePool,
    ) -> None:
        self._loop = loop
        self._spawn = spawn
        self._compute_pool = compute_pool

    def find(self, partition: Partition, reset: AutoOffsetReset) -> int | Deferred[int]:
        """The offset, now or later. Raises, or fails with, ApiError.

        Like other readers, share groups see up to the high watermark; it is OFFSET_NOT_AVAILABLE
        until a new leader knows it.
        """
        partition.check_leads()
        if reset.kind is ResetKind.EARLIEST:
            return partition.log.log_start_offset
        if partition.is_behind_its_epoch:
            raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE, "high watermark is not known yet")
        if reset.kind is ResetKind.LATEST:
            return partition.log.high_watermark
        since_ms = self._loop.clock.now_ms() - reset.back_ms
        search = self._search(partition, since_ms)
        return in_background(self._spawn, search, "first offset of a share group")

    async def _search(self, partition: Partition, since_ms: int) -> int:
        """Offset of the first record that is not older; without one, the end."""
        end = partition.log.high_watermark
        search = partition.log.reader.search_timestamp(since_ms)
        found = await searched(search, self._loop.slices(), self._compute_pool)
        return end if found is None else min(found.offset, end)
