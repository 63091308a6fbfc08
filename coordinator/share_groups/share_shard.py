"""The share groups of one partition of `__consumer_offsets`: part of `coordinator.shard`."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from coordinator.modern_groups.kind_shard import KindShard
from coordinator.ports import TimerKind
from coordinator.records import SHARE_GROUP_KEYS
from coordinator.share_groups import listing, start_offsets
from coordinator.share_groups.group import ShareGroup
from coordinator.share_groups.groups import REPLAY
from coordinator.share_groups.heartbeats import ShareHeartbeats
from coordinator.share_groups.initialisation import by_topic, initialised, not_initialised
from coordinator.share_groups.member import ShareMember
from coordinator.share_groups.records import group_tombstones, states_record
from coordinator.share_groups.shard_parts import ShareParts
from coordinator.share_groups.watches import ShareWatch, ShareWatches
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Generator,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from coordinator.effects import Effects
    from coordinator.modern_groups.group_kind import CommittedPartition, Committing, KindPorts
    from coordinator.ports import Reply
    from coordinator.records import OffsetsRecord
    from coordinator.share_groups.heartbeats import ShareCaller
    from coordinator.share_groups.initialisation import Initialisation
    from coordinator.share_groups.settings import ShareGroupSettings
    from coordinator.share_groups.start_offsets import Forgetting, Places
    from protocol.messages.share_groups import (
        ShareGroupDescribeResponse,
        ShareGroupHeartbeatRequest,
        ShareGroupHeartbeatResponse,
    )


class ShareShard(KindShard[ShareGroup, ShareMember]):
    """Share groups, all decisions about them, and their timers. A `GroupKind`."""

    name = "share"
    key_classes = SHARE_GROUP_KEYS
    timers = (TimerKind.SHARE_GROUP,)

    def __init__(self, settings: ShareGroupSettings, ports: KindPorts) -> None:
        watches = ShareWatches(settings, ports.timers, TimerKind.SHARE_GROUP, ShareWatch)
        super().__init__(ShareGroup, REPLAY, watches, ports)
        self._parts = ShareParts(
            settings, self.groups, ports.topics, self._hashes, watches, forgetting=Counter()
        )
        self._heartbeats = ShareHeartbeats(self._parts, self._group_for)

    # GroupKind, of one group

    def consumed_topics(self, group_id: str) -> AbstractSet[str]:
        """The topics that members subscribe to."""
        return self._group(group_id).names.keys()

    def tombstones(self, group_id: str) -> list[OffsetsRecord]:
        """Return the records that delete the group; it has no members."""
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
        api_version: int,  # noqa: ARG002
        partitions: Callable[[], Iterable[CommittedPartition]],  # noqa: ARG002
    ) -> None:
        """Raise ApiError: share groups have no committed offsets."""
        _refuse_offsets(group_id)

    def check_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> None:  # noqa: ARG002
        """Raise ApiError: share groups have no committed offsets."""
        _refuse_offsets(group_id)

    # Requests

    def heartbeat(
        self,
        request: ShareGroupHeartbeatRequest,
        caller: ShareCaller,
        reply: Reply[ShareGroupHeartbeatResponse],
        now_ms: int,
    ) -> tuple[Effects, Initialisation | None]:
        """Answer a ShareGroupHeartbeat; returns also what to initialise once it is committed."""
        return self._heartbeats.heartbeat(request, caller, reply, now_ms)

    def describe(self, group_id: str) -> Generator[None, None, ShareGroupDescribeResponse.Group]:
        """One group and its members, in steps."""
        try:
            group = self.require(group_id)
        except ApiError as error:
            return listing.not_described(group_id, error.code, error.message)
        return (yield from listing.described(group, self._topics))

    # State of partitions

    def handle_initialised(
        self, group_id: str, done: Places, failed: Places
    ) -> list[OffsetsRecord]:
        """Apply the share coordinator's results, for partitions that were initialising.

        Failed ones are requested again with the next heartbeat.
        """
        group = self.groups.find(group_id)
        if group is None:
            return []
        names = self._names({topic_id for topic_id, _ in (*done, *failed)})
        states = initialised(group.states, by_topic(done, names))
        states = not_initialised(states, by_topic(failed, names))
        return [] if states == group.states else [states_record(group_id, states)]

    def handle_alter(
        self, group_id: str, offsets: Mapping[tuple[UUID, int], int]
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
        watches = self._parts.watches
        watches.of(group_id).begun_ms |= dict.fromkeys(names, watches.now_ms)
        return start_offsets.alter(group, offsets, names)

    @contextmanager
    def forgetting(self, group_id: str) -> Iterator[None]:
        """Block initialisation for a group while share coordinators delete its state.

        A coordinator that loads is asked again later: a state initialised meanwhile would be
        deleted.
        """
        counts = self._parts.forgetting
        counts[group_id] += 1
        try:
            yield
        finally:
            counts[group_id] -= 1
            if not counts[group_id]:
                del counts[group_id]

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
        """Yield each group's records after a deletion of topics, to be appended at each step."""
        for group_id in list(self.group_ids):
            group = self.groups.find(group_id)
            yield [] if group is None else start_offsets.without_topics(group, topic_ids)

    def _names(self, topic_ids: Collection[UUID]) -> dict[UUID, str]:
        found = {topic_id: self._topics.name_of(topic_id) for topic_id in topic_ids}
        return {topic_id: name for topic_id, name in found.items() if name is not None}

    def _group_for(self, request: ShareGroupHeartbeatRequest) -> ShareGroup:
        group = self.groups.find(request.group_id)
        if group is None:
            self._registry.to_replace(self.name, request.group_id, request.member_epoch)
            group = ShareGroup(request.group_id)
        return group

    def _remove(
        self,
        group: ShareGroup,
        members: Sequence[ShareMember],
        effects: Effects,
        now_ms: int,  # noqa: ARG002
    ) -> None:
        self._heartbeats.remove(group, members, effects)


def _refuse_offsets(group_id: str) -> NoReturn:
    raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
