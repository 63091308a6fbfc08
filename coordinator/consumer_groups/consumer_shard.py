"""The consumer groups of one partition of `__consumer_offsets`: part of `coordinator.shard`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.consumer_groups import listing
from coordinator.consumer_groups.classic_members.joins import ClassicJoins
from coordinator.consumer_groups.classic_members.requests import ClassicRequests
from coordinator.consumer_groups.classic_members.upgrade import upgrade
from coordinator.consumer_groups.group import ConsumerGroup
from coordinator.consumer_groups.groups import REPLAY
from coordinator.consumer_groups.heartbeats.departures import Departures
from coordinator.consumer_groups.heartbeats.heartbeat import Heartbeats
from coordinator.consumer_groups.member import ConsumerMember
from coordinator.consumer_groups.records import group_tombstones
from coordinator.consumer_groups.shard_parts import ShardParts
from coordinator.consumer_groups.watches import ConsumerWatch, ConsumerWatches
from coordinator.groups.states import GroupState
from coordinator.modern_groups.committing_shard import CommittingShard
from coordinator.modern_groups.epochs import JOINING_EPOCH
from coordinator.ports import TimerKind
from coordinator.records import CONSUMER_GROUP_KEYS
from protocol.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from collections.abc import Set as AbstractSet

    from coordinator.consumer_groups.heartbeats.request import HeartbeatCaller
    from coordinator.consumer_groups.settings import ConsumerGroupSettings
    from coordinator.effects import Effects
    from coordinator.modern_groups.group_kind import KindPorts
    from coordinator.ports import Reply
    from coordinator.records import OffsetsRecord
    from protocol.messages.consumer_groups import (
        ConsumerGroupDescribeResponse,
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )


class ConsumerShard(CommittingShard[ConsumerGroup, ConsumerMember]):
    """Consumer groups, all decisions about them, and their timers. A `GroupKind`."""

    name = "consumer"
    key_classes = CONSUMER_GROUP_KEYS
    timers = (TimerKind.CONSUMER_GROUP,)

    def __init__(self, settings: ConsumerGroupSettings, ports: KindPorts) -> None:
        watches = ConsumerWatches(settings, ports.timers, TimerKind.CONSUMER_GROUP, ConsumerWatch)
        super().__init__(ConsumerGroup, REPLAY, watches, ports)
        downgraded = ports.registry.downgraded
        self._parts = ShardParts(
            settings, self.groups, ports.topics, self._hashes, watches, ports.new_id
        )
        self._departures = Departures(self._parts, downgraded)
        self._heartbeats = Heartbeats(self._parts, self._group_for, self._departures)
        self.joins = ClassicJoins(self._parts, self._heartbeats, self._departures, downgraded)
        self.classic_requests = ClassicRequests(self._parts, self._departures)

    def on_loaded(self) -> None:
        """The log has been replayed: members' sessions begin."""
        super().on_loaded()
        for group in self.groups:
            if group.classic_count:
                self._begin_classic_sessions(group)

    # GroupKind, of one group

    def consumed_topics(self, group_id: str) -> AbstractSet[str]:
        """The topics that members subscribe to."""
        return self._group(group_id).subscriptions.topics

    def tombstones(self, group_id: str) -> list[OffsetsRecord]:
        """Return the records that delete the group."""
        return group_tombstones(self._group(group_id))

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

    def describe(self, group_id: str) -> Generator[None, None, ConsumerGroupDescribeResponse.Group]:
        """One group and its members, in steps."""
        try:
            group = self.require(group_id)
        except ApiError as error:
            return listing.not_described(group_id, error.code, error.message)
        default_assignor = self._parts.settings.assignors[0]
        return (yield from listing.described(group, self._topics, default_assignor))

    def _begin_classic_sessions(self, group: ConsumerGroup) -> None:
        """Members of the classic protocol have the session timeout of their JoinGroup."""
        for member in group.members.values():
            if member.classic is not None:
                timeout_ms = member.classic.session_timeout_ms
                self._watches.touch(group.group_id, member.member_id, timeout_ms)

    def _group_for(self, request: ConsumerGroupHeartbeatRequest, effects: Effects) -> ConsumerGroup:
        group = self.groups.find(request.group_id)
        classic = self._registry.classic(request.group_id)
        is_joining = request.member_epoch == JOINING_EPOCH
        if is_joining and classic is not None and classic.state is not GroupState.EMPTY:
            group = upgrade(classic, self._parts, effects)
            self._begin_classic_sessions(group)
        if group is None:
            effects.records += self._registry.to_replace(
                self.name, request.group_id, request.member_epoch
            )
            group = ConsumerGroup(request.group_id)
        return group

    def _late(self, group: ConsumerGroup) -> list[ConsumerMember]:
        return self._parts.watches.late(group)

    def _remove(
        self,
        group: ConsumerGroup,
        members: Sequence[ConsumerMember],
        effects: Effects,
        now_ms: int,
    ) -> None:
        self._departures.remove(group, members, effects, now_ms)
