"""Members that leave, by themselves or because their session expired."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from coordinator.consumer_groups.classic_members.downgrade import (
    Downgrade,
    Downgraded,
    downgrade_records,
    is_due,
)
from coordinator.consumer_groups.group import recount, rematch
from coordinator.consumer_groups.heartbeats.responses import departure_success
from coordinator.consumer_groups.records import (
    current_record,
    epoch_record,
    member_tombstones,
    pattern_tombstone,
    target_epoch_record,
)
from coordinator.modern_groups.checks import check_room, unknown_member
from coordinator.modern_groups.epochs import NEVER_ASSIGNED_MS, STATIC_LEAVING_EPOCH
from coordinator.modern_groups.static_members import check_instance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coordinator.consumer_groups.group import ConsumerGroup
    from coordinator.consumer_groups.member import ConsumerMember
    from coordinator.consumer_groups.shard_parts import ShardParts
    from coordinator.effects import Effects
    from protocol.messages.consumer_groups import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )

logger = logging.getLogger(__name__)


class Departures:
    """Removes members from the consumer groups of a shard."""

    def __init__(self, parts: ShardParts, downgraded: Callable[[Downgraded, int], Effects]) -> None:
        """`downgraded` carries on with a group that has become a classic one."""
        self._parts = parts
        self._downgraded = downgraded

    def check_room(self, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
        """Raise GROUP_MAX_SIZE_REACHED if the group is full and this is not one of its members."""
        has_place = instance_id is not None and group.static_member(instance_id) is not None
        if not has_place and member_id not in group.members:
            check_room("consumer", group.members, self._parts.settings.max_size)

    def leave(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        effects: Effects,
        now_ms: int,
    ) -> ConsumerGroupHeartbeatResponse:
        """Let a member leave, a static one temporarily. Raises ApiError."""
        member_id, instance_id = request.member_id, request.instance_id
        if instance_id is None:
            member = group.members.get(member_id)
            if member is None:
                raise unknown_member(member_id, group.group_id)
        else:
            member = check_instance(group.static_member(instance_id), member_id, instance_id)
            if request.member_epoch == STATIC_LEAVING_EPOCH:
                effects.records.append(current_record(group.group_id, _resting(member)))
                return departure_success(member_id, STATIC_LEAVING_EPOCH)
        self.remove(group, [member], effects, now_ms)
        return departure_success(member_id, request.member_epoch)

    def remove(
        self,
        group: ConsumerGroup,
        members: Sequence[ConsumerMember],
        effects: Effects,
        now_ms: int,
    ) -> None:
        """Remove members; the group goes to its next epoch, or becomes a classic one."""
        group_id, watches = group.group_id, self._parts.watches
        member_ids = [member.member_id for member in members]
        effects.on_append_failed = partial(watches.not_removed, group_id, member_ids)
        if is_due(group, members, self._parts.settings):
            self._downgrade(group, members, effects, now_ms)
            return
        subscriptions = group.subscriptions.copy()
        leaving: Counter[str] = Counter()
        for member in members:
            effects.records += member_tombstones(group_id, member.member_id)
            recount(subscriptions, member, None)
            if member.pattern:
                leaving[member.pattern] += 1
        for pattern, count in leaving.items():
            if group.subscriptions.patterns[pattern] == count:
                effects.records.append(pattern_tombstone(group_id, pattern))
                rematch(subscriptions, group.resolved.get(pattern), None)
        metadata_hash = self._parts.hashes.of_group(subscriptions.topics)
        epoch = group.epoch + 1
        effects.records.append(epoch_record(group_id, epoch, metadata_hash))
        if len(members) == len(group.members):
            effects.records.append(target_epoch_record(group_id, epoch, NEVER_ASSIGNED_MS))
        for member_id in member_ids:
            watches.forget_member(group_id, member_id)

    def _downgrade(
        self,
        group: ConsumerGroup,
        leaving: Sequence[ConsumerMember],
        effects: Effects,
        now_ms: int,
    ) -> None:
        downgrade = Downgrade(leaving, None, must_rebalance=True)
        records, protocols = downgrade_records(group, downgrade, self._parts, now_ms)
        effects.records += records
        downgraded = Downgraded(group.group_id, protocols, must_rebalance=True)
        effects.on_replayed = partial(self._downgraded, downgraded)
        logger.info("group %s: becomes a classic group", group.group_id)


def _resting(member: ConsumerMember) -> ConsumerMember:
    """Return a static member that will be back: it keeps its partitions, but has none to revoke."""
    assigned = {
        topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()
    }
    return replace(member, member_epoch=STATIC_LEAVING_EPOCH, assigned=assigned, revoking={})
