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
        """A group and the partitions to read."""

        class Topic(Struct):
            """Partitions of one topic."""

            topic_name: str = string()
            partitions: list[int] = array(int32)

        group_id: str = string()
        topics: list[Topic] | None = array(Topic, nullable="0+")
        """Null asks for all."""

    groups: list[Group] = array(Group)


class DescribeShareGroupOffsetsResponse(
    Response, request=DescribeShareGroupOffsetsRequest, versions="0-1", flexible="0+"
):
    """Answer to DescribeShareGroupOffsetsRequest."""

    class Group(Struct):
        """The start offsets of one group."""

        class Topic(Struct):
            """Start offsets in one topic."""

            class Partition(Struct):
                """The start offset in one partition."""

                partition_index: int = int32()
                start_offset: int = int64()
                leader_epoch: int = int32()
                lag: int = int64("1+", default=-1)
                """Records that are yet to be delivered; -1 if not known (KIP-1226)."""
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
        """Start offsets to set in one topic."""

        class Partition(Struct):
            """The start offset to set in one partition."""

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
        """Results for the offsets of one topic."""

        class Partition(Struct):
            """Result for one offset."""

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
        """A topic whose start offsets are to be deleted."""

        topic_name: str = string()

    group_id: str = string()
    topics: list[Topic] = array(Topic)


class DeleteShareGroupOffsetsResponse(
    Response, request=DeleteShareGroupOffsetsRequest, versions="0", flexible="0+"
):
    """Answer to DeleteShareGroupOffsetsRequest."""

    class Response(Struct):
        """Result for one topic."""

        topic_name: str = string()
        topic_id: UUID = uuid()
        error_code: int = int16()
        error_message: str | None = string(default=None, nullable="0+")

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    responses: list[Response] = array(Response)
