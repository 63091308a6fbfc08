"""Writes the markers that end transactions to the partitions led here.

A marker is a control batch of one record at the end of each partition of the transaction. In a
partition of `__consumer_offsets` it also commits or drops the pending positions of the groups
there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.replication.replica_machine import ACKS_ALL
from broker.runtime.countdown import Countdown
from broker.runtime.deferred import errors_to
from controller.topics.topic_names import GROUP_METADATA_TOPIC
from protocol.errors import ApiError, ErrorCode
from protocol.messages.transactions import WriteTxnMarkersResponse
from protocol.records.control import ControlType, EndTransactionMarker, build_marker
from storage.append.append_source import AppendOrigin, AppendSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.coordinators.services import CoordinatorServices
    from broker.partitions.commit_waiters import CommitWaiter
    from broker.partitions.partition import Partition
    from broker.runtime.deferred import Deferred
    from broker.runtime.timers import Cancellable
    from protocol.messages.transactions import WriteTxnMarkersRequest

Marker = WriteTxnMarkersResponse.Marker
Answer = WriteTxnMarkersResponse.Marker.Topic.Partition

AT_ONCE = 32
"""More markers than these are written in slices, as each is an append to a log."""

_NO_SHARD = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}
"""Errors that the sender of markers takes for a moved leader, and retries."""


def write_markers(
    broker: CoordinatorServices, request: WriteTxnMarkersRequest
) -> Deferred[WriteTxnMarkersResponse]:
    """Append the markers; complete once they are committed or refused, partition by partition.

    UNKNOWN_TOPIC_OR_PARTITION without a replica here, NOT_LEADER_OR_FOLLOWER,
    INVALID_PRODUCER_EPOCH and TRANSACTION_COORDINATOR_FENCED for an old marker, REQUEST_TIMED_OUT
    when it is appended but not committed within `request.timeout.ms`.
    """
    response = WriteTxnMarkersResponse(markers=[])
    writing = _Writing(broker, response)
    if _are_many(request):
        broker.spawn(_write_in_slices(broker, writing, request), "transaction markers")
        return writing.answer
    for wanted in _wanted(request, response):
        if wanted is not None:
            writing.write(*wanted)
    writing.close()
    return writing.answer


def _are_many(request: WriteTxnMarkersRequest) -> bool:
    count = 0
    for marker in request.markers:
        for topic in marker.topics:
            count += 1 + len(topic.partition_indexes)
            if count > AT_ONCE:
                return True
        count += 1
    return count > AT_ONCE


async def _write_in_slices(
    broker: CoordinatorServices, writing: _Writing, request: WriteTxnMarkersRequest
) -> None:
    with errors_to(writing.answer):
        async for wanted in broker.slices().each(_wanted(request, writing.response)):
            if wanted is not None:
                writing.write(*wanted)
        writing.close()


def _wanted(
    request: WriteTxnMarkersRequest, response: WriteTxnMarkersResponse
) -> Iterator[tuple[WriteTxnMarkersRequest.Marker, str, Answer] | None]:
    """Each marker with its place in the response; None in between, where others may be served.

    Each partition once: a transaction ends once, however often a request names it.
    """
    by_producer: dict[int, Marker] = {}
    for marker in request.markers:
        told = by_producer.get(marker.producer_id)
        if told is None:
            told = by_producer[marker.producer_id] = Marker(
                producer_id=marker.producer_id, topics=[]
            )
            response.markers.append(told)
        partitions: dict[str, dict[int, None]] = {}
        for topic in marker.topics:
            partitions.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
            yield None
        for name, indexes in partitions.items():
            answers: list[Answer] = []
            told.topics.append(Marker.Topic(name=name, partitions=answers))
            for index in indexes:
                answers.append(Answer(partition_index=index, error_code=0))
                yield marker, name, answers[-1]
        yield None


class _Writing:
    """The appends of one request, and the wait for their commit."""

    def __init__(self, broker: CoordinatorServices, response: WriteTxnMarkersResponse) -> None:
        self._broker = broker
        self.response = response
        self._gather = Countdown(self._finished)
        self.answer = self._gather.deferred
        self._now_ms = broker.clock.now_ms()
        self._waiting: dict[int, Callable[[ErrorCode], None]] = {}
        self._waits: list[CommitWaiter] = []
        self._timer: Cancellable | None = None

    def write(self, marker: WriteTxnMarkersRequest.Marker, topic: str, answer: Answer) -> None:
        """Append one marker to one partition."""
        try:
            partition = self._broker.replicas.require(topic, answer.partition_index)
            self._append(marker, partition)
        except ApiError as error:
            is_elsewhere = error.code in _NO_SHARD
            answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER if is_elsewhere else error.code
            return
        except Exception as error:  # noqa: BLE001 - noted; the other partitions get theirs
            error.add_note(f"partition {topic}-{answer.partition_index}")
            self._broker.timers.on_failure("transaction marker", error)
            answer.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
            return

        def settle(code: ErrorCode) -> None:
            answer.error_code = code

        arrived = self._gather.expect(settle)
        self._waiting[id(answer)] = arrived

        def decided(code: ErrorCode) -> None:
            if self._waiting.pop(id(answer), None) is not None:
                arrived(code)

        self._waits.append(partition.when_committed(partition.log.log_end_offset, decided))

    def close(self) -> None:
        """Answer as soon as all the appends are committed."""
        if self._waiting:
            timeout_ms = self._broker.config.request_timeout_ms
            self._timer = self._broker.timers.schedule(timeout_ms, self._expire)
        self._gather.close()

    def _finished(self) -> WriteTxnMarkersResponse:
        if self._timer is not None:
            self._timer.cancel()
        return self.response

    def _append(self, marker: WriteTxnMarkersRequest.Marker, partition: Partition) -> None:
        kind = ControlType.COMMIT if marker.transaction_result else ControlType.ABORT
        batch = memoryview(
            build_marker(
                EndTransactionMarker(kind, marker.coordinator_epoch),
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                now_ms=self._now_ms,
            )
        )
        version = marker.transaction_version
        source = AppendSource(AppendOrigin.COORDINATOR, transaction_version=version)
        if partition.topic == GROUP_METADATA_TOPIC:
            shard = self._broker.groups.shard_at(partition.index)
            shard.append_control(batch, source, self._now_ms)
        else:
            partition.append_records(batch, ACKS_ALL, source, self._now_ms)

    def _expire(self) -> None:
        for wait in self._waits:
            wait.cancel()
        waiting, self._waiting = self._waiting, {}
        for arrived in waiting.values():
            arrived(ErrorCode.REQUEST_TIMED_OUT)
