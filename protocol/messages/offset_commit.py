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
        """Positions in one topic."""

        class Partition(Struct):
            """A position in one partition."""

            partition_index: int = int32()
            committed_offset: int = int64()
            """Offset of the next record to read."""
            committed_leader_epoch: int = int32("6+", default=-1)
            """Epoch of the last record that was read (KIP-320); -1 if not known."""
            commit_timestamp: int = int64("1", default=-1)
            """In v1: time of the commit; -1 for now."""
            committed_metadata: str | None = string(nullable="0+")
            """Any text; OFFSET_METADATA_TOO_LARGE past `offset.metadata.max.bytes`."""

        name: str = string("0-9", default="")
        topic_id: UUID = uuid("10+", default=ZERO_UUID)
        partitions: list[Partition] = array(Partition)

    group_id: str = string()
    generation_id_or_member_epoch: int = int32("1+", default=-1)
    """Generation (classic) or member epoch (KIP-848); -1 for a commit from outside, allowed while
    the group is empty.
    """
    member_id: str = string("1+", default="")
    """Empty for a commit from outside."""
    group_instance_id: str | None = string("7+", default=None, nullable="0+")
    retention_time_ms: int = int64("2-4", default=-1)
    """In v2 to v4: retention time of the offsets; -1 for `offsets.retention.minutes`."""
    topics: list[Topic] = array(Topic)


class OffsetCommitResponse(Response, request=OffsetCommitRequest, versions="0-10", flexible="8+"):
    """Answer to OffsetCommitRequest."""

    class Topic(Struct):
        """Results for the offsets of one topic."""

        class Partition(Struct):
            """Result for one offset."""

            partition_index: int = int32()
            error_code: int = int16()

        name: str = string("0-9", default="")
        topic_id: UUID = uuid("10+", default=ZERO_UUID)
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32("3+", default=0)
    topics: list[Topic] = array(Topic)
