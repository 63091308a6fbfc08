"""Heartbeat and LeaveGroup, and the check of member id and instance id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.group import NO_MEMBER_ID
from coordinator.groups.states import GroupState
from protocol.errors import ErrorCode
from protocol.messages.group_membership import LeaveGroupResponse

if TYPE_CHECKING:
    from coordinator.effects import Effects
    from coordinator.groups.group import ClassicGroup
    from coordinator.groups.rebalance import Rebalance
    from protocol.messages.group_membership import HeartbeatRequest, LeaveGroupRequest


def member_error(group: ClassicGroup, member_id: str, instance_id: str | None) -> ErrorCode:
    """UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID if a later incarnation has replaced it, or NONE."""
    if instance_id is not None:
        current = group.static_members.get(instance_id)
        if current is not None and current != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


class Membership:
    """Decides on Heartbeat and LeaveGroup for the groups of a shard."""

    def __init__(self, rebalance: Rebalance) -> None:
        self._rebalance = rebalance

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest) -> ErrorCode:
        """Keep a session alive. REBALANCE_IN_PROGRESS means that the member has to join again."""
        error = member_error(group, request.member_id, request.group_instance_id)
        if error is not ErrorCode.NONE:
            return error
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self._rebalance.touch(group, group.members[request.member_id])
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(
        self,
        group: ClassicGroup,
        leaving: LeaveGroupRequest.Member,
        now_ms: int,
        effects: Effects,
    ) -> LeaveGroupResponse.Member:
        """Remove one member. With an instance id alone an administrator removes a static member."""
        member_id = leaving.member_id
        instance_id = leaving.group_instance_id
        error = ErrorCode.NONE
        if member_id == NO_MEMBER_ID:
            member_id = group.static_members.get(instance_id or "", NO_MEMBER_ID)
            error = ErrorCode.NONE if member_id else ErrorCode.UNKNOWN_MEMBER_ID
        elif member_id not in group.pending_members:
            error = member_error(group, member_id, instance_id)
        if error is ErrorCode.NONE:
            self._rebalance.remove_member(group, member_id, now_ms, effects)
        return LeaveGroupResponse.Member(
            member_id=leaving.member_id, group_instance_id=instance_id, error_code=error
        )
