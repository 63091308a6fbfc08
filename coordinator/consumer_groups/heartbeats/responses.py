"""Answers to ConsumerGroupHeartbeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.modern_groups.assignments import assignment
from coordinator.storage_errors import storage_error
from protocol.errors import ApiError, ErrorCode
from protocol.messages.consumer_groups import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from coordinator.consumer_groups.member import ConsumerMember


def heartbeat_error(error: ApiError) -> ConsumerGroupHeartbeatResponse:
    """A refused heartbeat."""
    return ConsumerGroupHeartbeatResponse(
        error_code=error.code,
        error_message=error.message,
        member_epoch=0,
        heartbeat_interval_ms=0,
    )


def heartbeat_success(
    member: ConsumerMember, interval_ms: int, *, tells_assignment: bool
) -> ConsumerGroupHeartbeatResponse:
    """Build the response to a member: its epoch, and its assignment if that has changed."""
    return ConsumerGroupHeartbeatResponse(
        error_code=ErrorCode.NONE,
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=assignment(member.assigned) if tells_assignment else None,
    )


def departure_success(member_id: str, member_epoch: int) -> ConsumerGroupHeartbeatResponse:
    """Build the response to a leaving member."""
    return ConsumerGroupHeartbeatResponse(
        error_code=ErrorCode.NONE,
        member_id=member_id,
        member_epoch=member_epoch,
        heartbeat_interval_ms=0,
    )


def refuse(error: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    """The answer when the records of a heartbeat could not be stored."""
    return heartbeat_error(ApiError(storage_error(error)))
