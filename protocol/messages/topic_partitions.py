"""Paged description of topics (KIP-966)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int16, int32, string, struct, uuid
from protocol.schema import Request, Response, Struct

if TYPE_CHECKING:
    from uuid import UUID


class DescribeTopicPartitionsRequest(
    Request, key=ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions="0", flexible="0+"
):
    """Describe topics page by page."""

    class Topic(Struct):
        """One of the `topics`."""

        name: str = string()

    class Cursor(Struct):
        """The `cursor`."""

        topic_name: str = string()
        partition_index: int = int32()

    topics: list[Topic] = array(Topic)
    response_partition_limit: int = int32(default=2000)
    cursor: Cursor | None = struct(Cursor, default=None, nullable="0+")


class DescribeTopicPartitionsResponse(
    Response, request=DescribeTopicPartitionsRequest, versions="0", flexible="0+"
):
    """Answer to DescribeTopicPartitionsRequest."""

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            error_code: int = int16()
            partition_index: int = int32()
            leader_id: int = int32()
            leader_epoch: int = int32(default=-1)
            replica_nodes: list[int] = array(int32)
            isr_nodes: list[int] = array(int32)
            eligible_leader_replicas: list[int] | None = array(int32, default=None, nullable="0+")
            last_known_elr: list[int] | None = array(int32, default=None, nullable="0+")
            offline_replicas: list[int] = array(int32)

        error_code: int = int16()
        name: str | None = string(nullable="0+")
        topic_id: UUID = uuid()
        is_internal: bool = boolean(default=False)
        partitions: list[Partition] = array(Partition)
        topic_authorized_operations: int = int32(default=-2147483648)

    class NextCursor(Struct):
        """The `next_cursor`."""

        topic_name: str = string()
        partition_index: int = int32()

    throttle_time_ms: int = int32(default=0)
    topics: list[Topic] = array(Topic)
    next_cursor: NextCursor | None = struct(NextCursor, default=None, nullable="0+")
