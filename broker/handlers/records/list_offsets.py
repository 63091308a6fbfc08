"""ListOffsets: where a partition starts and ends, and the offset of a timestamp.

Versions 1 to 11. Special timestamps: -1 latest, -2 earliest, -3 the greatest timestamp (v7), -4 the
earliest local (v8), -5 the latest tiered (v9), -6 the earliest waiting for upload (v11). Nothing is
tiered here, so -4 is the log's start and -5 and -6 find nothing.

Offsets by time, and -3, are searched for in slices, after everything else of the request: a whole
segment may have to be looked at.

Consumers see up to the high watermark, or the last stable offset; followers see all. A new leader
whose high watermark has not reached the start of its epoch answers OFFSET_NOT_AVAILABLE: an earlier
leader may have reported a higher one, and the end that consumers see never goes back (KIP-207).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.handlers.records.local_replica import require_replica
from broker.partitions.log_search import searched
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_topic
from broker.requests.steps import in_steps
from broker.runtime.deferred import in_background
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.partitions.partition import Partition
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.runtime.deferred import Deferred
    from storage.log.log import Log
    from storage.segment.time_search import Found as Hit
    from storage.segment.time_search import Search

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
CONSUMER = -1
DEBUGGER = -2
"""Replica id of a debugging client: it reads like a follower, from any replica."""
FIRST_VERSION_WITH_NOT_AVAILABLE = 5


class View(NamedTuple):
    """Part of a partition that is visible to the client."""

    is_consumer: bool = True
    is_read_committed: bool = False
    is_leader_asked: bool = True


class Found(NamedTuple):
    """An offset with its timestamp and leader epoch; -1 where there is none."""

    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = -1


class ByTime(NamedTuple):
    """A partition in which a time is searched for, and its answer, which has to be filled in."""

    topic: str
    wanted: Wanted
    answer: Answer


@handles(ListOffsetsRequest, versions="1-11")
@in_steps
def list_offsets(
    context: Context, request: ListOffsetsRequest
) -> Steps[ListOffsetsResponse | Deferred[ListOffsetsResponse]]:
    """Look each partition up; one that is listed twice is an invalid request (for it alone)."""
    counts: dict[tuple[str, int], int] = {}
    for topic in request.topics:
        for wanted in topic.partitions:
            key = (topic.name, wanted.partition_index)
            counts[key] = counts.get(key, 0) + 1
        yield
    view = View(
        is_consumer=request.replica_id == CONSUMER,
        is_read_committed=request.isolation_level == READ_COMMITTED,
        is_leader_asked=request.replica_id != DEBUGGER,
    )
    response = ListOffsetsResponse(topics=[])
    searches: list[ByTime] = []
    for topic in request.topics:
        answers = []
        may = is_allowed_on_topic(context, AclOperation.DESCRIBE, topic.name)
        for wanted in topic.partitions:
            if not may:
                answers.append(_refused(wanted))
                yield
                continue
            is_double = counts[topic.name, wanted.partition_index] > 1
            answers.append(_answer(context, topic.name, wanted, view, is_double))
            if _is_searched_for(wanted) and not answers[-1].error_code:
                searches.append(ByTime(topic.name, wanted, answers[-1]))
            yield
        response.topics.append(ListOffsetsResponse.Topic(name=topic.name, partitions=answers))
        yield
    if not searches:
        return response
    search = _search_all(context, searches, view, response)
    return in_background(context.broker.spawn, search, "offsets by time")


async def _search_all(
    context: Context, searches: Sequence[ByTime], view: View, response: ListOffsetsResponse
) -> ListOffsetsResponse:
    slices = context.broker.slices()
    for topic, wanted, answer in searches:
        try:
            partition = _replica(context, topic, wanted, view)
            search = _search(partition.log, wanted.timestamp)
            hit = await searched(search, slices, context.broker.compute_pool)
            _fill(answer, _shown_of(_replica(context, topic, wanted, view), hit, view))
        except ApiError as error:
            answer.error_code = _shown(context, error.code)
    return response


def _search(log: Log, timestamp: int) -> Search[Hit]:
    if timestamp == MAX_TIMESTAMP:
        return log.reader.search_max_timestamp()
    return log.reader.search_timestamp(timestamp)


def _refused(wanted: Wanted) -> Answer:
    """The answer for a topic that the client may not describe."""
    return Answer(
        partition_index=wanted.partition_index, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )


def _answer(context: Context, topic: str, wanted: Wanted, view: View, is_double: bool) -> Answer:
    try:
        if is_double:
            raise ApiError(ErrorCode.INVALID_REQUEST, "partition is listed twice")
        if wanted.timestamp < 0:
            first_version = FIRST_VERSION.get(wanted.timestamp)
            if first_version is None or context.api_version < first_version:
                raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        partition = _replica(context, topic, wanted, view)
        found = Found() if _is_searched_for(wanted) else _find(partition, wanted.timestamp, view)
    except ApiError as error:
        return Answer(
            partition_index=wanted.partition_index, error_code=_shown(context, error.code)
        )
    answer = Answer(partition_index=wanted.partition_index, error_code=ErrorCode.NONE)
    _fill(answer, found)
    return answer


def _is_searched_for(wanted: Wanted) -> bool:
    return wanted.timestamp >= 0 or wanted.timestamp == MAX_TIMESTAMP


def _fill(answer: Answer, found: Found) -> None:
    answer.offset, answer.timestamp, answer.leader_epoch = found


def _shown(context: Context, code: ErrorCode) -> ErrorCode:
    """The error, replaced by the nearest one that the client's version knows."""
    is_old = context.api_version < FIRST_VERSION_WITH_NOT_AVAILABLE
    if is_old and code is ErrorCode.OFFSET_NOT_AVAILABLE:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return code


def _replica(context: Context, topic: str, wanted: Wanted, view: View) -> Partition:
    partition = require_replica(context.broker, topic, wanted.partition_index)
    partition.check_epoch(wanted.current_leader_epoch)
    if view.is_leader_asked:
        partition.check_leads()
    return partition


def _find(partition: Partition, special: int, view: View) -> Found:
    """The offset for a special value, within what `view` shows. Raises OFFSET_NOT_AVAILABLE."""
    log = partition.log
    if special == LATEST:
        _check_end_is_known(partition, view)
        return Found(_end(partition, view), leader_epoch=partition.leader_epoch)
    if special in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return Found(start, leader_epoch=log.epochs.epoch_at(start))
    return Found()  # nothing is tiered


def _end(partition: Partition, view: View) -> int:
    if view.is_consumer:
        return partition.readable_end(is_read_committed=view.is_read_committed)
    return partition.log.log_end_offset


def _shown_of(partition: Partition, hit: Hit, view: View) -> Found:
    """Result of a search, if visible in `view`. Raises ApiError OFFSET_NOT_AVAILABLE."""
    if hit is None or hit.offset >= _end(partition, view):
        _check_end_is_known(partition, view)
        return Found()
    return Found(hit.offset, hit.timestamp, partition.log.epochs.epoch_at(hit.offset))


def _check_end_is_known(partition: Partition, view: View) -> None:
    if view.is_consumer and partition.is_behind_its_epoch:
        raise ApiError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"the high watermark of {partition.topic}-{partition.index} is "
            f"{partition.log.high_watermark}, its leader epoch began at "
            f"{partition.leader_epoch_start_offset}",
        )
