"""The groups of one partition of `__consumer_offsets`, of both kinds, as its records make them.

A group id belongs to a classic group or to a consumer group. The first record of a consumer group
takes the place of a classic group without members, in which a group that has only offsets is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from coordinator.consumer_groups.consumer_shard import ConsumerShard, GroupRegistry
from coordinator.groups.group import ClassicGroup
from coordinator.groups.rebalance import Rebalance
from coordinator.groups.states import GroupEvent, GroupState
from coordinator.offsets.offset_store import NO_PRODUCER, OffsetStore
from coordinator.records import group_tombstone
from protocol.errors import ApiError, ErrorCode
from protocol.messages.consumer_offsets_records import GroupMetadataKey, OffsetCommitKey

if TYPE_CHECKING:
    from collections.abc import Collection

    from coordinator.consumer_groups.topics import Topics
    from coordinator.ports import MemberIds, Timers
    from coordinator.records import OffsetsRecord
    from coordinator.settings import GroupSettings
    from protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest
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
        self._rebalance = Rebalance(settings, timers)
        registry = GroupRegistry(self._drop_group, self._keep_offsets, self._to_replace)
        self.consumers = ConsumerShard(settings.consumer, timers, new_id, topics, registry)

    @property
    def group_ids(self) -> Collection[str]:
        """All groups, those with nothing but offsets too."""
        return [*self._groups, *(group.group_id for group in self.consumers.groups)]

    def find(self, group_id: str) -> ClassicGroup | None:
        """One classic group; read only."""
        return self._groups.get(group_id)

    # Replay

    def replay(
        self, record: OffsetsRecord, log_offset: int = 0, producer_id: int = NO_PRODUCER
    ) -> None:
        """Apply one record of the log, freshly appended or read back.

        `producer_id` is that of a transactional batch, whose positions wait for its marker.
        """
        key = record.key
        if isinstance(key, OffsetCommitKey):
            if record.value is None:
                self._offsets.remove(key)
                self._drop_if_vestigial(self._groups.get(key.group))
            else:
                value = cast("OffsetCommitValue", record.value)
                self._offsets.put(key, value, log_offset, producer_id)
                if key.group not in self.consumers.groups:
                    self._group(key.group)
        elif not isinstance(key, GroupMetadataKey):
            self.consumers.groups.replay(key, record.value)
        elif record.value is None:
            self._drop_group(key.group)
            if key.group not in self.consumers.groups:
                self._keep_offsets(key.group)
        else:
            self._group(key.group).restore(cast("GroupMetadataValue", record.value))

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Apply a marker of the log: the producer's pending positions become final or go."""
        self._offsets.end_transaction(producer_id, is_commit=is_commit)

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

    def _to_replace(self, request: ConsumerGroupHeartbeatRequest) -> list[OffsetsRecord]:
        """What a heartbeat to a group that is no consumer group has to have stored first."""
        group_id = request.group_id
        group = self._groups.get(group_id)
        if request.member_epoch == 0:
            if group is None:
                return []
            if group.state is GroupState.EMPTY:
                return [group_tombstone(group_id)]
            reason = (
                f"Cannot upgrade classic group {group_id} to consumer group because online upgrade "
                "is disabled."
            )
        elif group is not None:
            reason = f"Group {group_id} is not a consumer group."
        else:
            kind = "Group" if request.member_epoch < 0 else "Consumer group"
            reason = f"{kind} {group_id} not found."
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, reason)
