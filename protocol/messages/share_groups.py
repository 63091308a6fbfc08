"""Share groups: membership and description (KIP-932)."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int16, int32, string, struct
from protocol.messages.consumer_groups import Assignment, DescribedAssignment
from protocol.schema import Request, Response, Struct


class ShareGroupHeartbeatRequest(
    Request, key=ApiKey.SHARE_GROUP_HEARTBEAT, versions="0-1", flexible="0+"
):
    """Join, stay in or leave a share group."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    """0 joins, -1 leaves; else the epoch it is in."""
    rack_id: str | None = string(default=None, nullable="0+")
    subscribed_topic_names: list[str] | None = array(string, default=None, nullable="0+")
    """Null if unchanged."""


class ShareGroupHeartbeatResponse(
    Response, request=ShareGroupHeartbeatRequest, versions="0-1", flexible="0+"
):
    """Answer to ShareGroupHeartbeatRequest."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    member_id: str | None = string(default=None, nullable="0+")
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct(Assignment, default=None, nullable="0+")
    """Null if unchanged."""


class ShareGroupDescribeRequest(
    Request, key=ApiKey.SHARE_GROUP_DESCRIBE, versions="0-1", flexible="0+"
):
    """Describe share groups."""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class ShareGroupDescribeResponse(
    Response, request=ShareGroupDescribeRequest, versions="0-1", flexible="0+"
):
    """Answer to ShareGroupDescribeRequest."""

    class Group(Struct):
        """A share group."""

        class Member(Struct):
            """A member and its assignment."""

            member_id: str = string()
            rack_id: str | None = string(default=None, nullable="0+")
            member_epoch: int = int32()
            client_id: str = string()
            client_host: str = string()
            subscribed_topic_names: list[str] = array(string)
            assignment: DescribedAssignment = struct(DescribedAssignment)

        error_code: int = int16()
        error_message: str | None = string(default=None, nullable="0+")
        group_id: str = string()
        group_state: str = string()
        group_epoch: int = int32()
        assignment_epoch: int = int32()
        assignor_name: str = string()
        members: list[Member] = array(Member)
        authorized_operations: int = int32(default=-2147483648)

    throttle_time_ms: int = int32(default=0)
    groups: list[Group] = array(Group)
