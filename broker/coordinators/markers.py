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
    from collections.abc import Callable, Sequence

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

    UNKNOWN_TOPIC_OR_PARTITION where there is no replica here, NOT_LEADER_OR_FOLLOWER,
    INVALID_PRODUCER_EPOCH and TRANSACTION_COORDINATOR_FENCED for an old marker, REQUEST_TIMED_OUT
    when it is appended but not committed within `request.timeout.ms`.
    """
    response = WriteTxnMarkersResponse(markers=[])
    writing = _Writing(broker, response)
    wanted: list[tuple[WriteTxnMarkersRequest.Marker, str, Answer]] = []
    by_producer: dict[int, Marker] = {}
    for marker in request.markers:
        told = by_producer.get(marker.producer_id)
        if told is None:
            told = by_producer[marker.producer_id] = Marker(
                producer_id=marker.producer_id, topics=[]
            )
            response.markers.append(told)
        for name, indexes in _partitions(marker).items():
            answers = [Answer(partition_index=index, error_code=0) for index in indexes]
            told.topics.append(Marker.Topic(name=name, partitions=answers))
            wanted += [(marker, name, each) for each in answers]
    if len(wanted) > AT_ONCE:
        broker.spawn(_write_in_slices(broker, writing, wanted), "transaction markers")
        return writing.answer
    for marker, name, each in wanted:
        writing.write(marker, name, each)
    writing.close()
    return writing.answer


async def _write_in_slices(
    broker: CoordinatorServices,
    writing: _Writing,
    wanted: Sequence[tuple[WriteTxnMarkersRequest.Marker, str, Answer]],
) -> None:
    with errors_to(writing.answer):
        async for marker, name, answer in broker.slices().each(wanted):
            writing.write(marker, name, answer)
        writing.close()


def _partitions(marker: WriteTxnMarkersRequest.Marker) -> dict[str, dict[int, None]]:
    """Each partition once, by topic: a transaction ends once, however often a request names it."""
    partitions: dict[str, dict[int, None]] = {}
    for topic in marker.topics:
        partitions.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return partitions


class _Writing:
    """The appends of one request, and the wait for their commit."""

    def __init__(self, broker: CoordinatorServices, response: WriteTxnMarkersResponse) -> None:
        self._broker = broker
        self._response = response
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
        return self._response

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
