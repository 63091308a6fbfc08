"""The streams groups of one partition of `__consumer_offsets`: part of `coordinator.shard`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.modern_groups.committing_shard import CommittingShard
from coordinator.modern_groups.watches import Watch
from coordinator.ports import TimerKind
from coordinator.records import STREAMS_GROUP_KEYS
from coordinator.streams_groups import listing
from coordinator.streams_groups.group import StreamsGroup
from coordinator.streams_groups.groups import REPLAY
from coordinator.streams_groups.heartbeats.departures import Departures
from coordinator.streams_groups.heartbeats.heartbeat import Heartbeats
from coordinator.streams_groups.member import StreamsMember
from coordinator.streams_groups.records import group_tombstones
from coordinator.streams_groups.shard_parts import ShardParts
from coordinator.streams_groups.topology import required_topics
from coordinator.streams_groups.watches import InitialDelays, StreamsWatches
from protocol.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from coordinator.effects import Effects
    from coordinator.modern_groups.group_kind import KindPorts
    from coordinator.ports import Reply, TimerKey
    from coordinator.records import OffsetsRecord
    from coordinator.streams_groups.heartbeats.membership import HeartbeatCaller
    from coordinator.streams_groups.heartbeats.responses import Outcome
    from coordinator.streams_groups.settings import StreamsGroupSettings
    from protocol.messages.groups import ListGroupsResponse
    from protocol.messages.streams_groups import (
        StreamsGroupDescribeResponse,
        StreamsGroupHeartbeatRequest,
    )


class StreamsShard(CommittingShard[StreamsGroup, StreamsMember]):
    """Streams groups, all decisions about them, and their timers. A `GroupKind`."""

    name = "streams"
    key_classes = STREAMS_GROUP_KEYS
    timers = (TimerKind.STREAMS_GROUP, TimerKind.STREAMS_INITIAL_DELAY)

    def __init__(self, settings: StreamsGroupSettings, ports: KindPorts) -> None:
        watches = StreamsWatches(settings, ports.timers, TimerKind.STREAMS_GROUP, Watch)
        super().__init__(StreamsGroup, REPLAY, watches, ports)
        self._delays = InitialDelays(ports.timers)
        parts = ShardParts(settings, self.groups, ports.topics, self._hashes, watches, self._delays)
        self._departures = Departures(parts)
        self._heartbeats = Heartbeats(parts, self._group_for, self._departures)

    def on_unloaded(self) -> None:
        """The shard goes to another broker, or this one stops."""
        super().on_unloaded()
        self._delays.clear()

    def expire(self, key: TimerKey, now_ms: int) -> Effects:
        """A group's timer went off: that of its sessions, or of its first delay."""
        if key.kind is TimerKind.STREAMS_INITIAL_DELAY:
            return self._heartbeats.end_delay(key.group_id, now_ms)
        return super().expire(key, now_ms)

    # GroupKind, of one group and of all

    def consumed_topics(self, group_id: str) -> AbstractSet[str]:
        """The topics that tasks read, while there are members."""
        group = self._group(group_id)
        if not group.members or group.topology is None:
            return frozenset()
        return group.topology.source_topics.keys()

    def tombstones(self, group_id: str) -> list[OffsetsRecord]:
        """Return the records that delete the group."""
        return group_tombstones(self._group(group_id))

    def listed(
        self, states: Collection[str], types: Collection[str]
    ) -> Iterator[ListGroupsResponse.Group]:
        """As for any kind; Apache Kafka knows NotReady by the name of `not_ready` only."""
        return super().listed([state.replace("_", "") for state in states], types)

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

    def describe(self, group_id: str) -> Generator[None, None, StreamsGroupDescribeResponse.Group]:
        """One group and its members, in steps."""
        try:
            group = self.require(group_id)
        except ApiError as error:
            return listing.not_described(group_id, error.code, error.message)
        return (yield from listing.described(group))

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

    def _remove(
        self,
        group: StreamsGroup,
        members: Sequence[StreamsMember],
        effects: Effects,
        now_ms: int,  # noqa: ARG002
    ) -> None:
        self._departures.remove(group, members, effects)

    def _on_removed(self, group: StreamsGroup) -> None:
        self._delays.cancel(group.group_id)
        super()._on_removed(group)
