"""The consumer groups of one partition of `__consumer_offsets`: part of `coordinator.shard`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.consumer_groups import listing
from coordinator.consumer_groups.classic_members.joins import ClassicJoins
from coordinator.consumer_groups.classic_members.requests import ClassicRequests
from coordinator.consumer_groups.classic_members.upgrade import upgrade
from coordinator.consumer_groups.group import ConsumerGroup
from coordinator.consumer_groups.groups import ConsumerGroups
from coordinator.consumer_groups.heartbeats.departures import Departures
from coordinator.consumer_groups.heartbeats.heartbeat import Heartbeats
from coordinator.consumer_groups.member import JOINING_EPOCH
from coordinator.consumer_groups.records import group_tombstones
from coordinator.consumer_groups.shard_parts import ShardParts
from coordinator.consumer_groups.watches import ConsumerWatch, ConsumerWatches
from coordinator.effects import Effects
from coordinator.groups.states import GroupState
from coordinator.offsets.member_commits import (
    check_commit,
    check_fetch,
    check_transactional_commit,
)
from coordinator.ports import TimerKind
from coordinator.records import CONSUMER_GROUP_KEYS
from coordinator.topics import TopicHashes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from coordinator.consumer_groups.heartbeats.request import HeartbeatCaller
    from coordinator.consumer_groups.settings import ConsumerGroupSettings
    from coordinator.group_kind import CommittedPartition, Committing, KindPorts
    from coordinator.ports import Reply, TimerKey
    from coordinator.records import KeyOfKind, OffsetsRecord
    from protocol.messages.consumer_groups import (
        ConsumerGroupDescribeResponse,
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )
    from protocol.messages.groups import ListGroupsResponse
    from protocol.schema import Coded


class ConsumerShard:
    """Consumer groups, all decisions about them, and their timers. A `GroupKind`."""

    name = listing.CONSUMER_TYPE
    key_classes = CONSUMER_GROUP_KEYS
    timers = (TimerKind.CONSUMER_GROUP,)

    def __init__(self, settings: ConsumerGroupSettings, ports: KindPorts) -> None:
        timers, new_id, topics, self._registry = ports
        downgraded = self._registry.downgraded
        self._settings = settings
        self._topics = topics
        self._watches = ConsumerWatches(settings, timers, TimerKind.CONSUMER_GROUP, ConsumerWatch)
        self._hashes = TopicHashes(topics)
        self.groups = ConsumerGroups(self._registry.created, self._on_removed)
        parts = ShardParts(settings, self.groups, topics, self._hashes, self._watches, new_id)
        self._parts = parts
        self._departures = Departures(parts, downgraded)
        self._heartbeats = Heartbeats(parts, self._group_for, self._departures)
        self.joins = ClassicJoins(parts, self._heartbeats, self._departures, downgraded)
        self.classic_requests = ClassicRequests(parts, self._departures)

    def on_loaded(self, now_ms: int) -> None:
        """The log has been replayed: members' sessions begin."""
        for group in self.groups:
            if not group.members:
                continue
            self._watches.loaded(group, now_ms)
            if group.classic_count:
                self._begin_classic_sessions(group, now_ms)

    def on_unloaded(self) -> None:
        """The shard goes to another broker, or this one stops."""
        self._watches.clear()
        self.groups.clear()

    def expire(self, key: TimerKey, now_ms: int) -> Effects:
        """A group's timer went off."""
        group = self.groups.find(key.group_id)
        if group is None:
            self._watches.forget(key.group_id)
            return Effects()
        return self._departures.expire(group, now_ms)

    # GroupKind, of one group and of all

    @property
    def group_ids(self) -> Collection[str]:
        """All consumer groups."""
        return [group.group_id for group in self.groups]

    def __contains__(self, group_id: object) -> bool:
        return group_id in self.groups

    def replay(self, key: KeyOfKind, value: Coded | None) -> None:
        """Apply one record."""
        assert isinstance(key, CONSUMER_GROUP_KEYS), "the key of another kind of group"
        self.groups.replay(key, value)

    def has_members(self, group_id: str) -> bool:
        """Whether it cannot be deleted or taken over by another kind."""
        return bool(self._group(group_id).members)

    def consumed_topics(self, group_id: str) -> AbstractSet[str]:
        """The topics that members subscribe to."""
        return self._group(group_id).subscriptions.topics

    def tombstones(self, group_id: str) -> list[OffsetsRecord]:
        """What has to be stored so that the group is forgotten."""
        return group_tombstones(self._group(group_id))

    def check_commit(
        self,
        group_id: str,
        who: Committing,
        api_version: int,
        partitions: Callable[[], Iterable[CommittedPartition]],
    ) -> None:
        """Raise ApiError unless an OffsetCommit is to be stored."""
        check_commit(self._group(group_id), who, api_version, partitions)

    def check_transactional_commit(
        self,
        group_id: str,
        who: Committing,
        partitions: Callable[[], Iterable[CommittedPartition]],
    ) -> None:
        """Raise ApiError unless a TxnOffsetCommit is to be stored."""
        check_transactional_commit(self._group(group_id), who, partitions)

    def check_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:
        """Raise ApiError unless positions may be read."""
        check_fetch(self._group(group_id), member_id, member_epoch)

    def listed(
        self, states: Collection[str], types: Collection[str]
    ) -> Iterator[ListGroupsResponse.Group]:
        """Groups in one of `states` and `types`; those there are at the first step."""
        return listing.listed(list(self.groups), states, types)

    # Requests

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        caller: HeartbeatCaller,
        reply: Reply[ConsumerGroupHeartbeatResponse],
        now_ms: int,
    ) -> Effects:
        """Answer a ConsumerGroupHeartbeat."""
        return self._heartbeats.heartbeat(request, caller, reply, now_ms)

    def describe(
        self, group: ConsumerGroup
    ) -> Generator[None, None, ConsumerGroupDescribeResponse.Group]:
        """One group and its members, in steps."""
        return listing.described(group, self._topics, self._settings.assignors[0])

    def prepare_hash(self, topic: str) -> None:
        """Compute the hash of a topic that a heartbeat is about to name."""
        self._hashes.prepare(topic)

    def _begin_classic_sessions(self, group: ConsumerGroup, now_ms: int) -> None:
        """Members of the classic protocol say themselves how long they may be silent."""
        for member in group.members.values():
            if member.classic is not None:
                timeout_ms = member.classic.session_timeout_ms
                self._watches.touch(group.group_id, member.member_id, now_ms, timeout_ms)

    def _group_for(
        self, request: ConsumerGroupHeartbeatRequest, effects: Effects, now_ms: int
    ) -> ConsumerGroup:
        group = self.groups.find(request.group_id)
        classic = self._registry.classic(request.group_id)
        is_joining = request.member_epoch == JOINING_EPOCH
        if is_joining and classic is not None and classic.state is not GroupState.EMPTY:
            group = upgrade(classic, self._parts, effects)
            self._begin_classic_sessions(group, now_ms)
        if group is None:
            effects.records += self._registry.to_replace(
                self.name, request.group_id, request.member_epoch
            )
            group = ConsumerGroup(request.group_id)
        return group

    def _group(self, group_id: str) -> ConsumerGroup:
        group = self.groups.find(group_id)
        assert group is not None, "asked of another kind of group"
        return group

    def _on_removed(self, group: ConsumerGroup) -> None:
        self._watches.forget(group.group_id)
        self._registry.removed(group.group_id)
