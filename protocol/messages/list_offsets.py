"""Finding offsets by time and position."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, int8, int16, int32, int64, string
from protocol.schema import Request, Response, Struct


class ListOffsetsRequest(Request, key=ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+"):
    """Find offsets: earliest, latest, by timestamp, of the greatest timestamp."""

    class Topic(Struct):
        """Offsets to find in one topic."""

        class Partition(Struct):
            """Offset to find in one partition."""

            partition_index: int = int32()
            current_leader_epoch: int = int32("4+", default=-1)
            """As in Fetch (KIP-320); -1 skips the check."""
            timestamp: int = int64()
            """In milliseconds, or -1 latest, -2 earliest, -3 greatest timestamp (v7), -4 earliest
            on local disk (v8), -5 latest in tiered storage (v9), -6 earliest not yet there (v11).
            """
            max_num_offsets: int = int32("0", default=1)
            """Number of offsets to list in v0."""

        name: str = string()
        partitions: list[Partition] = array(Partition)

    replica_id: int = int32()
    """Broker id of a follower, which may see past the high watermark; -1 for consumers."""
    isolation_level: int = int8("2+", default=0)
    """With 1, "latest" is the last stable offset."""
    topics: list[Topic] = array(Topic)
    timeout_ms: int = int32("10+", default=0)
    """For lookups in tiered storage (KIP-1075)."""


class ListOffsetsResponse(Response, request=ListOffsetsRequest, versions="0-11", flexible="6+"):
    """Answer to ListOffsetsRequest."""

    class Topic(Struct):
        """Offsets found in one topic."""

        class Partition(Struct):
            """Offset found in one partition."""

            partition_index: int = int32()
            error_code: int = int16()
            old_style_offsets: list[int] = array(int64, "0", default=())
            """In v0 only: offsets in falling order."""
            timestamp: int = int64("1+", default=-1)
            """Of the record that was found; -1 for earliest, latest and none."""
            offset: int = int64("1+", default=-1)
            """-1 if no record is that late."""
            leader_epoch: int = int32("4+", default=-1)
            """Of the record that was found; -1 if not known."""

        name: str = string()
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32("2+", default=0)
    topics: list[Topic] = array(Topic)
