"""Members that leave, by themselves or because their session expired."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from coordinator.modern_groups.checks import unknown_member
from coordinator.modern_groups.epochs import NEVER_ASSIGNED_MS, STATIC_LEAVING_EPOCH
from coordinator.modern_groups.static_members import check_instance
from coordinator.streams_groups.heartbeats.responses import Outcome, answer
from coordinator.streams_groups.records import (
    current_record,
    epoch_record,
    member_tombstones,
    target_epoch_record,
)
from coordinator.streams_groups.tasks import OWNS_NOTHING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.effects import Effects
    from coordinator.streams_groups.group import StreamsGroup
    from coordinator.streams_groups.member import StreamsMember
    from coordinator.streams_groups.shard_parts import ShardParts
    from protocol.messages.streams_groups import StreamsGroupHeartbeatRequest


def _away(member: StreamsMember) -> StreamsMember:
    """A static member that keeps its tasks, of no epoch, for its next incarnation."""
    active = {name: dict.fromkeys(epochs, 0) for name, epochs in member.assigned.active.items()}
    return replace(
        member,
        member_epoch=STATIC_LEAVING_EPOCH,
        assigned=member.assigned._replace(active=active),
        revoking=OWNS_NOTHING,
    )


class Departures:
    """Removes members from the streams groups of a shard."""

    def __init__(self, parts: ShardParts) -> None:
        self._parts = parts

    def leave(
        self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, effects: Effects
    ) -> Outcome:
        """Let a member leave, a static one possibly temporarily. Raises ApiError."""
        if request.shutdown_application:
            group.memory.request_shutdown(request.member_id)
        member_id, instance_id = request.member_id, request.instance_id
        if instance_id is not None:
            member = check_instance(group.static_member(instance_id), member_id, instance_id)
        elif member_id in group.members:
            member = group.members[member_id]
        else:
            raise unknown_member(member_id, group.group_id)
        if request.member_epoch == STATIC_LEAVING_EPOCH:
            effects.records.append(current_record(group.group_id, _away(member)))
            self._parts.watches.end_revocation(group.group_id, member_id)
        else:
            self.remove(group, [member], effects)
        return Outcome(answer(member_id, request.member_epoch, 0), {})

    def remove(
        self, group: StreamsGroup, members: Sequence[StreamsMember], effects: Effects
    ) -> None:
        """Remove members; the group goes to its next epoch."""
        group_id, watches = group.group_id, self._parts.watches
        member_ids = [member.member_id for member in members]
        for member_id in member_ids:
            effects.records += member_tombstones(group_id, member_id)
            watches.forget_member(group_id, member_id)
        effects.on_append_failed = partial(watches.not_removed, group_id, member_ids)
        epoch = group.epoch + 1
        effects.records.append(
            epoch_record(
                group_id,
                epoch,
                group.metadata_hash,
                group.validated_topology_epoch,
                group.assignment_configs,
            )
        )
        if len(members) == len(group.members):
            effects.records.append(target_epoch_record(group_id, epoch, NEVER_ASSIGNED_MS))
