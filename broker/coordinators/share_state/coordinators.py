"""The share coordinators of this broker: a shard for each partition of `__share_group_state`.

`CoordinatorServices.share_state` asks them, or other brokers'; handlers answer for other brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from broker.coordinators.group_topics import GroupTopics
from broker.coordinators.shard_runtime import ShardServices, Stage
from broker.coordinators.shards import Shards, contained
from broker.coordinators.share_state.shard_runtime import ShareStateShardRuntime
from broker.runtime.deferred import Deferred
from controller.topics.topic_names import SHARE_STATE_TOPIC
from coordinator.share_state.settings import ShareStateSettings
from protocol.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from uuid import UUID

    from broker.metadata.metadata_cache import MetadataCache
    from broker.partitions.partition import Partition
    from broker.runtime.event_loop import BackgroundLoop
    from broker.runtime.timers import Cancellable
    from config.broker import BrokerConfig
    from coordinator.ports import Reply
    from coordinator.share_state.effects import ShareStateEffects
    from coordinator.share_state.shard import ShareStateShard
    from coordinator.share_state.state import (
        SharePartition,
        StateChange,
        StateSummary,
        StoredState,
    )

AnswerT = TypeVar("AnswerT")


class ShareStateCoordinators(Shards[ShareStateShardRuntime]):
    """Shards of share state, and their periodic work.

    Each request is about one share-partition; its Deferred fails with ApiError, also
    NOT_COORDINATOR and COORDINATOR_LOAD_IN_PROGRESS.
    """

    def __init__(
        self,
        config: BrokerConfig,
        loop: BackgroundLoop,
        partition_count: Callable[[], int],
        metadata: MetadataCache,
    ) -> None:
        """`partition_count` returns how many partitions the topic has, or will have."""
        settings = ShareStateSettings(
            config.share_coordinator_snapshot_update_records_per_snapshot,
            config.share_coordinator_cold_partition_snapshot_interval_ms,
        )
        surroundings = ShardServices(
            loop.clock, loop.timers, config.share_coordinator_write_timeout_ms
        )
        topics = GroupTopics(metadata)

        def make(partition: Partition) -> ShareStateShardRuntime:
            return ShareStateShardRuntime(partition, surroundings, settings, topics)

        super().__init__(SHARE_STATE_TOPIC, loop, make, partition_count)
        self._config = config
        self._series: list[Cancellable] = []

    def start(self) -> None:
        """Begin to shorten the logs, now and then."""
        config = self._config
        self._series = [
            self.timers.every(
                config.share_coordinator_cold_partition_snapshot_interval_ms,
                lambda: self.spawn(self.snapshot_cold(), "share-state-snapshots"),
            ),
            self.timers.every(config.share_coordinator_state_topic_prune_interval_ms, self.prune),
        ]

    def stop(self) -> None:
        """Stop serving."""
        for series in self._series:
            series.cancel()
        super().stop()

    # Requests

    def initialise(
        self, partition: SharePartition, state_epoch: int, start_offset: int
    ) -> Deferred[None]:
        """Initialise the state of a share-partition."""
        return self._ask(
            partition,
            lambda shard, reply, now_ms: shard.handle_initialise(
                partition, state_epoch, start_offset, reply, now_ms
            ),
        )

    def read(self, partition: SharePartition, leader_epoch: int) -> Deferred[StoredState]:
        """Read for the leader of that epoch."""
        return self._ask(
            partition,
            lambda shard, reply, now_ms: shard.handle_read(partition, leader_epoch, reply, now_ms),
        )

    def write(self, partition: SharePartition, change: StateChange) -> Deferred[None]:
        """Store a change."""
        return self._ask(
            partition,
            lambda shard, reply, now_ms: shard.handle_write(partition, change, reply, now_ms),
        )

    def read_summary(self, partition: SharePartition) -> Deferred[StateSummary]:
        """Start offset and summary of a share-partition's state."""
        return self._ask(
            partition, lambda shard, reply, _: shard.handle_read_summary(partition, reply)
        )

    def delete(self, partition: SharePartition) -> Deferred[None]:
        """Forget a share-partition."""
        return self._ask(partition, lambda shard, reply, _: shard.handle_delete(partition, reply))

    def _ask(
        self,
        partition: SharePartition,
        decide: Callable[[ShareStateShard, Reply[ApiError | AnswerT], int], ShareStateEffects],
    ) -> Deferred[AnswerT]:
        reply: Deferred[ApiError | AnswerT] = Deferred()
        try:
            shard = self.shard_for(partition.coordinator_key)
        except ApiError as error:
            reply.complete(error)
        else:
            shard.run(decide(shard.share_states, reply, self.clock.now_ms()))
        return reply.map(_unless_refused)

    # Clean-up

    def prune(self) -> None:
        """Delete records that the logs need not keep."""
        for shard in self.active_shards():
            with contained(f"pruning of {shard.partition.topic}-{shard.partition.index}"):
                shard.prune()

    async def snapshot_cold(self) -> None:
        """Rewrite share states that have not been written for long, in slices."""
        slices = self.slices()
        for shard in list(self.active_shards()):
            snapshots = shard.share_states.snapshot_cold(self.clock.now_ms())
            async for some in slices.each(snapshots):
                if shard.stage is not Stage.ACTIVE:
                    break
                shard.forget(some)

    def topics_deleted(self, topic_ids: Collection[UUID]) -> None:
        """Forget the share-partitions of deleted topics, in the background."""
        self.forget(
            lambda shard: shard.share_states.handle_topics_deleted(topic_ids),
            "share state of deleted topics",
        )


def _unless_refused(answer: ApiError | AnswerT) -> AnswerT:
    if isinstance(answer, ApiError):
        raise answer
    return answer
