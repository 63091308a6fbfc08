"""Responses of the group protocol that are needed in several places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.group import NO_GENERATION, NO_MEMBER_ID
from protocol.errors import ErrorCode
from protocol.messages.group_membership import JoinGroupResponse, SyncGroupResponse

if TYPE_CHECKING:
    from coordinator.groups.group import ClassicGroup
    from coordinator.groups.member import Member

_NOT_COMMITTED = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
_GROUP_NOT_STORED = _NOT_COMMITTED | {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
_OFFSETS_NOT_STORED = _NOT_COMMITTED | {
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
_TRANSACTIONAL_OFFSETS_NOT_STORED = _NOT_COMMITTED | {
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def group_storage_error(error: ErrorCode) -> ErrorCode:
    """Return the error for a group member whose group's record could not be stored."""
    return _GROUP_NOT_STORED.get(error, error)


def offset_storage_error(error: ErrorCode) -> ErrorCode:
    """Return the error for an OffsetCommit whose records could not be stored."""
    return _OFFSETS_NOT_STORED.get(error, error)


def transactional_storage_error(error: ErrorCode) -> ErrorCode:
    """Return the error for a TxnOffsetCommit whose records could not be stored."""
    return _TRANSACTIONAL_OFFSETS_NOT_STORED.get(error, error)


def join_error(error: ErrorCode, member_id: str = NO_MEMBER_ID) -> JoinGroupResponse:
    """A refused JoinGroup. `protocol_name` is null here and "" below version 7."""
    return JoinGroupResponse(
        error_code=error,
        member_id=member_id,
        generation_id=NO_GENERATION,
        protocol_name=None,
        leader=NO_MEMBER_ID,
        members=[],
    )


def join_success(group: ClassicGroup, member: Member) -> JoinGroupResponse:
    """The group's present generation, for `member`; the leader gets the list of members."""
    is_leader = group.leader_id == member.member_id
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader_id or NO_MEMBER_ID,
        member_id=member.member_id,
        members=_members_for_leader(group) if is_leader else [],
    )


def sync_error(error: ErrorCode) -> SyncGroupResponse:
    """A refused SyncGroup."""
    return SyncGroupResponse(error_code=error, assignment=b"")


def sync_success(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    """An assignment."""
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=assignment,
    )


def refuse_sync(error: ErrorCode) -> SyncGroupResponse:
    """The answer to SyncGroup when storing the generation failed with `error`."""
    return sync_error(group_storage_error(error))


def _members_for_leader(group: ClassicGroup) -> list[JoinGroupResponse.Member]:
    protocol = group.protocol or ""
    return [
        JoinGroupResponse.Member(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata_for(protocol),
        )
        for member in group.members.values()
    ]
