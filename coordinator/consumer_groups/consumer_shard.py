"""The consumer groups of one partition of `__consumer_offsets`: part of `coordinator.shard`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.consumer_groups import listing
from coordinator.consumer_groups.group import ConsumerGroup
from coordinator.consumer_groups.groups import ConsumerGroups
from coordinator.consumer_groups.heartbeats.departures import Departures
from coordinator.consumer_groups.heartbeats.heartbeat import Heartbeats
from coordinator.consumer_groups.records import group_tombstones
from coordinator.consumer_groups.shard_parts import ShardParts
from coordinator.consumer_groups.topics import TopicHashes
from coordinator.consumer_groups.watches import Watches
from coordinator.effects import Effects
from coordinator.offsets.offset_store import NO_EXPIRY_MS
from coordinator.records import offset_tombstone

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from coordinator.consumer_groups.heartbeats.heartbeat import HeartbeatCaller
    from coordinator.consumer_groups.settings import ConsumerGroupSettings
    from coordinator.consumer_groups.topics import Topics
    from coordinator.offsets.offset_store import OffsetStore
    from coordinator.ports import MemberIds, Reply, Timers
    from coordinator.records import OffsetsRecord
    from protocol.messages.consumer_groups import (
        ConsumerGroupDescribeResponse,
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )


class GroupRegistry:
    """What the shard as a whole has to say about groups of both kinds."""

    def __init__(
        self,
        created: Callable[[str], None],
        removed: Callable[[str], None],
        to_replace: Callable[[ConsumerGroupHeartbeatRequest], list[OffsetsRecord]],
    ) -> None:
        """`created` and `removed` hear of groups.

        `to_replace` returns what has to be stored so that the group of a request may be a consumer
        group, or raises ApiError: a classic group may have its id.
        """
        self.created = created
        self.removed = removed
        self.to_replace = to_replace


class ConsumerShard:
    """Consumer groups, all decisions about them, and their timers."""

    def __init__(
        self,
        settings: ConsumerGroupSettings,
        timers: Timers,
        new_id: MemberIds,
        topics: Topics,
        registry: GroupRegistry,
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._registry = registry
        self._watches = Watches(settings, timers)
        self._hashes = TopicHashes(topics)
        self.groups = ConsumerGroups(registry.created, self._on_removed)
        parts = ShardParts(settings, self.groups, topics, self._hashes, self._watches, new_id)
        self._departures = Departures(parts)
        self._heartbeats = Heartbeats(parts, self._group_for)

    def on_loaded(self, now_ms: int) -> None:
        """The log has been replayed: members' sessions begin."""
        for group in self.groups:
            if group.members:
                self._watches.loaded(group, now_ms)

    def on_unloaded(self) -> None:
        """The shard goes to another broker, or this one stops."""
        self._watches.clear()
        self.groups.clear()

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        caller: HeartbeatCaller,
        reply: Reply[ConsumerGroupHeartbeatResponse],
        now_ms: int,
    ) -> Effects:
        """Answer a ConsumerGroupHeartbeat."""
        return self._heartbeats.heartbeat(request, caller, reply, now_ms)

    def expire(self, group_id: str, now_ms: int) -> Effects:
        """A group's timer went off."""
        group = self.groups.find(group_id)
        if group is None:
            self._watches.forget(group_id)
            return Effects()
        return self._departures.expire(group, now_ms)

    def describe(
        self, group: ConsumerGroup
    ) -> Generator[None, None, ConsumerGroupDescribeResponse.Group]:
        """One group and its members, in steps."""
        return listing.described(group, self._topics, self._settings.assignors[0])

    def prepare_hash(self, topic: str) -> None:
        """Compute the hash of a topic that a heartbeat is about to name."""
        self._hashes.prepare(topic)

    def _group_for(self, request: ConsumerGroupHeartbeatRequest, effects: Effects) -> ConsumerGroup:
        group = self.groups.find(request.group_id)
        if group is None:
            effects.records += self._registry.to_replace(request)
            group = ConsumerGroup(request.group_id)
        return group

    def _on_removed(self, group: ConsumerGroup) -> None:
        self._watches.forget(group.group_id)
        self._registry.removed(group.group_id)


def expired_offsets(
    group: ConsumerGroup, store: OffsetStore, retention_ms: int, now_ms: int
) -> list[OffsetsRecord]:
    """Tombstones for offsets past their retention, and for a group that this leaves empty."""
    spared = group.subscriptions.topics
    places = store.places_of(group.group_id)
    records = [
        offset_tombstone(group.group_id, topic, partition)
        for topic, partition, committed in store.partitions_of(group.group_id)
        if topic not in spared
        and not store.pending.is_pending(group.group_id, topic, partition)
        and (
            now_ms >= committed.expire_timestamp_ms
            if committed.expire_timestamp_ms != NO_EXPIRY_MS
            else now_ms - committed.commit_timestamp_ms >= retention_ms
        )
    ]
    if not group.members and len(records) == len(places):
        records += group_tombstones(group)
    return records
