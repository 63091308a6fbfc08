"""One replica of one partition: how it is appended to.

Reading is in `log_reading`, everything else that changes the files in `log_upkeep`.

A produced batch is checked, its base offset and leader epoch are patched where it lies in the
receive buffer, and it goes to the file in one write. Nothing here looks at single records, so the
cost of an append is that of its bytes plus a constant.

Every method may raise LogDirectoryError; the directory is offline then, and so is the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import (
    CONTROL_BIT,
    assign_base_offset,
    assign_log_append_time,
    compute_crc,
    iterate_headers,
    parse_header,
)
from protocol.records.validation import check_produced
from storage.append.append_source import FROM_CLIENT, AppendOrigin
from storage.log.log_upkeep import LogUpkeep
from storage.producer.producer_history import recall
from storage.producer.producer_recovery import read_marker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.records.batch import BatchHeader
    from protocol.wire import Buffer
    from storage.append.append_source import AppendSource
    from storage.producer.producer import Marker, ProducedBatch
    from storage.segment.pending_write import PendingWrite
    from storage.segment.segment import Segment

NO_TIMESTAMP = -1
_CLIENT = AppendOrigin.CLIENT
_COORDINATOR = AppendOrigin.COORDINATOR


@dataclass(slots=True)
class AppendInfo:
    """What an append did, as the answer to the producer needs it."""

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time_ms: int
    """-1 when the records keep the producer's timestamps."""
    log_start_offset: int
    is_duplicate: bool = False
    """The batch had been appended before; the offsets are those of the first time."""


Run = list[tuple[int, "BatchHeader"]]
"""Batches that one write takes: where each lies in what was received, and its header."""


class PendingAppend(NamedTuple):
    """What a leader sent, checked, while another thread writes it."""

    view: memoryview
    run: Run
    segment: Segment
    write: PendingWrite


