"""The group coordinators of this broker, one for each partition of `__consumer_offsets` it leads.

`BrokerServices.groups`.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from broker.coordinators.group_shard_runtime import GroupParts, GroupShardRuntime
from broker.coordinators.group_topics import GroupTopics
from broker.coordinators.shard_runtime import ShardServices, Stage
from broker.coordinators.shards import Shards, contained
from broker.metadata.streams_topics import StreamsTopics
from controller.topics.topic_names import GROUP_METADATA_TOPIC
from coordinator.consumer_groups.assignors.names import assignor_names
from coordinator.consumer_groups.settings import (
    NO_OVERRIDES,
    ConsumerGroupSettings,
    MigrationPolicy,
)
from coordinator.settings import GroupSettings
from coordinator.share_groups.settings import ShareGroupSettings
from coordinator.streams_groups.settings import StreamsGroupSettings
from protocol.errors import ApiError, ErrorCode
from protocol.uuids import UUID_BYTES, from_random_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from uuid import UUID

    from broker.metadata.metadata_cache import MetadataCache
    from broker.partitions.partition import Partition
    from broker.runtime.event_loop import BackgroundLoop
    from broker.runtime.timers import Cancellable
    from config.broker import BrokerConfig
    from coordinator.consumer_groups.settings import GroupOverrides
    from coordinator.records import OffsetsRecord

MINUTE_MS = 60_000


def group_settings(config: BrokerConfig, overrides: GroupOverrides) -> GroupSettings:
    """The settings of groups in a broker's configuration."""
    return GroupSettings(
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        max_size=config.group_max_size,
        offset_metadata_max_bytes=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * MINUTE_MS,
        consumer=ConsumerGroupSettings(
            session_timeout_ms=config.group_consumer_session_timeout_ms,
            heartbeat_interval_ms=config.group_consumer_heartbeat_interval_ms,
            max_size=config.group_consumer_max_size,
            assignment_interval_ms=config.group_consumer_assignment_interval_ms,
            assignors=assignor_names(config.group_consumer_assignors),
            pattern_refresh_interval_ms=config.group_consumer_regex_refresh_interval_ms,
            pattern_max_count=config.group_consumer_regex_max_count,
            pattern_max_length=config.group_consumer_regex_max_length,
            migration=MigrationPolicy(config.group_consumer_migration_policy.lower()),
            classic_max_size=config.group_max_size,
            overrides=overrides,
        ),
        streams=StreamsGroupSettings(
            session_timeout_ms=config.group_streams_session_timeout_ms,
            heartbeat_interval_ms=config.group_streams_heartbeat_interval_ms,
            max_size=config.group_streams_max_size,
            assignment_interval_ms=config.group_streams_assignment_interval_ms,
            initial_rebalance_delay_ms=config.group_streams_initial_rebalance_delay_ms,
            num_standby_replicas=config.group_streams_num_standby_replicas,
            rack_aware_assignment_tags=config.group_streams_rack_aware_assignment_tags,
            task_offset_interval_ms=config.group_streams_task_offset_interval_ms,
            acceptable_recovery_lag=config.group_streams_acceptable_recovery_lag,
            max_topology_size=config.group_streams_max_topology_size,
            max_tasks=config.group_streams_max_tasks,
            overrides=overrides,
        ),
        share=ShareGroupSettings(
            session_timeout_ms=config.group_share_session_timeout_ms,
            heartbeat_interval_ms=config.group_share_heartbeat_interval_ms,
            max_size=config.group_share_max_size,
            assignment_interval_ms=config.group_share_assignment_interval_ms,
            initialize_retry_interval_ms=config.group_share_initialize_retry_interval_ms,
            overrides=overrides,
        ),
    )


def new_member_id() -> str:
    """A random UUID in text form."""
    return str(from_random_bytes(secrets.token_bytes(UUID_BYTES)))


class GroupCoordinators(Shards[GroupShardRuntime]):
    """Shards of groups, and their periodic work."""

    def __init__(
        self,
        config: BrokerConfig,
        loop: BackgroundLoop,
        partition_count: Callable[[], int],
        metadata: MetadataCache,
        overrides: GroupOverrides = NO_OVERRIDES,
    ) -> None:
        """`partition_count` returns that of `__consumer_offsets`, now or once it is created.

        `overrides` are the configurations of single groups.
        """
        settings = self.settings = group_settings(config, overrides)
        parts = GroupParts(new_member_id, GroupTopics(metadata), loop)
        self.assignors = settings.consumer.assignors
        """The server-side assignors of consumer groups."""
        self.streams_topics = StreamsTopics()
        surroundings = ShardServices(loop.clock, loop.timers, config.offsets_commit_timeout_ms)

        def make(partition: Partition) -> GroupShardRuntime:
            return GroupShardRuntime(partition, surroundings, settings, parts)

        super().__init__(GROUP_METADATA_TOPIC, loop, make, partition_count)
        self._clean_up_interval_ms = config.offsets_retention_check_interval_ms
        self._clean_up_series: Cancellable | None = None

    def start(self) -> None:
        """Begin to expire offsets every `offsets.retention.check.interval.ms`."""
        self._clean_up_series = self.timers.every(
            self._clean_up_interval_ms, lambda: self.spawn(self.clean_up(), "group-offset-expiry")
        )

    def stop(self) -> None:
        """Refuse all parked requests, and stop serving."""
        if self._clean_up_series is not None:
            self._clean_up_series.cancel()
        super().stop()

    def shard_for_member(self, group_id: str) -> GroupShardRuntime:
        """As `shard_for`; raises INVALID_GROUP_ID for an empty name as well."""
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        return self.shard_for(group_id)

    # Clean-up

    async def clean_up(self) -> None:
        """Expire offsets and groups of all shards, in slices."""
        slices = self.slices()
        for shard in list(self.active_shards()):
            async for group_id in slices.each(list(shard.groups.group_ids)):
                if shard.stage is not Stage.ACTIVE:
                    break
                with contained(f"expiry of the offsets of group {group_id}"):
                    tombstones = shard.groups.expire_offsets(group_id, self.clock.now_ms())
                    if tombstones:
                        shard.forget(tombstones)

    def topics_deleted(self, topics: Collection[str]) -> None:
        """Forget the offsets of deleted topics, in the background.

        Those that are committed from now on are of a new topic of the name.
        """

        def forgotten(shard: GroupShardRuntime) -> Iterator[list[OffsetsRecord]]:
            end = shard.partition.log.log_end_offset
            return shard.groups.handle_topics_deleted(topics, end)

        self.forget(forgotten, "offsets of deleted topics")

    def share_topics_deleted(self, topic_ids: Collection[UUID]) -> None:
        """Forget that share groups had state of deleted topics, in the background."""
        self.forget(
            lambda shard: shard.groups.shares.handle_topics_deleted(topic_ids),
            "share groups of deleted topics",
        )
