"""SyncGroup, Heartbeat and LeaveGroup of members in a consumer group."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from coordinator.consumer_groups.classic_members.embedded_protocol import (
    encode_assignment,
    version_of,
)
from coordinator.consumer_groups.group import NOBODY
from coordinator.consumer_groups.member import ConsumerMember, MemberState
from coordinator.effects import Effects
from coordinator.groups.group import NO_MEMBER_ID
from coordinator.groups.responses import refuse_sync, sync_error
from coordinator.groups.subscriptions import CONSUMER_PROTOCOL_TYPE
from coordinator.modern_groups.checks import unknown_member
from coordinator.modern_groups.static_members import check_instance
from protocol.errors import ApiError, ErrorCode
from protocol.messages.group_membership import LeaveGroupResponse, SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.consumer_groups.group import ConsumerGroup
    from coordinator.consumer_groups.heartbeats.departures import Departures
    from coordinator.consumer_groups.shard_parts import ShardParts
    from coordinator.ports import Reply
    from protocol.messages.consumer_group_records import ConsumerGroupMemberMetadataValue
    from protocol.messages.group_membership import (
        HeartbeatRequest,
        LeaveGroupRequest,
        SyncGroupRequest,
    )

logger = logging.getLogger(__name__)


class ClassicRequests:
    """Decides on requests of the classic protocol, but for JoinGroup."""

    def __init__(self, parts: ShardParts, departures: Departures) -> None:
        self._parts = parts
        self._departures = departures

    def sync(
        self,
        group: ConsumerGroup,
        request: SyncGroupRequest,
        reply: Reply[SyncGroupResponse],
    ) -> Effects:
        """Send a member its current assignment, once that is committed."""
        effects = Effects()
        try:
            member, classic = _classic(group, request.member_id, request.group_instance_id)
            self._check_sync(group, member, request)
        except ApiError as error:
            effects.answer(reply, sync_error(error.code))
            return effects
        watches, group_id = self._parts.watches, group.group_id
        watches.end_sync(group_id, member.member_id)
        watches.touch(group_id, member.member_id, classic.session_timeout_ms)
        version = version_of(classic.supported_protocols[0].metadata)
        response = SyncGroupResponse(
            error_code=ErrorCode.NONE,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=encode_assignment(member.assigned, self._parts.topics, version),
        )
        effects.answer_when_committed(reply, response, refuse_sync)
        return effects

    def _check_sync(
        self, group: ConsumerGroup, member: ConsumerMember, request: SyncGroupRequest
    ) -> None:
        assert member.classic is not None
        if request.generation_id != member.member_epoch:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        name = member.classic.supported_protocols[0].name
        if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or (
            request.protocol_name not in (None, name)
        ):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        is_behind = group.assignment_epoch > member.member_epoch
        if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._parts.watches.await_join(group.group_id, member)
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> ErrorCode:
        """Keep a session alive. REBALANCE_IN_PROGRESS means that there is something to join for."""
        try:
            member, classic = _classic(group, request.member_id, request.group_instance_id)
        except ApiError as error:
            return error.code
        if request.generation_id != member.member_epoch:
            return ErrorCode.ILLEGAL_GENERATION
        watches, group_id = self._parts.watches, group.group_id
        watches.touch(group_id, member.member_id, classic.session_timeout_ms)
        if (
            member.member_epoch < group.assignment_epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (
                member.state is MemberState.UNRELEASED_PARTITIONS
                and not _waits_for_others(group, member)
            )
        ):
            watches.await_join(group_id, member)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(
        self, group: ConsumerGroup, leaving: Sequence[LeaveGroupRequest.Member], now_ms: int
    ) -> tuple[list[LeaveGroupResponse.Member], Effects]:
        """Remove members, of either protocol, in one group epoch; each has its own error."""
        effects = Effects()
        gone: dict[str, ConsumerMember] = {}
        left = []
        for each in leaving:
            error = ErrorCode.NONE
            try:
                member = _leaving(group, each)
                gone[member.member_id] = member
            except ApiError as refused:
                error = refused.code
            left.append(
                LeaveGroupResponse.Member(
                    member_id=each.member_id,
                    group_instance_id=each.group_instance_id,
                    error_code=error,
                )
            )
        if gone:
            self._departures.remove(group, list(gone.values()), effects, now_ms)
        return left, effects


def _leaving(group: ConsumerGroup, leaving: LeaveGroupRequest.Member) -> ConsumerMember:
    """Return the leaving member. With an instance id alone, an administrator removes it."""
    instance_id, member_id = leaving.group_instance_id, leaving.member_id
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            raise unknown_member(member_id, group.group_id)
        return member
    present = group.static_member(instance_id)
    if present is not None and member_id == NO_MEMBER_ID:
        return present
    return check_instance(present, member_id, instance_id)


def _classic(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerMember, ConsumerGroupMemberMetadataValue.ClassicMemberMetadata]:
    """A member of the classic protocol, and its metadata. Raises ApiError for any other."""
    if instance_id is None:
        member = group.members.get(member_id)
    else:
        member = check_instance(group.static_member(instance_id), member_id, instance_id)
    if member is None or member.classic is None:
        raise unknown_member(member_id, group.group_id)
    return member, member.classic


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return whether another member still owns a partition of the member's target."""
    return any(
        partition not in member.assigned.get(topic_id, {})
        and group.owner_epoch(topic_id, partition) != NOBODY
        for topic_id, partitions in group.target_of(member).items()
        for partition in partitions
    )
