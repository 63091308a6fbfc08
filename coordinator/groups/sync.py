"""SyncGroup: the leader supplies the assignment of a generation, each member gets its part.

Followers that come before the leader are parked. The leader's assignment becomes a record; once it
is appended the group is STABLE, once it is committed all parked members are answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.effects import Effects
from coordinator.groups.membership import member_error
from coordinator.groups.responses import refuse_sync, sync_error, sync_success
from coordinator.groups.states import GroupState
from coordinator.records import generation_record
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.groups.group import ClassicGroup
    from coordinator.groups.member import Member
    from coordinator.groups.rebalance import Rebalance
    from coordinator.ports import Reply
    from protocol.messages.group_membership import SyncGroupRequest, SyncGroupResponse


class Syncs:
    """Decides on SyncGroup requests for the groups of a shard."""

    def __init__(self, rebalance: Rebalance) -> None:
        self._rebalance = rebalance

    def sync(
        self,
        group: ClassicGroup,
        request: SyncGroupRequest,
        reply: Reply[SyncGroupResponse],
        now_ms: int,
    ) -> Effects:
        """Answer, park, or store the assignment of the generation."""
        effects = Effects()
        error = _sync_error(group, request)
        if error is not ErrorCode.NONE:
            effects.answer(reply, sync_error(error))
            return effects
        member = group.members[request.member_id]
        self._rebalance.on_synced(group, member)
        if group.state is GroupState.STABLE:
            self._rebalance.touch(group, member)
            response = sync_success(group, member.assignment)
            effects.answer_when_committed(reply, response, refuse_sync)
            return effects
        self._park(member, reply, effects)
        if group.leader_id == member.member_id:
            self._assign(group, request, now_ms, effects)
        return effects

    @staticmethod
    def _park(member: Member, reply: Reply[SyncGroupResponse], effects: Effects) -> None:
        if member.syncing is not None:
            # Synced twice, on two connections: only the later one can still be listened to.
            effects.answer(member.syncing, sync_error(ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing = reply

    def _assign(
        self, group: ClassicGroup, request: SyncGroupRequest, now_ms: int, effects: Effects
    ) -> None:
        assignments = {each.member_id: each.assignment for each in request.assignments}
        effects.records.append(generation_record(group, assignments, now_ms))
        for member in group.members.values():
            if member.syncing is not None:
                response = sync_success(group, assignments.get(member.member_id, b""))
                effects.answer_when_committed(member.syncing, response, refuse_sync)
                member.syncing = None
                self._rebalance.touch(group, member)
        effects.on_append_failed = self._start_over(group)

    def _start_over(self, group: ClassicGroup) -> Callable[[ErrorCode, int], Effects]:
        def start_over(_: ErrorCode, now_ms: int) -> Effects:
            effects = Effects()
            self._rebalance.prepare(group, now_ms, effects)
            return effects

        return start_over


def _sync_error(group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
    error = member_error(group, request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if request.protocol_type is not None and request.protocol_type != group.protocol_type:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if request.protocol_name is not None and request.protocol_name != group.protocol:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
