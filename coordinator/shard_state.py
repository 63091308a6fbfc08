"""The groups of one partition of `__consumer_offsets`, of all kinds, as built from its records.

A group id belongs to one group. The first record of a group of one of the newer kinds replaces a
classic group without members, the form in which a group that has only offsets is kept.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, cast

from coordinator.consumer_groups.classic_members.downgrade import LogTrace
from coordinator.consumer_groups.consumer_shard import ConsumerShard
from coordinator.effects import Effects
from coordinator.groups.group import ClassicGroup
from coordinator.groups.rebalance import Rebalance
from coordinator.groups.states import GroupEvent, GroupState
from coordinator.modern_groups.group_kind import GroupKind, GroupRegistry, KindPorts
from coordinator.offsets.offset_store import NO_PRODUCER, OffsetStore
from coordinator.records import group_tombstone
from coordinator.share_groups.share_shard import ShareShard
from coordinator.streams_groups.streams_shard import StreamsShard
from protocol.errors import ApiError, ErrorCode
from protocol.messages.consumer_offsets_records import GroupMetadataKey, OffsetCommitKey

if TYPE_CHECKING:
    from collections.abc import Collection

    from coordinator.consumer_groups.classic_members.downgrade import Downgraded
    from coordinator.ports import MemberIds, Timers
    from coordinator.records import OffsetsRecord
    from coordinator.settings import GroupSettings
    from coordinator.topics import Topics
    from protocol.messages.consumer_offsets_records import GroupMetadataValue, OffsetCommitValue


class ShardState:
    """Groups and their positions; `GroupShard` answers requests from them."""

    def __init__(
        self, settings: GroupSettings, timers: Timers, new_id: MemberIds, topics: Topics
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._groups: dict[str, ClassicGroup] = {}
        self._offsets = OffsetStore()
        self._trace = LogTrace()
        self._rebalance = Rebalance(settings, timers)
        registry = GroupRegistry(
            self._drop_group,
            self._keep_offsets,
            self._to_replace,
            self._groups.get,
            self._on_downgraded,
        )
        ports = KindPorts(timers, new_id, topics, registry)
        self.consumers = ConsumerShard(settings.consumer, ports)
        self.streams = StreamsShard(settings.streams, ports)
        self.shares = ShareShard(settings.share, ports)
        self._kinds: tuple[GroupKind, ...] = (self.consumers, self.streams, self.shares)
        self._kind_by_key = {key: kind for kind in self._kinds for key in kind.key_classes}

    @property
    def group_ids(self) -> Collection[str]:
        """All groups, those with nothing but offsets too."""
        return [*self._groups, *chain.from_iterable(kind.group_ids for kind in self._kinds)]

    def find(self, group_id: str) -> ClassicGroup | None:
        """One classic group; read only."""
        return self._groups.get(group_id)

    # Replay

    def replay(
        self, record: OffsetsRecord, log_offset: int = 0, producer_id: int = NO_PRODUCER
    ) -> None:
        """Apply one record of the log, freshly appended or read back.

        `producer_id` is that of a transactional batch, whose offsets wait for its marker.
        """
        key = record.key
        if isinstance(key, OffsetCommitKey):
            self._trace.break_off()
            if record.value is None:
                self._offsets.remove(key)
                self._drop_if_vestigial(self._groups.get(key.group))
            else:
                value = cast("OffsetCommitValue", record.value)
                self._offsets.put(key, value, log_offset, producer_id)
                if self._kind_of(key.group) is None:
                    self._group(key.group)
        elif not isinstance(key, GroupMetadataKey):
            self._kind_by_key[type(key)].replay(key, record.value)
            self._trace.follow(record)
        elif record.value is None:
            self._drop_group(key.group)
            if self._kind_of(key.group) is None:
                self._keep_offsets(key.group)
        else:
            generation = cast("GroupMetadataValue", record.value)
            group = self._group(key.group)
            group.restore(generation)
            group.is_downgraded = self._trace.leads_to(key.group, generation)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Apply a marker of the log: the producer's pending positions become final or go."""
        self._offsets.end_transaction(producer_id, is_commit=is_commit)

    def _kind_of(self, group_id: str) -> GroupKind | None:
        """The kind of a group; None for a classic one, and for none at all."""
        for kind in self._kinds:
            if group_id in kind:
                return kind
        return None

    def _group(self, group_id: str) -> ClassicGroup:
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = ClassicGroup(group_id)
        return group

    def _drop_group(self, group_id: str) -> None:
        group = self._groups.pop(group_id, None)
        if group is not None:
            self._rebalance.cancel_timers(group)
            group.enter(GroupEvent.REMOVED, group.state_since_ms)

    def _drop_if_vestigial(self, group: ClassicGroup | None) -> None:
        if group is None or not group.is_vestigial:
            return
        if not self._offsets.has_any(group.group_id):
            self._drop_group(group.group_id)

    def _keep_offsets(self, group_id: str) -> None:
        """Positions of a group that was forgotten are those of a group without members."""
        if self._offsets.has_any(group_id):
            self._group(group_id)

    def _on_downgraded(self, downgraded: Downgraded, now_ms: int) -> Effects:
        """Begin the sessions of a group that was a consumer group, and rebalance it if need be."""
        effects = Effects()
        group = self._groups.get(downgraded.group_id)
        if group is None:
            return effects
        for member in group.members.values():
            group.update_member(member, downgraded.protocols[member.member_id])
            self._rebalance.restart_session(group, member)
        if downgraded.must_rebalance:
            self._rebalance.prepare(group, now_ms, effects)
        return effects

    def _to_replace(self, kind: str, group_id: str, member_epoch: int) -> list[OffsetsRecord]:
        """Return the records to store before a heartbeat to a group that is not of this kind."""
        group = self._groups.get(group_id)
        is_of_other_kind = group is not None or self._kind_of(group_id) is not None
        is_joining = member_epoch == 0
        may_replace = kind != self.shares.name
        if is_joining and may_replace and group is not None and group.state is GroupState.EMPTY:
            return [group_tombstone(group_id)]
        if is_joining and not is_of_other_kind:
            return []
        if is_of_other_kind:
            reason = f"Group {group_id} is not a {kind} group."
        else:
            subject = "Group" if member_epoch < 0 else f"{kind.capitalize()} group"
            reason = f"{subject} {group_id} not found."
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, reason)
