"""Classic group protocol: join, sync, heartbeat, leave."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, blob, boolean, int16, int32, string
from protocol.schema import Request, Response, Struct


class JoinGroupRequest(Request, key=ApiKey.JOIN_GROUP, versions="0-9", flexible="6+"):
    """Become, or stay, a member of a classic group.

    Answered when all members have joined the rebalance, or its timeout has passed.
    """

    class Protocol(Struct):
        """An assignment strategy that the member knows."""

        name: str = string()
        metadata: bytes = blob()
        """Opaque here; for consumers a ConsumerProtocolSubscription."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    """Time without a heartbeat after which the member is out; INVALID_SESSION_TIMEOUT outside
    `group.min.session.timeout.ms` to `group.max.session.timeout.ms`.
    """
    rebalance_timeout_ms: int = int32("1+", default=-1)
    """Time that a rebalance waits for this member to join again; in v0 the session timeout."""
    member_id: str = string()
    """Empty for a new member; since v4 it receives its id with MEMBER_ID_REQUIRED (KIP-394)."""
    group_instance_id: str | None = string("5+", default=None, nullable="0+")
    """Makes the member static (KIP-345): it keeps its place across restarts."""
    protocol_type: str = string()
    """"consumer" or "connect"; must be that of the group."""
    protocols: list[Protocol] = array(Protocol)
    """Protocols that the member supports, best first; members must have one in common."""
    reason: str | None = string("8+", default=None, nullable="0+")
    """Reason for joining, for the log (KIP-800)."""


class JoinGroupResponse(Response, request=JoinGroupRequest, versions="0-9", flexible="6+"):
    """Answer to JoinGroupRequest."""

    class Member(Struct):
        """A member, for the leader to assign to."""

        member_id: str = string()
        group_instance_id: str | None = string("5+", default=None, nullable="0+")
        metadata: bytes = blob()

    throttle_time_ms: int = int32("2+", default=0)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    """Counts the rebalances of the group; -1 with an error."""
    protocol_type: str | None = string("7+", default=None, nullable="0+")
    protocol_name: str | None = string(nullable="7+")
    """The strategy that was voted for."""
    leader: str = string()
    """Member that makes the assignment."""
    skip_assignment: bool = boolean("9+", default=False)
    """Tells a returning static leader that the assignment stands (KIP-814)."""
    member_id: str = string()
    members: list[Member] = array(Member)
    """All members, for the leader; nothing for the others."""


class SyncGroupRequest(Request, key=ApiKey.SYNC_GROUP, versions="0-5", flexible="4+"):
    """Send (the leader) and receive (all members) the assignment of a generation."""

    class Assignment(Struct):
        """Assignment of one member."""

        member_id: str = string()
        assignment: bytes = blob()
        """Opaque here; for consumers a ConsumerProtocolAssignment."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", default=None, nullable="0+")
    protocol_type: str | None = string("5+", default=None, nullable="0+")
    protocol_name: str | None = string("5+", default=None, nullable="0+")
    assignments: list[Assignment] = array(Assignment)
    """From the leader; the others send none."""


class SyncGroupResponse(Response, request=SyncGroupRequest, versions="0-5", flexible="4+"):
    """Answer to SyncGroupRequest; all members get theirs when the leader has handed in."""

    throttle_time_ms: int = int32("1+", default=0)
    error_code: int = int16()
    """REBALANCE_IN_PROGRESS sends the member back to JoinGroup."""
    protocol_type: str | None = string("5+", default=None, nullable="0+")
    protocol_name: str | None = string("5+", default=None, nullable="0+")
    assignment: bytes = blob()


class HeartbeatRequest(Request, key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+"):
    """Keep a member's session alive; learn whether a rebalance is under way."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", default=None, nullable="0+")


class HeartbeatResponse(Response, request=HeartbeatRequest, versions="0-4", flexible="4+"):
    """Answer to HeartbeatRequest."""

    throttle_time_ms: int = int32("1+", default=0)
    error_code: int = int16()
    """REBALANCE_IN_PROGRESS sends the member back to JoinGroup."""


class LeaveGroupRequest(Request, key=ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+"):
    """Take members out of a classic group."""

    class Member(Struct):
        """A member that leaves or is removed."""

        member_id: str = string()
        """Empty to remove a static member by its instance id alone."""
        group_instance_id: str | None = string(default=None, nullable="0+")
        reason: str | None = string("5+", default=None, nullable="0+")
        """Reason for leaving, for the log (KIP-800)."""

    group_id: str = string()
    member_id: str = string("0-2", default="")
    """The one member, before v3."""
    members: list[Member] = array(Member, "3+", default=())


class LeaveGroupResponse(Response, request=LeaveGroupRequest, versions="0-5", flexible="4+"):
    """Answer to LeaveGroupRequest."""

    class Member(Struct):
        """Result for one member."""

        member_id: str = string()
        group_instance_id: str | None = string(nullable="0+")
        error_code: int = int16()

    throttle_time_ms: int = int32("1+", default=0)
    error_code: int = int16()
    members: list[Member] = array(Member, "3+", default=())
