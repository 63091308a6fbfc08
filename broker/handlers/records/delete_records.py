"""DeleteRecords: moves the start of a partition's log forward.

Versions 0 to 2. Offset -1 stands for the high watermark; beyond it is OFFSET_OUT_OF_RANGE. An
offset before the present start changes nothing. Internal topics refuse, and so do topics that are
only compacted. The answer waits until all live replicas begin there and the new starts are on disk:
records that were reported deleted do not return after a crash (Apache Kafka checkpoints once a
minute). See `broker.handlers.records.delayed_delete_records`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.handlers.records.delayed_delete_records import (
    NO_LOW_WATERMARK,
    DelayedDeleteRecords,
    Deletion,
)
from broker.handlers.records.local_replica import require_replica
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_topic
from broker.requests.steps import in_steps
from controller.topics.topic_names import INTERNAL_TOPICS
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.runtime.deferred import Deferred
    from storage.directory.log_directory import LogDirectory

Answer = DeleteRecordsResponse.Topic.Partition

HIGH_WATERMARK = -1


@handles(DeleteRecordsRequest, versions="0-2")
@in_steps
def delete_records(
    context: Context, request: DeleteRecordsRequest
) -> Steps[Deferred[DeleteRecordsResponse]]:
    """Move the log starts; errors are per partition. The low watermark is that of all replicas."""
    loop = asyncio.get_running_loop()
    logs = context.broker.logs
    response = DeleteRecordsResponse(topics=[])
    deletions: dict[tuple[Partition, int], Deletion] = {}
    for topic in request.topics:
        answers: list[Answer] = []
        response.topics.append(DeleteRecordsResponse.Topic(name=topic.name, partitions=answers))
        yield
        may = is_allowed_on_topic(context, AclOperation.DELETE, topic.name)
        for wanted in topic.partitions:
            index = wanted.partition_index
            try:
                if not may:
                    raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                partition = _leader(context, topic.name, index)
                offset = _move_start(partition, wanted.offset)
            except ApiError as error:
                answers.append(_answer(index, error.code))
            else:
                same = deletions.get((partition, offset))  # named twice: one wait, for both
                if same is None:
                    same = Deletion(partition, offset, _answer(index, ErrorCode.NONE))
                    deletions[partition, offset] = same
                answers.append(same.answer)
            yield
    waits = list(deletions.values())
    delayed = DelayedDeleteRecords(context.broker, response, waits, request.timeout_ms)

    def note() -> None:
        written: frozenset[LogDirectory] = frozenset()
        try:
            written = logs.checkpoint_log_starts()
        finally:
            loop.call_soon_threadsafe(delayed.note_written, written)

    logs.settings.run_later(note)
    return delayed.deferred


def _answer(index: int, code: ErrorCode) -> Answer:
    return Answer(partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=code)


def _leader(context: Context, topic: str, index: int) -> Partition:
    if topic in INTERNAL_TOPICS:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic} is internal")
    if context.broker.metadata.partition(topic, index) is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = require_replica(context.broker, topic, index)
    partition.check_leads()
    if "delete" not in partition.log.config.cleanup_policy:
        raise ApiError(ErrorCode.POLICY_VIOLATION, f"{topic} does not delete records")
    return partition


def _move_start(partition: Partition, offset: int) -> int:
    """Move the log start; returns the offset, resolved if it was -1. Raises OFFSET_OUT_OF_RANGE."""
    log = partition.log
    target = log.high_watermark if offset == HIGH_WATERMARK else offset
    if target < 0:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is negative")
    if log.advance_log_start_offset(target):
        partition.wake()
    return target
