"""End offsets of leader epochs (KIP-101, KIP-320)."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, int16, int32, int64, string
from protocol.schema import Request, Response, Struct


class OffsetForLeaderEpochRequest(
    Request, key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions="0-4", flexible="4+"
):
    """Ask where a leader epoch ends in the leader's log."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """The epoch in question, of one partition."""

            partition: int = int32()
            current_leader_epoch: int = int32("2+", default=-1)
            """As in Fetch (KIP-320); -1 skips the check."""
            leader_epoch: int = int32()
            """Epoch to look up."""

        topic: str = string()
        partitions: list[Partition] = array(Partition)

    replica_id: int = int32("3+", default=-2)
    """Broker id of a follower; -1 for consumers, and -2 for tools."""
    topics: list[Topic] = array(Topic)


class OffsetForLeaderEpochResponse(
    Response, request=OffsetForLeaderEpochRequest, versions="0-4", flexible="4+"
):
    """Answer to OffsetForLeaderEpochRequest."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """End offset of the epoch in one partition."""

            error_code: int = int16()
            partition: int = int32()
            leader_epoch: int = int32("1+", default=-1)
            """The greatest epoch of the log that is not above the one asked for; -1 if there is
            none.
            """
            end_offset: int = int64(default=-1)
            """First offset of the next epoch, or the log end; -1 if there is no such epoch."""

        topic: str = string()
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32("2+", default=0)
    topics: list[Topic] = array(Topic)
