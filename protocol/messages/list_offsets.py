"""Finding offsets by time and position."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, int8, int16, int32, int64, string
from protocol.schema import Request, Response, Struct


class ListOffsetsRequest(Request, key=ApiKey.LIST_OFFSETS, versions="0-11", flexible="6+"):
    """Find offsets: earliest, latest, by timestamp, of the greatest timestamp."""

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition_index: int = int32()
            current_leader_epoch: int = int32("4+", default=-1)
            timestamp: int = int64()
            max_num_offsets: int = int32("0", default=1)

        name: str = string()
        partitions: list[Partition] = array(Partition)

    replica_id: int = int32()
    isolation_level: int = int8("2+", default=0)
    topics: list[Topic] = array(Topic)
    timeout_ms: int = int32("10+", default=0)


class ListOffsetsResponse(Response, request=ListOffsetsRequest, versions="0-11", flexible="6+"):
    """Answer to ListOffsetsRequest."""

    class Topic(Struct):
        """One of the `topics`."""

        class Partition(Struct):
            """One of the `partitions`."""

            partition_index: int = int32()
            error_code: int = int16()
            old_style_offsets: list[int] = array(int64, "0", default=())
            timestamp: int = int64("1+", default=-1)
            offset: int = int64("1+", default=-1)
            leader_epoch: int = int32("4+", default=-1)

        name: str = string()
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32("2+", default=0)
    topics: list[Topic] = array(Topic)
