"""The group coordinators of this broker: a shard for each partition of `__consumer_offsets` led.

`Broker.groups`. Handlers ask it for the shard of a group; it answers with an error code while that
shard is loading or lives elsewhere. Shards come and go with the leadership of their partitions.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import TYPE_CHECKING

from broker.coordinators.local_shard import LocalShard, Stage, Surroundings
from controller.topic_names import GROUP_METADATA_TOPIC
from coordinator.partitioning import partition_for
from coordinator.settings import GroupSettings
from protocol.errors import ApiError, ErrorCode
from protocol.uuids import UUID_BYTES, from_random_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterator
    from typing import Any

    from broker.clock import Clock
    from broker.partition import Partition
    from broker.timers import Cancellable, Timers
    from config.broker import BrokerConfig

logger = logging.getLogger(__name__)

SLICE_MS = 5
"""How long loading or cleaning up may keep the event loop before clients are served again."""

MINUTE_MS = 60_000


def group_settings(config: BrokerConfig) -> GroupSettings:
    """What a broker's configuration says about groups."""
    return GroupSettings(
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        max_size=config.group_max_size,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * MINUTE_MS,
    )


def new_member_id() -> str:
    """A random UUID in text form."""
    return str(from_random_bytes(secrets.token_bytes(UUID_BYTES)))


class GroupCoordinators:
    """Shards by partition. `partition_changed` is the listener for changes of leadership."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        timers: Timers,
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
        partition_count: Callable[[], int],
    ) -> None:
        """`partition_count` tells how many partitions `__consumer_offsets` has, or will have."""
        self._config = config
        self._surroundings = Surroundings(
            settings=group_settings(config),
            new_id=new_member_id,
            clock=clock,
            timers=timers,
            commit_timeout_ms=config.offsets_commit_timeout_ms,
        )
        self._clock = clock
        self._timers = timers
        self._spawn = spawn
        self._partition_count = partition_count
        self._shards: dict[int, LocalShard] = {}
        self._clean_up_series: Cancellable | None = None
        self._all_loaded = asyncio.Event()
        self._all_loaded.set()

    def start(self) -> None:
        """Begin to expire offsets every `offsets.retention.check.interval.ms`."""
        interval_ms = self._config.offsets_retention_check_interval_ms
        self._clean_up_series = self._timers.every(
            interval_ms, lambda: self._spawn(self.clean_up(), "group-offset-expiry")
        )

    def stop(self) -> None:
        """Send everybody away who is parked; nothing is served any more."""
        if self._clean_up_series is not None:
            self._clean_up_series.cancel()
        for shard in self._shards.values():
            shard.unload()
        self._shards.clear()

    # Leadership

    def partition_changed(self, partition: Partition, is_leader: bool) -> None:
        """The role of a replica changed; other topics' are ignored."""
        if partition.topic != GROUP_METADATA_TOPIC:
            return
        old = self._shards.pop(partition.index, None)
        if old is not None:
            old.unload()
        if not is_leader:
            return
        shard = LocalShard(partition, self._surroundings)
        self._shards[partition.index] = shard
        if partition.log.log_start_offset == partition.log.log_end_offset:
            shard.activate()
        else:
            self._all_loaded.clear()
            self._spawn(self._load(shard), f"load-groups-{partition.index}")

    async def wait_until_loaded(self) -> None:
        """Return once no shard is loading."""
        await self._all_loaded.wait()

    async def _load(self, shard: LocalShard) -> None:
        partition = shard.partition
        started_ms = self._clock.monotonic_ms()
        try:
            await self._replay(shard)
        except Exception:
            logger.exception(
                "%s-%d: groups could not be loaded; they stay without coordinator",
                partition.topic,
                partition.index,
            )
            shard.unload()
        if shard.stage is Stage.LOADING:
            shard.activate()
            logger.info(
                "%s-%d: %d groups loaded in %d ms",
                partition.topic,
                partition.index,
                len(shard.groups.group_ids),
                self._clock.monotonic_ms() - started_ms,
            )
        if not self.is_loading:
            self._all_loaded.set()

    async def _replay(self, shard: LocalShard) -> None:
        slice_ms = self._clock.monotonic_ms()
        for _ in shard.replay_log():
            if self._clock.monotonic_ms() - slice_ms >= SLICE_MS:
                await _give_way()
                slice_ms = self._clock.monotonic_ms()
            if shard.stage is Stage.UNLOADED:
                return

    # Lookups

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that a group belongs to."""
        return partition_for(group_id, self._partition_count())

    def shard_for(self, group_id: str) -> LocalShard:
        """The shard that coordinates a group.

        Raises ApiError: COORDINATOR_LOAD_IN_PROGRESS, or NOT_COORDINATOR if it lives elsewhere.
        """
        shard = self._shards.get(self.partition_for(group_id))
        if shard is not None and shard.stage is Stage.ACTIVE:
            return shard
        if shard is not None and shard.stage is Stage.LOADING:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        raise ApiError(ErrorCode.NOT_COORDINATOR)

    def shard_for_member(self, group_id: str) -> LocalShard:
        """Like `shard_for`, for the requests that need a group with a name: INVALID_GROUP_ID."""
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        return self.shard_for(group_id)

    @property
    def is_loading(self) -> bool:
        """Whether some shard is not up yet."""
        return any(shard.stage is Stage.LOADING for shard in self._shards.values())

    def active_shards(self) -> Iterator[LocalShard]:
        """All shards that serve."""
        return (shard for shard in self._shards.values() if shard.stage is Stage.ACTIVE)

    # Clean-up

    async def clean_up(self) -> None:
        """Expire offsets and groups of all shards, giving way to clients in between."""
        slice_ms = self._clock.monotonic_ms()
        for shard in list(self.active_shards()):
            for group_id in list(shard.groups.group_ids):
                if shard.stage is not Stage.ACTIVE:
                    break
                tombstones = shard.groups.expire_offsets(group_id, self._clock.now_ms())
                if tombstones:
                    shard.forget(tombstones)
                if self._clock.monotonic_ms() - slice_ms >= SLICE_MS:
                    await _give_way()
                    slice_ms = self._clock.monotonic_ms()

    def topics_deleted(self, topics: Collection[str]) -> None:
        """Have the offsets of topics that are no more forgotten, in the background."""
        self._spawn(self.forget_topics(topics), "offsets of deleted topics")

    async def forget_topics(self, topics: Collection[str]) -> None:
        """Forget the offsets of topics, giving way to clients in between."""
        slice_ms = self._clock.monotonic_ms()
        for shard in list(self.active_shards()):
            for tombstones in shard.groups.handle_topics_deleted(topics):
                if shard.stage is not Stage.ACTIVE:
                    break
                shard.forget(tombstones)
                if self._clock.monotonic_ms() - slice_ms >= SLICE_MS:
                    await _give_way()
                    slice_ms = self._clock.monotonic_ms()


async def _give_way() -> None:
    await asyncio.sleep(0)  # noqa: TID251  (gives way to others, takes no time)
