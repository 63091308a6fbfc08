"""Moving the log start offset."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, int16, int32, int64, string
from protocol.schema import Request, Response, Struct


class DeleteRecordsRequest(Request, key=ApiKey.DELETE_RECORDS, versions="0-2", flexible="2+"):
    """Move the start of partitions' logs forward (KIP-107)."""

    class Topic(Struct):
        """Partitions of one topic."""

        class Partition(Struct):
            """New log start offset of one partition."""

            partition_index: int = int32()
            offset: int = int64()
            """Records before it are deleted; -1 for the high watermark.

            OFFSET_OUT_OF_RANGE past the high watermark.
            """

        name: str = string()
        partitions: list[Partition] = array(Partition)

    topics: list[Topic] = array(Topic)
    timeout_ms: int = int32()


class DeleteRecordsResponse(Response, request=DeleteRecordsRequest, versions="0-2", flexible="2+"):
    """Answer to DeleteRecordsRequest, given when the replicas have followed."""

    class Topic(Struct):
        """Results for the partitions of one topic."""

        class Partition(Struct):
            """Result for one partition."""

            partition_index: int = int32()
            low_watermark: int = int64()
            """Least log start offset among the live replicas; -1 with an error."""
            error_code: int = int16()

        name: str = string()
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32(default=0)
    topics: list[Topic] = array(Topic)
