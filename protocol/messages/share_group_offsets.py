"""Share groups: their offsets (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, int16, int32, int64, string, uuid
from protocol.schema import Request, Response, Struct

if TYPE_CHECKING:
    from uuid import UUID


class DescribeShareGroupOffsetsRequest(
    Request, key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions="0-1", flexible="0+"
):
    """Read the start offsets of share groups."""

    class Group(Struct):
        """One of the `groups`."""

        class Topic(Struct):
            """One of the `topics`."""

            topic_name: str = string()
            partitions: list[int] = array(int32)

        group_id: str = string()
        topics: list[Topic] | None = array(Topic, nullable="0+")

    groups: list[Group] = array(Group)


class DescribeShareGroupOffsetsResponse(
    Response, request=DescribeShareGroupOffsetsRequest, versions="0-1", flexible="0+"
):
    """Answer to DescribeShareGroupOffsetsRequest."""

    class Group(Struct):
        """One of the `groups`."""

        class Topic(Struct):
            """One of the `topics`."""

            class Partition(Struct):
                """One of the `partitions`."""

                partition_index: int = int32()
                start_offset: int = int64()
                leader_epoch: int = int32()
                lag: int = int64("1+", default=-1)
                error_code: int = int16()
                error_message: str | None = string(default=None, nullable="0+")

            topic_name: str = string()
            topic_id: UUID = uuid()
            partitions: list[Partition] = array(Partition)

        group_id: str = string()
        topics: list[Topic] = array(Topic)
        error_code: int = int16()
        error_message: str | None = string(default=None, nullable="0+")

    throttle_time_ms: int = int32(default=0)
    groups: list[Group] = array(Group)


class AlterShareGroupOffsetsRequest(
    Request, key=ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions="0", flexible="0+"
):
    """Set the start offsets of a share group."""

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition_index: int = int32()
            start_offset: int = int64()

        topic_name: str = string()
        partitions: list[Partition] = array(Partition)

    group_id: str = string()
    topics: list[Topic] = array(Topic)


class AlterShareGroupOffsetsResponse(
    Response, request=AlterShareGroupOffsetsRequest, versions="0", flexible="0+"
):
    """Answer to AlterShareGroupOffsetsRequest."""

    class Response(Struct):
        """One of the `responses`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition_index: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")

        topic_name: str = string()
        topic_id: UUID = uuid()
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    responses: list[Response] = array(Response)


class DeleteShareGroupOffsetsRequest(
    Request, key=ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions="0", flexible="0+"
):
    """Delete the start offsets of a share group."""

    class Topic(Struct):
        """One of the `topics`."""

        topic_name: str = string()

    group_id: str = string()
    topics: list[Topic] = array(Topic)


class DeleteShareGroupOffsetsResponse(
    Response, request=DeleteShareGroupOffsetsRequest, versions="0", flexible="0+"
):
    """Answer to DeleteShareGroupOffsetsRequest."""

    class Response(Struct):
        """One of the `responses`."""

        topic_name: str = string()
        topic_id: UUID = uuid()
        error_code: int = int16()
        error_message: str | None = string(default=None, nullable="0+")

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    responses: list[Response] = array(Response)
