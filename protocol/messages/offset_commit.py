"""Committing group offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, int16, int32, int64, string, uuid
from protocol.schema import Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class OffsetCommitRequest(Request, key=ApiKey.OFFSET_COMMIT, versions="0-10", flexible="8+"):
    """Store a group's positions."""

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition_index: int = int32()
            committed_offset: int = int64()
            committed_leader_epoch: int = int32("6+", default=-1)
            commit_timestamp: int = int64("1", default=-1)
            committed_metadata: str | None = string(nullable="0+")

        name: str = string("0-9", default="")
        topic_id: UUID = uuid("10+", default=ZERO_UUID)
        partitions: list[Partition] = array(Partition)

    group_id: str = string()
    generation_id_or_member_epoch: int = int32("1+", default=-1)
    member_id: str = string("1+", default="")
    group_instance_id: str | None = string("7+", default=None, nullable="0+")
    retention_time_ms: int = int64("2-4", default=-1)
    topics: list[Topic] = array(Topic)


class OffsetCommitResponse(Response, request=OffsetCommitRequest, versions="0-10", flexible="8+"):
    """Answer to OffsetCommitRequest."""

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition_index: int = int32()
            error_code: int = int16()

        name: str = string("0-9", default="")
        topic_id: UUID = uuid("10+", default=ZERO_UUID)
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32("3+", default=0)
    topics: list[Topic] = array(Topic)
