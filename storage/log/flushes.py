"""Flushes of a log, and their extent: the recovery point follows the state of the disk.

Flushes wait on other threads, beside appends, truncations and deletion. One that ends after a
truncation has flushed something else, and does not move the recovery point (`LogOffsets`).

Producers wait for a flush of records alone (`start_for_records`): one wait for the disk instead of
six. After a crash, indexes, epochs and producer state are rebuilt from the records, as long as the
recovery point lies before these; so only a whole flush moves it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from storage.errors import DeletedLogError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storage.directory.log_directory import LogDirectory
    from storage.filesystem import File
    from storage.log.log_files import LogFiles
    from storage.log.log_offsets import LogOffsets
    from storage.segment.segment import Segment


class RecordsFlush:
    """A flush of records that was begun: called, on any thread, it waits and ends.

    Or the caller waits for `files` together with others, and then calls `finish`.
    """

    __slots__ = ("_log_files", "_with_names", "files")

    def __init__(self, log_files: LogFiles, files: Sequence[File], *, with_names: bool) -> None:
        """`with_names` says that the last file is new, and so is its name."""
        self._log_files = log_files
        self._with_names = with_names
        self.files = files

    @property
    def directory(self) -> LogDirectory:
        """Directory of the files."""
        return self._log_files.place.directory

    def __call__(self) -> None:
        """Wait for the disk; raises LogDirectoryError."""
        with self.directory:  # raises if the log was deleted meanwhile
            outcomes = self.directory.disk.filesystem.sync_files(self.files)
        self.finish(outcomes)

    def finish(self, outcomes: Sequence[OSError | None]) -> None:
        """End when this is what `FileSystem.sync_files` returned; may wait; raises the same."""
        with self.directory:
            for error in outcomes:
                if error is not None:
                    raise error
        if self._with_names:
            self._log_files.sync_names()


class Flushes:
    """The flushes of one log."""

    __slots__ = ("_files", "_last_flush_ms", "_offsets", "_run_later", "is_held", "on_release")

    def __init__(
        self,
        files: LogFiles,
        offsets: LogOffsets,
        run_later: Callable[[Callable[[], None]], None],
    ) -> None:
        """`run_later` is that of `LogSettings`."""
        self._files = files
        self._offsets = offsets
        self._run_later = run_later
        self._last_flush_ms = 0
        self.is_held = False
        """True if flushes for producers are held back; see `hold`."""
        self.on_release: Callable[[], None] | None = None
        """Called when flushes are no longer held."""

    def hold(self) -> None:
        """Until `release`, acknowledge only records that are on the disk, or on their way there."""
        self.is_held = True

    def release(self) -> None:
        """The opposite of `hold`; may be called twice."""
        was_held, self.is_held = self.is_held, False
        if was_held and self.on_release is not None:
            self.on_release()

    def is_due(self, now_ms: int, flush_ms: int) -> bool:
        """Return whether `flush.ms` has passed since the last flush and there is data to flush."""
        if self._offsets.log_end_offset <= self._offsets.recovery_point:
            self._last_flush_ms = now_ms
            return False
        return now_ms - self._last_flush_ms >= flush_ms

    def note(self, now_ms: int) -> None:
        """Count `flush.ms` from `now_ms`."""
        self._last_flush_ms = now_ms

    def flush(self) -> None:
        """Have all that was appended on the disk, and move the recovery point.

        Blocks the calling thread until it is there; raises LogDirectoryError.
        """
        self.start()()

    def start(self) -> Callable[[], None]:
        """Return the part of `flush` that blocks, to be called on any thread.

        Both parts raise LogDirectoryError.
        """
        self._files.write_pending()
        offsets = self._offsets
        return partial(self._sync, self._unflushed(), offsets.log_end_offset, offsets.truncations)

    def start_for_records(self, from_offset: int) -> RecordsFlush:
        """Return a function that flushes the records from `from_offset` to the log end.

        Both parts raise LogDirectoryError. Earlier records are flushed by the caller, or lie before
        the recovery point.
        """
        files = self._files
        with files.place.directory:
            segments = [files.segments[index] for index in self._indexes_from(from_offset)]
            opened = [segment.file for segment in segments]
        is_new = segments[-1].base_offset >= from_offset
        return RecordsFlush(files, opened, with_names=is_new)

    def flush_sealed(self) -> None:
        """After a roll: have all but the active segment flushed later, which is still empty."""
        sealed, offsets = self._unflushed()[:-1], self._offsets
        self._run_later(partial(self._sync, sealed, offsets.log_end_offset, offsets.truncations))

    def _unflushed(self) -> list[Segment]:
        """Segments that hold something past the recovery point, the active one at least.

        And the one before, where the point lies between two: it may have been cut to that.
        """
        assert self._offsets.recovery_point <= self._offsets.log_end_offset, self._offsets
        segments = self._files.segments
        return [segments[index] for index in self._indexes_from(self._offsets.recovery_point)]

    def _indexes_from(self, offset: int) -> range:
        segments = self._files.segments
        return range(segments.floor(max(offset - 1, segments[0].base_offset)), len(segments))

    def _sync(self, segments: Sequence[Segment], end_offset: int, truncations: int) -> None:
        """Wait for the disk; runs beside appends, truncations and deletion on other threads."""
        if not segments or end_offset <= self._offsets.recovery_point:
            return
        with suppress(DeletedLogError):  # it needs no flush
            self._files.sync(segments)
            self._files.sync_names()
        self._offsets.raise_recovery_point(end_offset, truncations)
