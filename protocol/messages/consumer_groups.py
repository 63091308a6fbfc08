"""Groups of the new protocol (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, string, struct, uuid
from protocol.schema import Request, Response, Struct

if TYPE_CHECKING:
    from uuid import UUID


class TopicPartitions(Struct):
    """Partitions of one topic; this and the next struct are also used by share groups."""

    topic_id: UUID = uuid()
    partitions: list[int] = array(int32)


class Assignment(Struct):
    """Partitions assigned to a member: to own, or in a share group to read."""

    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class NamedTopicPartitions(Struct):
    """Partitions of one topic, with its name."""

    topic_id: UUID = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class DescribedAssignment(Struct):
    """Current or target assignment of a member, with topic names."""

    topic_partitions: list[NamedTopicPartitions] = array(NamedTopicPartitions)


class ConsumerGroupHeartbeatRequest(
    Request, key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+"
):
    """Join, stay in or leave a group of the new protocol: one request for all."""

    group_id: str = string()
    member_id: str = string()
    """Made by the client since v1; in v0 empty to join."""
    member_epoch: int = int32()
    """0 joins, -1 leaves, -2 leaves temporarily (static members); else the member's epoch."""
    instance_id: str | None = string(default=None, nullable="0+")
    rack_id: str | None = string(default=None, nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    """Time it may take to give up partitions; -1 if unchanged."""
    subscribed_topic_names: list[str] | None = array(string, default=None, nullable="0+")
    """Null if unchanged."""
    subscribed_topic_regex: str | None = string("1+", default=None, nullable="0+")
    server_assignor: str | None = string(default=None, nullable="0+")
    topic_partitions: list[TopicPartitions] | None = array(
        TopicPartitions, default=None, nullable="0+"
    )
    """Owned partitions; null if unchanged."""


class ConsumerGroupHeartbeatResponse(
    Response, request=ConsumerGroupHeartbeatRequest, versions="0-1", flexible="0+"
):
    """Answer to ConsumerGroupHeartbeatRequest."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    member_id: str | None = string(default=None, nullable="0+")
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = struct(Assignment, default=None, nullable="0+")
    """Null if unchanged."""


class ConsumerGroupDescribeRequest(
    Request, key=ApiKey.CONSUMER_GROUP_DESCRIBE, versions="0-1", flexible="0+"
):
    """Describe groups of the new protocol."""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class ConsumerGroupDescribeResponse(
    Response, request=ConsumerGroupDescribeRequest, versions="0-1", flexible="0+"
):
    """Answer to ConsumerGroupDescribeRequest."""

    class Group(Struct):
        """A group of the new protocol."""

        class Member(Struct):
            """A member, its current and its target assignment."""

            member_id: str = string()
            instance_id: str | None = string(default=None, nullable="0+")
            rack_id: str | None = string(default=None, nullable="0+")
            member_epoch: int = int32()
            client_id: str = string()
            client_host: str = string()
            subscribed_topic_names: list[str] = array(string)
            subscribed_topic_regex: str | None = string(default=None, nullable="0+")
            assignment: DescribedAssignment = struct(DescribedAssignment)
            target_assignment: DescribedAssignment = struct(DescribedAssignment)
            member_type: int = int8("1+", default=-1)
            """0 classic, 1 consumer; -1 if not known (KIP-1099)."""

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
