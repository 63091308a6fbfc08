"""Appends of a leader's records to a follower's log: the same bytes, in equal segments.

A large piece may be written by another thread: `begin` checks it and returns the write, `finish`
accounts for it, unless the log has changed meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import DELAY_BIT, compute_crc, iterate_headers
from storage.append.append_info import NO_TIMESTAMP, AppendInfo
from storage.producer.producer_recovery import read_marker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.records.batch import BatchHeader
    from protocol.wire import Buffer
    from storage.log.log_contents import LogContents
    from storage.log.log_rules import LogRules
    from storage.log.rolls import Rolls
    from storage.segment.pending_write import PendingWrite
    from storage.segment.segment import Segment

    Run = list[tuple[int, BatchHeader]]
    """Batches of one write: their positions in the received bytes, and their headers."""


class PendingAppend(NamedTuple):
    """Checked batches from the leader, while another thread writes them."""

    view: memoryview
    run: Run
    segment: Segment
    write: PendingWrite


class FollowerAppends:
    """Checks checksums and the order of offsets, and writes; one caller at a time."""

    __slots__ = (
        "_epochs",
        "_files",
        "_offsets",
        "_producers",
        "_rolls",
        "_rules",
        "_segments",
    )

    def __init__(self, contents: LogContents, rules: LogRules, rolls: Rolls) -> None:
        self._files = contents.files
        self._segments = contents.files.segments
        self._epochs = contents.files.epochs
        self._offsets = contents.offsets
        self._producers = contents.producers
        self._rules = rules
        self._rolls = rolls

    def append(self, records: Buffer, now_ms: int) -> AppendInfo | None:
        """Append whole batches as sent by the leader; a trailing partial batch is left out.

        Returns None if there is no whole batch. Raises ApiError CORRUPT_MESSAGE for a wrong
        checksum, OFFSET_OUT_OF_RANGE for an offset that is already in the log, and
        RECORD_LIST_TOO_LARGE for a batch that does not fit into a segment; the batches before it
        are appended. Raises LogDirectoryError if the disk fails.
        """
        view = memoryview(records)
        first_offset = None
        newest = NO_TIMESTAMP
        with self._files.place.directory:
            for run in self._runs(view):
                self._append_run(view, run, now_ms)
                first_offset = run[0][1].base_offset if first_offset is None else first_offset
                newest = max(newest, *(header.max_timestamp for _, header in run))
        if first_offset is None:
            return None
        offsets = self._offsets
        return AppendInfo(
            first_offset,
            offsets.log_end_offset - 1,
            newest,
            NO_TIMESTAMP,
            offsets.log_start_offset,
        )

    def begins_within(self, records: Buffer) -> int | None:
        """Base offset of the first batch in `records`, if this log must start over within it.

        That is the case if the leader's log starts within a batch, as after DeleteRecords: this log
        is empty, the batch contains the next offset, and the log must start over at the base offset
        of the batch (`UnexpectedAppendOffsetException` in Apache Kafka's `Partition`).
        """
        end, active = self._offsets.log_end_offset, self._segments.active
        if active.size or active.base_offset != end or len(self._segments) > 1:
            return None
        _, first = next(iterate_headers(memoryview(records)), (0, None))
        is_within = first is not None and first.base_offset < end <= first.last_offset
        return first.base_offset if first is not None and is_within else None

    def begin(self, records: Buffer, now_ms: int) -> PendingAppend | None:
        """Check batches as `append` does, and return what writes them.

        None if that is better left to `append`: they are not all sound, or go into more than one
        segment. Raises ApiError RECORD_LIST_TOO_LARGE, and LogDirectoryError.
        """
        view = memoryview(records)
        try:
            runs = list(self._runs(view))
        except ApiError:
            return None
        if len(runs) != 1 or self._rolls_before(runs[0], now_ms):
            return None
        run = runs[0]
        with self._files.place.directory:
            segment = self._segments.active
            return PendingAppend(view, run, segment, segment.begin_write(view[_span(run)]))

    def finish(self, pending: PendingAppend) -> bool:
        """Take in what `pending` has written; False, if the log has changed since it began."""
        segment = pending.segment
        with self._files.place.directory:
            try:
                if segment is not self._segments.active or not segment.end_write(pending.write):
                    return False
            except OSError:
                segment.cut_back(segment.size)
                raise
            self._account_run(pending.view, pending.run)
        return True

    def _runs(self, view: memoryview) -> Iterator[Run]:
        """Positions and headers of the batches in `view`, grouped into writes.

        A run ends where the leader's segment would have rolled by size, so that the segments of all
        replicas begin at the same offsets. Rolls by time end a run too late at worst.
        """
        run: Run = []
        room = self._rules.config.segment_bytes - self._segments.active.size
        expected = self._offsets.log_end_offset
        for position, header in iterate_headers(view):
            size = header.size_in_bytes
            if header.crc != compute_crc(view, position, size) or header.base_offset < expected:
                if run:
                    yield run
                raise self._refusal(header, expected)
            if run and size > room:
                yield run
                run = []
                room = self._rules.config.segment_bytes - self._segments.active.size
            run.append((position, header))
            room -= size
            expected = header.next_offset
        if run:
            yield run

    def _refusal(self, header: BatchHeader, expected: int) -> ApiError:
        offset = header.base_offset
        if offset < expected:
            name = self._files.place.name
            reason = f"{name} ends at {expected}, the leader sent offset {offset}"
            return ApiError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        return ApiError(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {offset} is damaged")

    def _append_run(self, view: memoryview, run: Run, now_ms: int) -> None:
        """Write batches that all go into one segment, a new one if it is time to roll."""
        if self._rolls_before(run, now_ms):
            self._rolls.roll(now_ms, run[0][1].base_offset)
        segment = self._segments.active
        try:
            segment.write(view[_span(run)])
        except OSError:
            segment.cut_back(segment.size)
            raise
        self._account_run(view, run)

    def _rolls_before(self, run: Run, now_ms: int) -> bool:
        first, last = run[0][1], run[-1][1]
        return self._rolls.must_roll(
            first.size_in_bytes, last.last_offset, first.max_timestamp, now_ms
        )

    def _account_run(self, view: memoryview, run: Run) -> None:
        segment, offsets, epochs = self._segments.active, self._offsets, self._epochs
        for position, header in run:
            assert header.base_offset >= offsets.log_end_offset, (header, offsets)
            if header.attributes & DELAY_BIT:
                self._files.note_delay(header, segment.size)
            segment.account_header(header)
            if header.partition_leader_epoch > epochs.latest:
                epochs.assign(header.partition_leader_epoch, header.base_offset)
            offsets.log_end_offset = header.next_offset
            if header.producer_id >= 0:
                self._note_producer(header, view[position : position + header.size_in_bytes])

    def _note_producer(self, header: BatchHeader, batch: memoryview) -> None:
        if not header.ends_transaction:
            self._producers.update(header, header.base_offset)
            return
        marker = read_marker(header, batch, header.base_offset)
        aborted = None if marker is None else self._producers.end_transaction(marker)
        if aborted is not None:
            self._files.add_aborted(aborted)


def _span(run: Run) -> slice:
    """Byte range of the batches of a run."""
    position, last = run[-1]
    return slice(run[0][0], position + last.size_in_bytes)