class Log(LogUpkeep):
    """Appends as leader and as follower; one caller at a time."""

    __slots__ = ()

    def append_as_leader(
        self,
        records: memoryview,
        leader_epoch: int,
        now_ms: int,
        source: AppendSource = FROM_CLIENT,
    ) -> AppendInfo:
        """Check and append the one batch in `records`, which is patched in place.

        A coordinator may send several batches, and they are not checked as a client's are (see
        `protocol.records.validation`). Raises ApiError with Kafka's code: MESSAGE_TOO_LARGE,
        INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE and others; nothing
        has been appended then. Raises AsideError for a batch that takes longer to check, or must be
        recompressed first, and then comes again as CHECKED.
        """
        if self.directory.failure is not None:
            raise self.directory.failure.with_traceback(None)
        rules = self.produce_rules
        origin = source.origin
        if origin is _CLIENT:
            header = check_produced(records, rules, now_ms, source.api_version)
        else:
            header = parse_header(records)
            if origin is _COORDINATOR and header.size_in_bytes != len(records):
                return self._append_each(records, leader_epoch, now_ms, source)
        if rules.is_log_append_time:
            assign_log_append_time(records, 0, now_ms)
            header = parse_header(records)
        if header.producer_id < 0:
            info = self._append_batch(records, header, leader_epoch, now_ms)
        elif header.attributes & CONTROL_BIT:
            info = self._append_marker(records, header, leader_epoch, now_ms, source)
        else:
            info = self._append_of_producer(records, header, leader_epoch, now_ms, source)
        # Last: if it cannot be flushed for now, the batch is known when it comes again.
        if self.log_end_offset - self.recovery_point >= self._config.flush_messages:
            self.flush()
        return info

    def _append_of_producer(
        self,
        records: memoryview,
        header: BatchHeader,
        leader_epoch: int,
        now_ms: int,
        source: AppendSource,
    ) -> AppendInfo:
        try:
            duplicate = self.producers.check(header, source)
        except ApiError as error:
            if not self._recall(header, error.code):
                raise
            duplicate = self.producers.check(header, source)
        if duplicate is not None:
            return self._repeat(duplicate)
        info = self._append_batch(records, header, leader_epoch, now_ms)
        self.producers.update(header, info.first_offset)
        return info

    def _recall(self, header: BatchHeader, refused_for: ErrorCode) -> bool:
        """Look for more of a refused batch's producer in the log; whether anything was found."""
        producer = self.producers.producers.get(header.producer_id)
        if producer is None or refused_for is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return False
        with self.directory:
            return recall(producer, self.segments, self.log_start_offset)

    def append_as_follower(self, records: Buffer, now_ms: int) -> AppendInfo | None:
        """Append whole batches as the leader sent them; a cut-off last one is left out.

        None when there is no whole batch. Raises ApiError CORRUPT_MESSAGE at a wrong checksum and
        OFFSET_OUT_OF_RANGE at an offset that is in the log already; what comes before is appended.
        """
        view = memoryview(records)
        first_offset = None
        newest = NO_TIMESTAMP
        with self.directory:
            for run in self._runs(view):
                self._append_run(view, run, now_ms)
                first_offset = run[0][1].base_offset if first_offset is None else first_offset
                newest = max(newest, *(header.max_timestamp for _, header in run))
            self._flush_if_due()
        if first_offset is None:
            return None
        return AppendInfo(
            first_offset, self.log_end_offset - 1, newest, NO_TIMESTAMP, self.log_start_offset
        )

    def begin_append_as_follower(self, records: Buffer, now_ms: int) -> PendingAppend | None:
        """Check batches as `append_as_follower` does, and return what writes them.

        None if that is better left to `append_as_follower`: they are not all sound, or go into more
        than one segment.
        """
        view = memoryview(records)
        try:
            runs = list(self._runs(view))
        except ApiError:
            return None
        if len(runs) != 1 or self._rolls_before(runs[0], now_ms):
            return None
        run = runs[0]
        with self.directory:
            segment = self.segments.active
            return PendingAppend(view, run, segment, segment.begin_write(view[_span(run)]))

    def finish_append_as_follower(self, pending: PendingAppend) -> bool:
        """Take in what `pending` has written; False, if the log has changed since it began."""
        segment = pending.segment
        with self.directory:
            try:
                if segment is not self.segments.active or not segment.end_write(pending.write):
                    return False
            except OSError:
                segment.cut_back(segment.size)
                raise
            self._account_run(pending.view, pending.run)
            self._flush_if_due()
        return True

    def _append_each(
        self, records: memoryview, leader_epoch: int, now_ms: int, source: AppendSource
    ) -> AppendInfo:
        infos = []
        position = 0
        while position < len(records):
            end = position + parse_header(records, position).size_in_bytes
            infos.append(self.append_as_leader(records[position:end], leader_epoch, now_ms, source))
            position = end
        infos[-1].first_offset = infos[0].first_offset
        return infos[-1]

    def _append_batch(
        self, records: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int
    ) -> AppendInfo:
        """Give the batch its offset and write it."""
        size = len(records)
        max_timestamp = header.max_timestamp
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        if self.must_roll(size, last_offset, max_timestamp, now_ms):
            self.roll(now_ms)
        assign_base_offset(records, 0, base_offset, leader_epoch)
        if leader_epoch != self.epochs.latest:
            self.assign_epoch(leader_epoch, base_offset)
        segment = self.segments.active
        position = segment.size
        try:
            segment.write(records)
            segment.account(size, base_offset, last_offset, max_timestamp)
        except OSError as error:
            segment.cut_back(position)
            raise self.directory.fail(error) from error
        self.log_end_offset = last_offset + 1
        append_time = max_timestamp if self.produce_rules.is_log_append_time else NO_TIMESTAMP
        return AppendInfo(
            base_offset, last_offset, max_timestamp, append_time, self.log_start_offset
        )

    def _append_marker(
        self,
        records: memoryview,
        header: BatchHeader,
        leader_epoch: int,
        now_ms: int,
        source: AppendSource,
    ) -> AppendInfo:
        """Append a control batch of a coordinator, which may end a transaction."""
        marker = read_marker(header, records, self.log_end_offset)
        if marker is not None:
            self.producers.check_marker(marker, source.transaction_version)
        info = self._append_batch(records, header, leader_epoch, now_ms)
        self._note_producer(header, info.first_offset, marker)
        return info

    def _runs(self, view: memoryview) -> Iterator[Run]:
        """Positions and headers of the batches in `view`, grouped by what one write can take.

        A run ends where the leader's segment would have rolled by size, so that the segments of all
        replicas begin at the same offsets. Rolls by time end a run too late at worst.
        """
        run: Run = []
        room = self._config.segment_bytes - self.segments.active.size
        expected = self.log_end_offset
        for position, header in iterate_headers(view):
            size = header.size_in_bytes
            if header.crc != compute_crc(view, position, size) or header.base_offset < expected:
                if run:
                    yield run
                raise self._refusal(header, expected)
            if run and size > room:
                yield run
                run = []
                room = self._config.segment_bytes - self.segments.active.size
            run.append((position, header))
            room -= size
            expected = header.next_offset
        if run:
            yield run

    def _refusal(self, header: BatchHeader, expected: int) -> ApiError:
        offset = header.base_offset
        if offset < expected:
            reason = f"{self.name} ends at {expected}, the leader sent offset {offset}"
            return ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        return ApiError(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {offset} is damaged")

    def _append_run(self, view: memoryview, run: Run, now_ms: int) -> None:
        """Write batches that all go into one segment, a new one if it is time to roll."""
        if self._rolls_before(run, now_ms):
            self.roll(now_ms, run[0][1].base_offset)
        segment = self.segments.active
        try:
            segment.write(view[_span(run)])
        except OSError:
            segment.cut_back(segment.size)
            raise
        self._account_run(view, run)

    def _rolls_before(self, run: Run, now_ms: int) -> bool:
        first, last = run[0][1], run[-1][1]
        return self.must_roll(first.size_in_bytes, last.last_offset, first.max_timestamp, now_ms)

    def _account_run(self, view: memoryview, run: Run) -> None:
        segment = self.segments.active
        for position, header in run:
            segment.account_header(header)
            if header.partition_leader_epoch > self.epochs.latest:
                self.epochs.assign(header.partition_leader_epoch, header.base_offset)
            self.log_end_offset = header.next_offset
            if header.producer_id >= 0:
                self._note_replicated(header, view[position : position + header.size_in_bytes])

    def _flush_if_due(self) -> None:
        if self.log_end_offset - self.recovery_point >= self._config.flush_messages:
            self.flush()

    def _note_replicated(self, header: BatchHeader, batch: memoryview) -> None:
        marker = read_marker(header, batch, header.base_offset) if header.is_control else None
        self._note_producer(header, header.base_offset, marker)

    def _note_producer(self, header: BatchHeader, base_offset: int, marker: Marker | None) -> None:
        if not header.attributes & CONTROL_BIT:
            self.producers.update(header, base_offset)
        elif marker is not None:
            aborted = self.producers.end_transaction(marker)
            if aborted is not None:
                with self.directory:
                    self.segments.active.aborted_index.append(aborted)

    def _repeat(self, duplicate: ProducedBatch) -> AppendInfo:
        is_stamped = self.produce_rules.is_log_append_time
        return AppendInfo(
            duplicate.base_offset,
            duplicate.last_offset,
            duplicate.timestamp,
            duplicate.timestamp if is_stamped else NO_TIMESTAMP,
            self.log_start_offset,
            is_duplicate=True,
        )


def _span(run: Run) -> slice:
    """Where the batches of a run lie."""
    position, last = run[-1]
    return slice(run[0][0], position + last.size_in_bytes)
