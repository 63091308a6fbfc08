"""The shards of one internal topic on this broker; they come and go with leadership.

Handlers look up the shard of a key, and get an error while it is loading or another broker's.
`groups` and `transactions` are the two kinds.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from broker.coordinators.shard_runtime import ShardRuntime, Stage
from broker.runtime.supervision import FIRST_PAUSE_MS, LONGEST_PAUSE_MS
from coordinator.partitioner import partition_for
from protocol.errors import ApiError, ErrorCode
from storage.errors import DamagedFileError, ExhaustedError, LogDirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker.partitions.partition import Partition
    from broker.runtime.event_loop import BackgroundLoop

logger = logging.getLogger(__name__)

ShardT = TypeVar("ShardT", bound=ShardRuntime[Any])


@contextmanager
def contained(work: str) -> Iterator[None]:
    """Log an error of one group or transaction, so that a pass goes on with the others."""
    try:
        yield
    except Exception:
        logger.exception("%s failed", work)


class Shards(Generic[ShardT]):
    """Shards by partition. `partition_changed` listens for changes of leadership."""

    def __init__(
        self,
        topic: str,
        loop: BackgroundLoop,
        make: Callable[[Partition], ShardT],
        partition_count: Callable[[], int],
    ) -> None:
        """`partition_count` returns how many partitions the topic has, or will have."""
        self.clock, self.timers, self.spawn, self.slices, self._note = loop
        self._topic = topic
        self._make = make
        self._partition_count = partition_count
        self._shards: dict[int, ShardT] = {}
        self.step_reached: Callable[[str], None] | None = None
        """Called with the steps that new shards have in their logs, for tests."""

    def stop(self) -> None:
        """Refuse all parked requests, and stop serving."""
        for index, shard in self._shards.items():
            with contained(f"unloading {self._topic}-{index}"):
                shard.unload()
        self._shards.clear()

    # Leadership

    def partition_changed(self, partition: Partition, is_leader: bool) -> None:
        """The role of a replica has changed; those of other topics are ignored."""
        if partition.topic != self._topic:
            return
        old = self._shards.pop(partition.index, None)
        if old is not None:
            with contained(f"unloading {self._topic}-{partition.index}"):
                old.unload()
        if is_leader:
            self._begin(partition, FIRST_PAUSE_MS)

    def _begin(self, partition: Partition, pause_ms: int, failed: ShardT | None = None) -> None:
        """Load a shard, at once if its log is empty; retry after the pause if that fails.

        It takes over the pending work of one that has `failed` to load.
        """
        shard = self._shards[partition.index] = self._make(partition)
        if failed is not None:
            shard.once_active = failed.once_active
        shard.step_reached = self.step_reached
        if partition.log.log_start_offset == partition.log.log_end_offset:
            self._activate(shard, pause_ms)
        else:
            self.spawn(self._load(shard, pause_ms), f"load {self._topic}-{partition.index}")

    async def _load(self, shard: ShardT, pause_ms: int) -> None:
        started_ms = self.clock.monotonic_ms()
        try:
            await self._replay(shard)
        except Exception as error:  # noqa: BLE001 - reported
            self._load_failed(shard, error, pause_ms)
        else:
            if shard.stage is Stage.LOADING and self._activate(shard, pause_ms):
                took_ms = self.clock.monotonic_ms() - started_ms
                name = f"{self._topic}-{shard.partition.index}"
                logger.info("%s: loaded %s in %d ms", name, shard.content, took_ms)

    def _activate(self, shard: ShardT, pause_ms: int) -> bool:
        try:
            shard.activate()
        except Exception as error:  # noqa: BLE001 - reported
            self._load_failed(shard, error, pause_ms)
            return False
        return True

    def _load_failed(self, shard: ShardT, error: Exception, pause_ms: int) -> None:
        """Log the failure, and retry unless only an operator can mend it.

        Clients wait while descriptors are missing. After an unexpected error they are refused until
        the next attempt, since listings of all groups wait for shards that are loading.
        """
        name = f"{self._topic}-{shard.partition.index}"
        if self._shards.get(shard.partition.index) is not shard:
            return  # it belongs to a leadership that has ended
        if isinstance(error, ExhaustedError) and shard.stage is Stage.LOADING:
            if pause_ms == FIRST_PAUSE_MS:
                logger.warning("%s: loading failed, trying again: %s", name, error)
        else:
            with contained(f"unloading {name}"):
                shard.unload()
            if isinstance(error, DamagedFileError | LogDirectoryError):
                logger.error(
                    "%s has no coordinator until its leader changes or the broker starts again, "
                    "as it could not be loaded: %s",
                    name,
                    error,
                )
                return
            self._note(f"loading {name}", error, "coordinator loading")
        self.timers.schedule(pause_ms, partial(self._begin_again, shard, pause_ms))

    def _begin_again(self, shard: ShardT, pause_ms: int) -> None:
        """Begin with an empty shard, unless leadership was lost since."""
        if self._shards.get(shard.partition.index) is shard:
            self._begin(shard.partition, min(2 * pause_ms, LONGEST_PAUSE_MS), shard)

    # Clean-up

    def forget(self, forgotten: Callable[[ShardT], Iterator[Sequence[Any]]], name: str) -> None:
        """Have each shard append what `forgotten` yields for it, in slices, as tasks of that name.

        `forgotten` is called now, or for a loading shard before it serves; its iterator is consumed
        later.
        """

        def spawn(shard: ShardT) -> None:
            self.spawn(self._forget(shard, forgotten(shard)), name)

        for shard in self._shards.values():
            shard.when_active(spawn)

    async def _forget(self, shard: ShardT, forgotten: Iterator[Sequence[Any]]) -> None:
        async for records in self.slices().each(forgotten):
            if shard.stage is not Stage.ACTIVE:
                return
            shard.forget(records)

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
        """Return whether any shard is loading."""
        return any(shard.stage is Stage.LOADING for shard in self._shards.values())

    def active_shards(self) -> Iterator[ShardT]:
        """The shards that serve requests."""
        return (shard for shard in self._shards.values() if shard.stage is Stage.ACTIVE)
