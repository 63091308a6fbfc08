"""What happens to a log besides appends: roll, truncate, flush, delete old segments, close."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from protocol.errors import ApiError, ErrorCode
from storage.errors import DeletedLogError
from storage.log.log_reader import LogReading
from storage.log.retention import LogFacts, count_deletable
from storage.producer.producer_recovery import read_producers, remove_others
from storage.producer.producer_state import ProducerState
from storage.segment import file_names
from storage.segment.batch_scan import MAX_RELATIVE_OFFSET
from storage.segment.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from storage.directory.log_directory import LogDirectory

_recovery_points = Lock()
"""Held for a moment: a flush that ends on a thread must not raise the recovery point of a log that
is being cut, and flushes of one log may end together. One for all logs, as idle ones cost memory.
"""


class LogUpkeep(LogReading):
    """One caller at a time, but for what says that it is safe from another thread.

    What takes several steps opens all files that it needs before the first of them, so that a want
    of descriptors (ExhaustedError) finds the log as it was.
    """

    __slots__ = ()

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`."""
        with self.directory:
            self.epochs.assign(epoch, start_offset)

    def advance_high_watermark(self, offset: int) -> bool:
        """Raise the high watermark to `offset`, at most to the end; tells whether it moved."""
        offset = min(offset, self.log_end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        self.producers.note_high_watermark(offset)
        return True

    def advance_log_start_offset(self, offset: int) -> bool:
        """Raise the log start offset, as DeleteRecords does; tells whether it moved.

        Raises ApiError OFFSET_OUT_OF_RANGE beyond the high watermark. Segments that lie wholly
        before it go with the next `delete_expired`.
        """
        if offset > self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is beyond the high watermark {self.high_watermark}",
            )
        if offset <= self.log_start_offset:
            return False
        with self.directory:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)
        return True

    def truncate_to(self, offset: int) -> bool:
        """Drop everything at and after `offset`; tells whether there was anything.

        An epoch that began at the end, and in which nothing was appended, goes in any case: as long
        as it is known, the log does not look like one that agrees with another leader's.
        """
        if offset >= self.log_end_offset:
            with self.directory:
                self.epochs.truncate_from_end(offset)
            return False
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        with self.directory:
            cut = self.segments[self.segments.floor(offset)].prepare_truncation(offset)
            bounds = (min(self.log_start_offset, offset), offset)
            producers = read_producers(self.snapshots, self.segments, bounds)
            self._discard(self.segments.take_from(offset))
            cut()
            self.epochs.truncate_from_end(offset)
            self._end_at(offset, producers)
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the next record will have `offset`."""
        with self.directory:
            created_ms = self.segments.active.created_ms
            new = self._segment_instead_of(list(self.segments), offset, created_ms)
            self.segments.replace_all(new)
            self.snapshots.remove_after(-1)
            self.epochs.clear()
            self.log_start_offset = offset
            self._end_at(offset, ProducerState())

    def roll(self, now_ms: int, base_offset: int | None = None) -> None:
        """Close the active segment and begin one, unless it is empty.

        What was closed is flushed through `settings.run_later`.
        """
        active = self.segments.active
        offset = self.log_end_offset if base_offset is None else base_offset
        if active.size == 0 and active.base_offset == offset:
            return
        with self.directory:
            if active.size == 0:
                # A follower whose leader's log begins later: the empty segment would stay for ever.
                self.segments.replace_active(self._segment_instead_of([active], offset, now_ms))
                return
            active.seal()
            self.epochs.save_if_changed()
            self.snapshots.write(offset, self.producers.snapshot())
            self.segments.add(self._new_segment(offset, now_ms))
        self.draw_roll_jitter()
        sealed = self._unflushed()[:-1]
        self.settings.run_later(partial(self._sync, sealed, offset, self.truncations))

    def is_flush_due(self, now_ms: int) -> bool:
        """Tell whether `flush.ms` has passed since the last flush and there is something to do."""
        if self.log_end_offset <= self.recovery_point:
            self._last_flush_ms = now_ms
            return False
        return now_ms - self._last_flush_ms >= self._config.flush_ms

    def note_flush(self, now_ms: int) -> None:
        """Count `flush.ms` from `now_ms`."""
        self._last_flush_ms = now_ms

    def flush(self) -> None:
        """Wait until all that was appended is on the disk, and move the recovery point."""
        self.start_flush()()

    def start_flush(self) -> Callable[[], None]:
        """Return the part of `flush` that waits for the disk, to be called on any thread."""
        self.write_what_waits()
        return partial(self._sync, self._unflushed(), self.log_end_offset, self.truncations)

    def write_what_waits(self) -> None:
        """Write what is kept in memory to be written together, or for want of a descriptor."""
        with self.directory:
            self.segments.active.write_index_entries()
            self.epochs.save_if_changed()

    def delete_expired(self, now_ms: int) -> list[str]:
        """Take out the segments that retention lets go; returns files to remove later.

        The files are renamed to `.deleted`, and readers that hold a region of them are not hurt.
        """
        with self.directory:
            segments = list(self.segments)
            ends = [*self.segments.base_offsets[1:], self.log_end_offset]
            facts = LogFacts(ends, self.high_watermark, self.log_start_offset)
            count = count_deletable(segments, facts, self._config, now_ms)
            if count == 0:
                return []
            if count == len(segments):
                self.roll(now_ms)
            removed = self.segments.take_first(count)
            self.log_start_offset = max(self.log_start_offset, self.segments[0].base_offset)
            self.epochs.truncate_from_start(self.log_start_offset)
            for segment in removed:
                self.snapshots.remove(segment.base_offset)
            return [path for segment in removed for path in segment.mark_deleted()]

    def sync_names(self) -> None:
        """Wait until the names of the files are on the disk; safe to call from another thread."""
        with self.directory, suppress(FileNotFoundError):  # the log was deleted meanwhile
            self.directory.disk.filesystem.sync_directory(self.path)

    def expire_producers(self, now_ms: int) -> Iterator[int]:
        """Forget idle producers, some at each step; yields how many."""
        return self.producers.expire(now_ms, self.settings.producer_id_expiration_ms)

    def close(self) -> None:
        """Flush, cut the indexes to size and leave a snapshot: the next start has nothing to do."""
        self.finish()
        self.flush()
        self.release()

    def finish(self) -> None:
        """Write all that `close` writes, without waiting for the disk."""
        with self.directory:
            self.segments.active.seal()
            self.epochs.save_if_changed()
            if self.log_end_offset > self.segments[0].base_offset:
                self.snapshots.write(self.log_end_offset, self.producers.snapshot())

    def note_flushed(self) -> None:
        """The caller has waited for the disk on its own."""
        self.recovery_point = self.log_end_offset

    def release(self) -> None:
        """Let go of all files and write nothing; the log can still be used."""
        for segment in self.segments:
            segment.forget()

    def give_up(self) -> LogDirectory:
        """The log is deleted: let go of its files; returns the directory that it was in.

        Whatever comes later is refused with DeletedLogError: files are opened by their names, which
        may be those of another log by then, as when a topic is created anew.
        """
        self.release()
        directory = self.directory
        self.directory = directory.as_left_by(self.name)
        return directory

    def must_roll(self, size: int, last_offset: int, timestamp: int, now_ms: int) -> bool:
        """Tell whether a batch of `size` bytes makes the active segment roll first (KIP-32).

        `timestamp` is the greatest of the batch: time that passes is that of the records. Raises
        ApiError RECORD_LIST_TOO_LARGE for a batch that fits into no segment, and LogDirectoryError.
        """
        segment = self.segments.active
        config = self._config
        try:
            if (  # the common case, with nothing called that can be spared
                0 < segment.size <= config.segment_bytes - size
                and timestamp - self._roll_ms + self._roll_jitter_ms <= segment.first_timestamp >= 0
                and last_offset - segment.base_offset <= MAX_RELATIVE_OFFSET
                and not segment.is_index_full
            ):
                return False
            if size > config.segment_bytes:
                raise ApiError(
                    ErrorCode.RECORD_LIST_TOO_LARGE,
                    f"the batch has {size} bytes, segment.bytes is {config.segment_bytes}",
                )
            if segment.size == 0:
                return not segment.fits(last_offset)
            return (
                segment.size > config.segment_bytes - size
                or segment.age_ms(timestamp, now_ms) > self._roll_ms - self._roll_jitter_ms
                or segment.is_index_full
                or not segment.fits(last_offset)
            )
        except OSError as error:  # the segment had to be read
            raise self.directory.fail(error) from error

    def _new_segment(self, base_offset: int, now_ms: int) -> Segment:
        segment = Segment(self.directory.disk, self.path, base_offset, self._config, now_ms)
        segment.create()
        return segment

    def _segment_instead_of(self, old: Sequence[Segment], base_offset: int, now_ms: int) -> Segment:
        """Make a segment, which may have the name of one of `old`, whose files are removed."""
        filesystem = self.directory.disk.filesystem
        aside = [path for segment in old for path in segment.mark_deleted()]
        try:
            new = self._new_segment(base_offset, now_ms)
        except OSError:
            for path in aside:
                filesystem.rename(path, path.removesuffix(file_names.DELETED))
            raise
        for path in aside:
            filesystem.remove(path)
        return new

    def _end_at(self, offset: int, producers: ProducerState) -> None:
        """After the log was cut: bring all that depends on its end in line."""
        with _recovery_points:
            self.truncations += 1
            is_below = offset < self.recovery_point
            self.recovery_point = min(self.recovery_point, offset)
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self.cleaned_offset = min(self.cleaned_offset, offset)
        remove_others(self.snapshots, (self.log_start_offset, offset))
        self.producers.become(producers)
        self.producers.note_high_watermark(self.high_watermark)
        if is_below and self.directory.on_cut is not None:
            self.directory.on_cut()

    def _discard(self, segments: Sequence[Segment]) -> None:
        """Remove the files of `segments` now."""
        for segment in segments:
            for path in segment.mark_deleted():
                self.directory.disk.filesystem.remove(path)

    def _unflushed(self) -> list[Segment]:
        """Segments that hold something past the recovery point, the active one at least.

        And the one before, where the point lies between two: it may have been cut to that.
        """
        first = self.segments.floor(max(self.recovery_point - 1, self.segments[0].base_offset))
        return [self.segments[index] for index in range(first, len(self.segments))]

    def _sync(self, segments: Sequence[Segment], end_offset: int, truncations: int) -> None:
        """Wait for the disk; runs beside appends, truncations and deletion on other threads."""
        if not segments or end_offset <= self.recovery_point:
            return
        with suppress(DeletedLogError):  # it needs no flush
            self._sync_files(segments)
            self.sync_names()
        with _recovery_points:
            if truncations == self.truncations:
                self.recovery_point = max(self.recovery_point, end_offset)

    def _sync_files(self, segments: Sequence[Segment]) -> None:
        with self.directory:
            for segment in segments:
                segment.sync()
            for offset in self.snapshots.offsets[-len(segments) - 1 :]:
                self.snapshots.sync(offset)
            self.epochs.sync()
