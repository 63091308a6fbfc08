"""Classic group protocol: join, sync, heartbeat, leave."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, blob, boolean, int16, int32, string
from protocol.schema import Request, Response, Struct


class JoinGroupRequest(Request, key=ApiKey.JOIN_GROUP, versions="0-9", flexible="6+"):
    """Become, or stay, a member of a classic group; answered when the rebalance has everybody."""

    class Protocol(Struct):
        """One of the `protocols`."""

        name: str = string()
        metadata: bytes = blob()

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32("1+", default=-1)
    member_id: str = string()
    group_instance_id: str | None = string("5+", default=None, nullable="0+")
    protocol_type: str = string()
    protocols: list[Protocol] = array(Protocol)
    reason: str | None = string("8+", default=None, nullable="0+")


class JoinGroupResponse(Response, request=JoinGroupRequest, versions="0-9", flexible="6+"):
    """Answer to JoinGroupRequest."""

    class Member(Struct):
        """One of the `members`."""

        member_id: str = string()
        group_instance_id: str | None = string("5+", default=None, nullable="0+")
        metadata: bytes = blob()

    throttle_time_ms: int = int32("2+", default=0)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string("7+", default=None, nullable="0+")
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean("9+", default=False)
    member_id: str = string()
    members: list[Member] = array(Member)


class SyncGroupRequest(Request, key=ApiKey.SYNC_GROUP, versions="0-5", flexible="4+"):
    """Hand in (the leader) and receive (everybody) the assignment of a generation."""

    class Assignment(Struct):
        """One of the `assignments`."""

        member_id: str = string()
        assignment: bytes = blob()

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", default=None, nullable="0+")
    protocol_type: str | None = string("5+", default=None, nullable="0+")
    protocol_name: str | None = string("5+", default=None, nullable="0+")
    assignments: list[Assignment] = array(Assignment)


class SyncGroupResponse(Response, request=SyncGroupRequest, versions="0-5", flexible="4+"):
    """Answer to SyncGroupRequest."""

    throttle_time_ms: int = int32("1+", default=0)
    error_code: int = int16()
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


class LeaveGroupRequest(Request, key=ApiKey.LEAVE_GROUP, versions="0-5", flexible="4+"):
    """Take members out of a classic group."""

    class Member(Struct):
        """One of the `members`."""

        member_id: str = string()
        group_instance_id: str | None = string(default=None, nullable="0+")
        reason: str | None = string("5+", default=None, nullable="0+")

    group_id: str = string()
    member_id: str = string("0-2", default="")
    members: list[Member] = array(Member, "3+", default=())


class LeaveGroupResponse(Response, request=LeaveGroupRequest, versions="0-5", flexible="4+"):
    """Answer to LeaveGroupRequest."""

    class Member(Struct):
        """One of the `members`."""

        member_id: str = string()
        group_instance_id: str | None = string(nullable="0+")
        error_code: int = int16()

    throttle_time_ms: int = int32("1+", default=0)
    error_code: int = int16()
    members: list[Member] = array(Member, "3+", default=())
