"""Share groups: membership and description (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int16, int32, string, struct, uuid
from protocol.schema import Request, Response, Struct

if TYPE_CHECKING:
    from uuid import UUID


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


class ShareGroupHeartbeatTopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class ShareGroupHeartbeatResponse(
    Response, request=ShareGroupHeartbeatRequest, versions="0-1", flexible="0+"
):
    """Answer to ShareGroupHeartbeatRequest."""

    class Assignment(Struct):
        """What the member shall read."""

        topic_partitions: list[ShareGroupHeartbeatTopicPartitions] = array(
            ShareGroupHeartbeatTopicPartitions
        )

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


class ShareGroupDescribeTopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: UUID = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class ShareGroupDescribeAssignment(Struct):
    """What a member reads."""

    topic_partitions: list[ShareGroupDescribeTopicPartitions] = array(
        ShareGroupDescribeTopicPartitions
    )


class ShareGroupDescribeResponse(
    Response, request=ShareGroupDescribeRequest, versions="0-1", flexible="0+"
):
    """Answer to ShareGroupDescribeRequest."""

    class Group(Struct):
        """A share group."""

        class Member(Struct):
            """A member and what it reads."""

            member_id: str = string()
            rack_id: str | None = string(default=None, nullable="0+")
            member_epoch: int = int32()
            client_id: str = string()
            client_host: str = string()
            subscribed_topic_names: list[str] = array(string)
            assignment: ShareGroupDescribeAssignment = struct(ShareGroupDescribeAssignment)

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
