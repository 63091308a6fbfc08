"""ListOffsets: where a partition starts and ends, and which offset goes with a time.

Versions 1 to 11. Special timestamps: -1 latest, -2 earliest, -3 the greatest timestamp (v7), -4 the
earliest local (v8), -5 the latest tiered (v9), -6 the earliest waiting for upload (v11). Nothing is
tiered here, so -4 is the log's start and -5 and -6 find nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.routing import handles
from protocol.errors import ApiError, ErrorCode
from protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

if TYPE_CHECKING:
    from broker.context import Context
    from broker.partition import Partition

Answer = ListOffsetsResponse.Topic.Partition
Wanted = ListOffsetsRequest.Topic.Partition

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
FIRST_VERSION = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
READ_COMMITTED = 1


class Found(NamedTuple):
    """An offset with its timestamp and leader epoch; -1 where there is none."""

    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1


@handles(ListOffsetsRequest, versions="1-11")
def list_offsets(context: Context, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Look each partition up; one that is listed twice is an invalid request (for it alone)."""
    counts: dict[tuple[str, int], int] = {}
    for topic in request.topics:
        for wanted in topic.partitions:
            key = (topic.name, wanted.partition_index)
            counts[key] = counts.get(key, 0) + 1
    is_read_committed = request.isolation_level == READ_COMMITTED
    response = ListOffsetsResponse(topics=[])
    for topic in request.topics:
        answers = []
        for wanted in topic.partitions:
            is_double = counts[topic.name, wanted.partition_index] > 1
            answers.append(_answer(context, topic.name, wanted, is_read_committed, is_double))
        response.topics.append(ListOffsetsResponse.Topic(name=topic.name, partitions=answers))
    return response


def _answer(
    context: Context, topic: str, wanted: Wanted, is_read_committed: bool, is_double: bool
) -> Answer:
    try:
        if is_double:
            raise ApiError(ErrorCode.INVALID_REQUEST, "partition is listed twice")
        if wanted.timestamp < 0:
            first_version = FIRST_VERSION.get(wanted.timestamp)
            if first_version is None or context.api_version < first_version:
                raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        partition = _leader(context, topic, wanted)
        found = find(partition, wanted.timestamp, is_read_committed=is_read_committed)
    except ApiError as error:
        return Answer(partition_index=wanted.partition_index, error_code=error.code)
    return Answer(
        partition_index=wanted.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


def _leader(context: Context, topic: str, wanted: Wanted) -> Partition:
    partition = context.broker.replicas.partition(topic, wanted.partition_index)
    if partition is None:
        known = context.broker.metadata.partition(topic, wanted.partition_index)
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if known is None
            else ErrorCode.NOT_LEADER_OR_FOLLOWER
        )
    partition.check_leader(wanted.current_leader_epoch)
    return partition


def find(partition: Partition, timestamp: int, *, is_read_committed: bool) -> Found:
    """The offset that `timestamp` (or a special value) stands for, as a consumer may see it."""
    log = partition.log
    end = partition.readable_end(is_read_committed=is_read_committed)
    if timestamp == LATEST:
        return Found(end, leader_epoch=partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return Found(start, leader_epoch=log.epoch_at(start))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return Found()
    if timestamp == MAX_TIMESTAMP:
        hit = log.offset_of_max_timestamp()
    else:
        hit = log.offset_for_timestamp(timestamp)
    if hit is None or hit.offset >= end:
        return Found()
    return Found(hit.offset, hit.timestamp, log.epoch_at(hit.offset))
