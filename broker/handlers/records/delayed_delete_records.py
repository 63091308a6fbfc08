"""A DeleteRecords that waits until the new starts are on disk and on the followers.

A partition's *low watermark* is the least log start offset of its replicas on live brokers. Records
are gone once it has reached the requested offset: no replica that may be elected has them any more.

    the partition ...                               is answered
    has reached the offset                          NONE, and its low watermark
    has not when the time is up                     REQUEST_TIMED_OUT, and its low watermark as the
                                                    wait began
    is led by another broker in the meantime        NOT_LEADER_OR_FOLLOWER
    is deleted in the meantime                      UNKNOWN_TOPIC_OR_PARTITION
    lies where its new start could not be noted     KAFKA_STORAGE_ERROR: it may come back

There is no limit on the wait for the disk; that for the followers is the request's, and may be 0.

Source: `DelayedDeleteRecords` and `Partition.lowWatermarkIfLeader` in Apache Kafka, which notices
dead followers and new leaders only at the partition's next event; here both end the wait at once.
The wait for the disk is this broker's addition.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from broker.runtime.deferred import Deferred
from protocol.errors import ErrorCode
from protocol.messages.delete_records import DeleteRecordsResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from broker.partitions.partition import Partition
    from broker.requests.services import BrokerServices
    from broker.runtime.timers import Cancellable
    from storage.directory.log_directory import LogDirectory

Answer = DeleteRecordsResponse.Topic.Partition
NO_LOW_WATERMARK = -1


class Deletion(NamedTuple):
    """One partition whose start was moved here."""

    partition: Partition
    offset: int
    """All replicas are to begin here."""
    answer: Answer


class DelayedDeleteRecords:
    """Completes `deferred` once `note_written` was called and all partitions are decided."""

    __slots__ = (
        *("_broker", "_deletions", "_is_written", "_response", "_timer", "_waiting", "_watched"),
        "deferred",
    )

    def __init__(
        self,
        broker: BrokerServices,
        response: DeleteRecordsResponse,
        deletions: list[Deletion],
        timeout_ms: int,
    ) -> None:
        """`response` holds the answers of `deletions`, which are filled in here."""
        self.deferred: Deferred[DeleteRecordsResponse] = Deferred(on_abandon=self._forget)
        self._broker = broker
        self._response = response
        self._deletions = deletions
        self._is_written = False
        self._timer: Cancellable | None = None
        for partition, _, answer in deletions:
            answer.error_code = ErrorCode.REQUEST_TIMED_OUT  # unless it is decided before
            answer.low_watermark = partition.low_watermark
        self._waiting = [deletion for deletion in deletions if not self._decide(deletion)]
        if timeout_ms <= 0:
            self._waiting = []
        self._watched = frozenset(partition for partition, _, _ in self._waiting)
        if self._waiting:
            self._timer = broker.timers.schedule(timeout_ms, partial(self._settle, self._expire))
            for partition in self._watched:
                partition.watch_starts(self)

    def check(self) -> None:
        """Check again, after a follower or a role has changed."""
        if self._waiting:
            self._settle(self._look)

    def note_written(self, directories: Collection[LogDirectory]) -> None:
        """Note which log directories have the new starts on disk; the others have failed."""
        self._settle(partial(self._take_note, directories))

    def _settle(self, work: Callable[[], None]) -> None:
        """Take a step that may complete the answer; an error that it raises is the answer."""
        try:
            work()
            if self._is_written and not self._waiting:
                self._forget()
                self.deferred.complete(self._response)
        except Exception as error:  # noqa: BLE001 - delivered
            self._forget()
            self.deferred.fail(error)

    def _look(self) -> None:
        self._waiting = [one for one in self._waiting if not self._decide(one)]

    def _take_note(self, directories: Collection[LogDirectory]) -> None:
        self._is_written = True
        lost = {
            one.partition
            for one in self._deletions
            if one.partition.log.directory not in directories and self._is_here(one.partition)
        }
        for partition, _, answer in self._deletions:
            if partition in lost:
                _refuse(answer, ErrorCode.KAFKA_STORAGE_ERROR)
        self._waiting = [one for one in self._waiting if one.partition not in lost]

    def _decide(self, deletion: Deletion) -> bool:
        """Fill in the answer if it is decided; returns whether it is."""
        partition, offset, answer = deletion
        if not self._is_here(partition):
            _refuse(answer, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif partition.log.directory.failure is not None:
            _refuse(answer, ErrorCode.KAFKA_STORAGE_ERROR)
        elif not partition.is_leader:
            _refuse(answer, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            low_watermark = partition.low_watermark
            if low_watermark < offset:
                return False
            answer.error_code = ErrorCode.NONE
            answer.low_watermark = low_watermark
        return True

    def _is_here(self, partition: Partition) -> bool:
        """Return whether the replica is the same as before: neither deleted nor recreated."""
        return self._broker.replicas.partition(partition.topic, partition.index) is partition

    def _expire(self) -> None:
        self._waiting = []

    def _forget(self) -> None:
        self._waiting = []
        for partition in self._watched:
            partition.unwatch_starts(self)
        if self._timer is not None:
            self._timer.cancel()


def _refuse(answer: Answer, code: ErrorCode) -> None:
    answer.error_code = code
    answer.low_watermark = NO_LOW_WATERMARK
