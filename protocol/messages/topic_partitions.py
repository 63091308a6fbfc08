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
        """One topic."""

        name: str = string()

    class Cursor(Struct):
        """First partition of the next page."""

        topic_name: str = string()
        partition_index: int = int32()

    topics: list[Topic] = array(Topic)
    """None asks for all topics that the client may see."""
    response_partition_limit: int = int32(default=2000)
    """Partitions per page; the broker has a limit of its own."""
    cursor: Cursor | None = struct(Cursor, default=None, nullable="0+")
    """Position to continue from; null for the first page."""


class DescribeTopicPartitionsResponse(
    Response, request=DescribeTopicPartitionsRequest, versions="0", flexible="0+"
):
    """Answer to DescribeTopicPartitionsRequest; topics are in order of names."""

    class Topic(Struct):
        """A topic, or the part of it that fits the page."""

        class Partition(Struct):
            """Replicas and leader of a partition."""

            error_code: int = int16()
            partition_index: int = int32()
            leader_id: int = int32()
            """-1 if there is none."""
            leader_epoch: int = int32(default=-1)
            replica_nodes: list[int] = array(int32)
            isr_nodes: list[int] = array(int32)
            eligible_leader_replicas: list[int] | None = array(int32, default=None, nullable="0+")
            """Outside the ISR, yet known to have all committed records (KIP-966)."""
            last_known_elr: list[int] | None = array(int32, default=None, nullable="0+")
            """Eligible before the leader was lost; null without KIP-966."""
            offline_replicas: list[int] = array(int32)

        error_code: int = int16()
        name: str | None = string(nullable="0+")
        topic_id: UUID = uuid()
        is_internal: bool = boolean(default=False)
        partitions: list[Partition] = array(Partition)
        topic_authorized_operations: int = int32(default=-2147483648)
        """Bits of the AclOperation codes."""

    class NextCursor(Struct):
        """First partition of the next page."""

        topic_name: str = string()
        partition_index: int = int32()

    throttle_time_ms: int = int32(default=0)
    topics: list[Topic] = array(Topic)
    next_cursor: NextCursor | None = struct(NextCursor, default=None, nullable="0+")
    """Cursor of the next request; null on the last page."""
