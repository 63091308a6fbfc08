"""Committing offsets inside a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.fields import array, int16, int32, int64, string, uuid
from protocol.schema import Request, Response, Struct
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID


class TxnOffsetCommitRequest(Request, key=ApiKey.TXN_OFFSET_COMMIT, versions="0-6", flexible="3+"):
    """Store a group's positions as part of a transaction."""

    class Topic(Struct):
        """Positions in one topic."""

        class Partition(Struct):
            """A position in one partition."""

            partition_index: int = int32()
            committed_offset: int = int64()
            committed_leader_epoch: int = int32("2+", default=-1)
            """Epoch of the last record that was read; -1 if not known."""
            committed_metadata: str | None = string(nullable="0+")

        name: str = string("0-5", default="")
        topic_id: UUID = uuid("6+", default=ZERO_UUID)
        partitions: list[Partition] = array(Partition)

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id_or_member_epoch: int = int32("3+", default=-1)
    """-1 skips the check of the member (before KIP-447)."""
    member_id: str = string("3+", default="")
    group_instance_id: str | None = string("3+", default=None, nullable="0+")
    topics: list[Topic] = array(Topic)


class TxnOffsetCommitResponse(
    Response, request=TxnOffsetCommitRequest, versions="0-6", flexible="3+"
):
    """Answer to TxnOffsetCommitRequest."""

    class Topic(Struct):
        """Results for the offsets of one topic."""

        class Partition(Struct):
            """Result for one offset."""

            partition_index: int = int32()
            error_code: int = int16()

        name: str = string("0-5", default="")
        topic_id: UUID = uuid("6+", default=ZERO_UUID)
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32(default=0)
    topics: list[Topic] = array(Topic)
