"""The share groups of one partition of `__consumer_offsets`: part of `coordinator.shard`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from coordinator.effects import Effects
from coordinator.ports import TimerKind
from coordinator.records import SHARE_GROUP_KEYS
from coordinator.share_groups import listing, start_offsets
from coordinator.share_groups.group import ShareGroup
from coordinator.share_groups.groups import ShareGroups
from coordinator.share_groups.heartbeats import ShareHeartbeats
from coordinator.share_groups.initialisation import by_topic, initialised, not_initialised
from coordinator.share_groups.records import group_tombstones, states_record
from coordinator.share_groups.shard_parts import ShareParts
from coordinator.share_groups.watches import ShareWatch, ShareWatches
from coordinator.topics import TopicHashes
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from coordinator.group_kind import CommittedPartition, Committing, KindPorts
    from coordinator.ports import Reply, TimerKey
    from coordinator.records import KeyOfKind, OffsetsRecord
    from coordinator.share_groups.heartbeats import ShareCaller
    from coordinator.share_groups.initialisation import Initialisation
    from coordinator.share_groups.settings import ShareGroupSettings
    from coordinator.share_groups.start_offsets import Forgetting, Places
    from protocol.messages.groups import ListGroupsResponse
    from protocol.messages.share_groups import (
        ShareGroupDescribeResponse,
        ShareGroupHeartbeatRequest,
        ShareGroupHeartbeatResponse,
    )
    from protocol.schema import Coded


class ShareShard:
    """Share groups, all decisions about them, and their timers. A `GroupKind`."""

    name = listing.SHARE_TYPE
    key_classes = SHARE_GROUP_KEYS
    timers = (TimerKind.SHARE_GROUP,)

    def __init__(self, settings: ShareGroupSettings, ports: KindPorts) -> None:
        timers, _, topics, self._registry = ports
        self._topics = topics
        self._watches = ShareWatches(settings, timers, TimerKind.SHARE_GROUP, ShareWatch)
        self._hashes = TopicHashes(topics)
        self.groups = ShareGroups(self._registry.created, self._on_removed)
        parts = ShareParts(settings, self.groups, topics, self._hashes, self._watches)
        self._heartbeats = ShareHeartbeats(parts, self._group_for)

    def on_loaded(self, now_ms: int) -> None:
        """The log has been replayed: members' sessions begin."""
        for group in self.groups:
            if group.members:
                self._watches.loaded(group, now_ms)

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
        return self._heartbeats.expire(group, now_ms)

    # GroupKind, of one group and of all

    @property
    def group_ids(self) -> Collection[str]:
        """All share groups."""
        return [group.group_id for group in self.groups]

    def __contains__(self, group_id: object) -> bool:
        return group_id in self.groups

    def replay(self, key: KeyOfKind, value: Coded | None) -> None:
        """Apply one record."""
        assert isinstance(key, SHARE_GROUP_KEYS), "the key of another kind of group"
        self.groups.replay(key, value)

    def has_members(self, group_id: str) -> bool:
        """Whether it cannot be deleted."""
        return bool(self._group(group_id).members)

    def consumed_topics(self, group_id: str) -> AbstractSet[str]:
        """The topics that members subscribe to."""
        return self._group(group_id).names.keys()

    def tombstones(self, group_id: str) -> list[OffsetsRecord]:
        """What has to be stored so that the group is forgotten; it has no members."""
        return group_tombstones(self._group(group_id))

    def check_commit(
        self,
        group_id: str,
        who: Committing,  # noqa: ARG002
        api_version: int,  # noqa: ARG002
        partitions: Callable[[], Iterable[CommittedPartition]],  # noqa: ARG002
    ) -> None:
        """Raise ApiError: share groups have no committed offsets."""
        _refuse_offsets(group_id)

    def check_transactional_commit(
        self,
        group_id: str,
        who: Committing,  # noqa: ARG002
        partitions: Callable[[], Iterable[CommittedPartition]],  # noqa: ARG002
    ) -> None:
        """Raise ApiError: share groups have no committed offsets."""
        _refuse_offsets(group_id)

    def check_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:  # noqa: ARG002
        """Raise ApiError: share groups have no committed offsets."""
        _refuse_offsets(group_id)

    def listed(
        self, states: Collection[str], types: Collection[str]
    ) -> Iterator[ListGroupsResponse.Group]:
        """Groups in one of `states` and `types`; those there are at the first step."""
        return listing.listed(list(self.groups), states, types)

    # Requests

    def heartbeat(
        self,
        request: ShareGroupHeartbeatRequest,
        caller: ShareCaller,
        reply: Reply[ShareGroupHeartbeatResponse],
        now_ms: int,
    ) -> tuple[Effects, Initialisation | None]:
        """Answer a ShareGroupHeartbeat; and what to initialise once it is committed."""
        return self._heartbeats.heartbeat(request, caller, reply, now_ms)

    def describe(self, group_id: str) -> Generator[None, None, ShareGroupDescribeResponse.Group]:
        """One group and its members, in steps."""
        try:
            group = self.require(group_id)
        except ApiError as error:
            return listing.not_described(group_id, error.code, error.message)
        return (yield from listing.described(group, self._topics))

    def prepare_hash(self, topic: str) -> None:
        """Compute the hash of a topic that a heartbeat is about to name."""
        self._hashes.prepare(topic)

    # State of partitions

    def handle_initialised(
        self, group_id: str, done: Places, failed: Places
    ) -> list[OffsetsRecord]:
        """The share coordinator has answered, for partitions that were to be initialised.

        What failed is asked for again with the next heartbeat.
        """
        group = self.groups.find(group_id)
        if group is None:
            return []
        names = self._names({topic_id for topic_id, _ in (*done, *failed)})
        states = initialised(group.states, by_topic(done, names))
        states = not_initialised(states, by_topic(failed, names))
        return [] if states == group.states else [states_record(group_id, states)]

    def handle_alter(
        self, group_id: str, offsets: Mapping[tuple[UUID, int], int], now_ms: int
    ) -> tuple[Initialisation, list[OffsetsRecord]]:
        """Begin to set start offsets of partitions that exist; makes the group. Raises ApiError.

        Who joins meanwhile must not have them initialised once more, without start offsets.
        """
        group = self.groups.find(group_id)
        if group is None:
            self._registry.to_replace(self.name, group_id, 0)
            group = ShareGroup(group_id)
        start_offsets.check_empty(group)
        names = self._names({topic_id for topic_id, _ in offsets})
        self._watches.of(group_id).begun_ms |= dict.fromkeys(names, now_ms)
        return start_offsets.alter(group, offsets, names)

    def handle_delete_topics(self, group_id: str, names: Collection[str]) -> Forgetting:
        """Begin to forget the state of topics. Raises ApiError."""
        group = self.require(group_id)
        start_offsets.check_empty(group)
        return start_offsets.delete_topics(group, names, self._topics)

    def handle_delete_all(self, group_id: str) -> Forgetting:
        """Begin to forget all state of a group that is to be deleted. Raises ApiError."""
        group = self.require(group_id)
        start_offsets.check_empty(group)
        return start_offsets.delete_all(group, self._topics)

    def handle_forgotten(self, group_id: str, topic_ids: Collection[UUID]) -> list[OffsetsRecord]:
        """The share coordinator has forgotten these topics."""
        group = self.groups.find(group_id)
        return [] if group is None else start_offsets.forgotten(group, topic_ids)

    def handle_topics_deleted(self, topic_ids: Collection[UUID]) -> Iterator[list[OffsetsRecord]]:
        """Topics were deleted: what each group stores of that, to be appended at each step."""
        for group_id in list(self.group_ids):
            group = self.groups.find(group_id)
            yield [] if group is None else start_offsets.without_topics(group, topic_ids)

    def require(self, group_id: str) -> ShareGroup:
        """A group. Raises GROUP_ID_NOT_FOUND."""
        group = self.groups.find(group_id)
        if group is None:
            self._registry.to_replace(self.name, group_id, -1)
        assert group is not None, "to_replace raises for who does not join"
        return group

    def _names(self, topic_ids: Collection[UUID]) -> dict[UUID, str]:
        found = {topic_id: self._topics.name_of(topic_id) for topic_id in topic_ids}
        return {topic_id: name for topic_id, name in found.items() if name is not None}

    def _group_for(self, request: ShareGroupHeartbeatRequest) -> ShareGroup:
        group = self.groups.find(request.group_id)
        if group is None:
            self._registry.to_replace(self.name, request.group_id, request.member_epoch)
            group = ShareGroup(request.group_id)
        return group

    def _group(self, group_id: str) -> ShareGroup:
        group = self.groups.find(group_id)
        assert group is not None, "asked of another kind of group"
        return group

    def _on_removed(self, group: ShareGroup) -> None:
        self._watches.forget(group.group_id)
        self._registry.removed(group.group_id)


def _refuse_offsets(group_id: str) -> NoReturn:
    raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
