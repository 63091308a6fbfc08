"""All shards of one internal topic that this broker leads; they come and go with leadership.

Handlers ask for the shard of a key; the answer is an error code while that shard is loading or
lives elsewhere. `groups` and `transactions` are the two kinds.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from broker.coordinators.local_shard import LocalShard, Stage
from coordinator.partitioning import partition_for
from protocol.errors import ApiError, ErrorCode
from storage.errors import ExhaustedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.loop import Loop
    from broker.partition import Partition

logger = logging.getLogger(__name__)

RELOAD_MS = 100
"""Pause before a log is read again that could not be opened for want of descriptors."""

ShardT = TypeVar("ShardT", bound=LocalShard[Any])


@contextmanager
def contained(work: str) -> Iterator[None]:
    """Let what one group or transaction raises cost the others of a pass nothing: it is logged."""
    try:
        yield
    except Exception:
        logger.exception("%s failed", work)


class Shards(Generic[ShardT]):
    """Shards by partition. `partition_changed` is the listener for changes of leadership."""

    def __init__(
        self,
        topic: str,
        loop: Loop,
        make: Callable[[Partition], ShardT],
        partition_count: Callable[[], int],
    ) -> None:
        """`partition_count` tells how many partitions the topic has, or will have."""
        self.clock, self.timers, self.spawn, self.slices = loop
        self._topic = topic
        self._make = make
        self._partition_count = partition_count
        self._shards: dict[int, ShardT] = {}
        self._all_loaded = asyncio.Event()
        self._all_loaded.set()

    def stop(self) -> None:
        """Send everybody away who is parked; nothing is served any more."""
        for shard in self._shards.values():
            shard.unload()
        self._shards.clear()

    # Leadership

    def partition_changed(self, partition: Partition, is_leader: bool) -> None:
        """The role of a replica changed; other topics' are ignored."""
        if partition.topic != self._topic:
            return
        old = self._shards.pop(partition.index, None)
        if old is not None:
            old.unload()
        if not is_leader:
            return
        shard = self._make(partition)
        self._shards[partition.index] = shard
        if partition.log.log_start_offset == partition.log.log_end_offset:
            shard.activate()
        else:
            self._all_loaded.clear()
            self.spawn(self._load(shard), f"load {self._topic}-{partition.index}")

    async def wait_until_loaded(self) -> None:
        """Return once no shard is loading."""
        await self._all_loaded.wait()

    async def _load(self, shard: ShardT) -> None:
        name = f"{self._topic}-{shard.partition.index}"
        started_ms = self.clock.monotonic_ms()
        try:
            await self._replay(shard)
        except ExhaustedError as error:
            logger.warning("%s is loaded again soon: %s", name, error)
            self.timers.schedule(RELOAD_MS, partial(self._load_again, shard))
            return
        except Exception:
            logger.exception("%s could not be loaded; it stays without coordinator", name)
            shard.unload()
        if shard.stage is Stage.LOADING:
            shard.activate()
            took_ms = self.clock.monotonic_ms() - started_ms
            logger.info("%s: %s loaded in %d ms", name, shard.content, took_ms)
        if not self.is_loading:
            self._all_loaded.set()

    def _load_again(self, shard: ShardT) -> None:
        """Begin with an empty shard, unless leadership was lost meanwhile."""
        partition = shard.partition
        if self._shards.get(partition.index) is shard:
            again = self._shards[partition.index] = self._make(partition)
            self.spawn(self._load(again), f"load {self._topic}-{partition.index}")

    async def _replay(self, shard: ShardT) -> None:
        async for _ in self.slices().each(shard.replay_log()):
            if shard.stage is Stage.UNLOADED:
                return

    # Lookups

    def partition_for(self, key: str) -> int:
        """The partition of the topic that a group or transactional id belongs to."""
        return partition_for(key, self._partition_count())

    def shard_for(self, key: str) -> ShardT:
        """The shard that coordinates a group or transactional id.

        Raises ApiError: COORDINATOR_LOAD_IN_PROGRESS, or NOT_COORDINATOR if it lives elsewhere.
        """
        return self.shard_at(self.partition_for(key))

    def shard_at(self, index: int) -> ShardT:
        """The shard of a partition of the topic. Raises ApiError as `shard_for` does."""
        shard = self._shards.get(index)
        if shard is not None and shard.stage is Stage.ACTIVE:
            return shard
        if shard is not None and shard.stage is Stage.LOADING:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        raise ApiError(ErrorCode.NOT_COORDINATOR)

    @property
    def is_loading(self) -> bool:
        """Whether some shard is not up yet."""
        return any(shard.stage is Stage.LOADING for shard in self._shards.values())

    def active_shards(self) -> Iterator[ShardT]:
        """All shards that serve."""
        return (shard for shard in self._shards.values() if shard.stage is Stage.ACTIVE)
