"""Committing offsets inside a transaction."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, int16, int32, int64, string
from protocol.schema import Request, Response, Struct


class TxnOffsetCommitRequest(Request, key=ApiKey.TXN_OFFSET_COMMIT, versions="0-5", flexible="3+"):
    """Store a group's positions as part of a transaction."""

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition_index: int = int32()
            committed_offset: int = int64()
            committed_leader_epoch: int = int32("2+", default=-1)
            committed_metadata: str | None = string(nullable="0+")

        name: str = string()
        partitions: list[Partition] = array(Partition)

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32("3+", default=-1)
    member_id: str = string("3+", default="")
    group_instance_id: str | None = string("3+", default=None, nullable="0+")
    topics: list[Topic] = array(Topic)


class TxnOffsetCommitResponse(
    Response, request=TxnOffsetCommitRequest, versions="0-5", flexible="3+"
):
    """Answer to TxnOffsetCommitRequest."""

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition_index: int = int32()
            error_code: int = int16()

        name: str = string()
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32(default=0)
    topics: list[Topic] = array(Topic)
