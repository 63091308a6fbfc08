"""The streams groups of one partition of `__consumer_offsets`: part of `coordinator.shard`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.effects import Effects
from coordinator.offsets.member_commits import (
    check_commit,
    check_fetch,
    check_transactional_commit,
)
from coordinator.ports import TimerKind
from coordinator.records import STREAMS_GROUP_KEYS
from coordinator.streams_groups import listing
from coordinator.streams_groups.group import StreamsGroup
from coordinator.streams_groups.groups import StreamsGroups
from coordinator.streams_groups.heartbeats.departures import Departures
from coordinator.streams_groups.heartbeats.heartbeat import Heartbeats
from coordinator.streams_groups.records import group_tombstones
from coordinator.streams_groups.shard_parts import ShardParts
from coordinator.streams_groups.topology import required_topics
from coordinator.streams_groups.watches import InitialDelays, StreamsWatches
from coordinator.topics import TopicHashes
from coordinator.watches import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from coordinator.group_kind import CommittedPartition, Committing, KindPorts
    from coordinator.ports import Reply, TimerKey
    from coordinator.records import KeyOfKind, OffsetsRecord
    from coordinator.streams_groups.heartbeats.heartbeat import HeartbeatCaller
    from coordinator.streams_groups.heartbeats.responses import Outcome
    from coordinator.streams_groups.settings import StreamsGroupSettings
    from protocol.messages.groups import ListGroupsResponse
    from protocol.messages.streams_groups import (
        StreamsGroupDescribeResponse,
        StreamsGroupHeartbeatRequest,
    )
    from protocol.schema import Coded


class StreamsShard:
    """Streams groups, all decisions about them, and their timers. A `GroupKind`."""

    name = listing.STREAMS_TYPE
    key_classes = STREAMS_GROUP_KEYS
    timers = (TimerKind.STREAMS_GROUP, TimerKind.STREAMS_INITIAL_DELAY)

    def __init__(self, settings: StreamsGroupSettings, ports: KindPorts) -> None:
        timers, _, topics, self._registry = ports
        self._watches = StreamsWatches(settings, timers, TimerKind.STREAMS_GROUP, Watch)
        self._delays = InitialDelays(timers)
        self._topics = topics
        self._hashes = TopicHashes(topics)
        self.groups = StreamsGroups(self._registry.created, self._on_removed)
        parts = ShardParts(settings, self.groups, topics, self._hashes, self._watches, self._delays)
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
        self._delays.clear()
        self.groups.clear()

    def expire(self, key: TimerKey, now_ms: int) -> Effects:
        """A group's timer went off."""
        group_id = key.group_id
        if key.kind is TimerKind.STREAMS_INITIAL_DELAY:
            return self._heartbeats.end_delay(group_id, now_ms)
        group = self.groups.find(group_id)
        if group is None:
            self._watches.forget(group_id)
            return Effects()
        return self._departures.expire(group, now_ms)

    # GroupKind, of one group and of all

    @property
    def group_ids(self) -> Collection[str]:
        """All streams groups."""
        return [group.group_id for group in self.groups]

    def __contains__(self, group_id: object) -> bool:
        return group_id in self.groups

    def replay(self, key: KeyOfKind, value: Coded | None) -> None:
        """Apply one record."""
        assert isinstance(key, STREAMS_GROUP_KEYS), "the key of another kind of group"
        self.groups.replay(key, value)

    def has_members(self, group_id: str) -> bool:
        """Whether it cannot be deleted or taken over by another kind."""
        return bool(self._group(group_id).members)

    def consumed_topics(self, group_id: str) -> AbstractSet[str]:
        """The topics that tasks read, while there are members."""
        group = self._group(group_id)
        if not group.members or group.topology is None:
            return frozenset()
        return group.topology.source_topics.keys()

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
        request: StreamsGroupHeartbeatRequest,
        caller: HeartbeatCaller,
        reply: Reply[Outcome],
        now_ms: int,
    ) -> Effects:
        """Answer a StreamsGroupHeartbeat."""
        return self._heartbeats.heartbeat(request, caller, reply, now_ms)

    def describe(
        self, group: StreamsGroup
    ) -> Generator[None, None, StreamsGroupDescribeResponse.Group]:
        """One group and its members, in steps."""
        return listing.described(group)

    def hash_topics(self, request: StreamsGroupHeartbeatRequest) -> Iterator[None]:
        """Compute, in steps, the hashes that a heartbeat is about to need."""
        group = self.groups.find(request.group_id)
        names: Iterable[str] = ()
        if group is None or group.topology is None:
            if request.topology is not None:
                names = required_topics(request.topology.subtopologies)
        elif group.memory.checked_revision != self._topics.revision:
            names = group.topology.required_topics
        for name in self._hashes.missing(names):
            self._hashes.prepare(name)
            yield

    def _group_for(self, request: StreamsGroupHeartbeatRequest, effects: Effects) -> StreamsGroup:
        group = self.groups.find(request.group_id)
        if group is None:
            effects.records += self._registry.to_replace(
                self.name, request.group_id, request.member_epoch
            )
            group = StreamsGroup(request.group_id)
        return group

    def _group(self, group_id: str) -> StreamsGroup:
        group = self.groups.find(group_id)
        assert group is not None, "asked of another kind of group"
        return group

    def _on_removed(self, group: StreamsGroup) -> None:
        self._watches.forget(group.group_id)
        self._delays.cancel(group.group_id)
        self._registry.removed(group.group_id)
