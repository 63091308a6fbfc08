"""When a log is flushed, and how far: the recovery point follows what the disk has.

Flushes wait on other threads, beside appends, truncations and deletion. One that ends after the log
was cut has flushed something else, and does not move the recovery point (`LogOffsets`).
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from storage.errors import DeletedLogError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storage.log.log_files import LogFiles
    from storage.log.log_offsets import LogOffsets
    from storage.segment.segment import Segment


class Flushes:
    """The flushes of one log."""

    __slots__ = ("_files", "_last_flush_ms", "_offsets", "_run_later")

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

    def is_due(self, now_ms: int, flush_ms: int) -> bool:
        """Whether `flush.ms` has passed since the last flush and there is something to do."""
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

    def flush_sealed(self) -> None:
        """After a roll: have all but the active segment flushed later, which is still empty."""
        sealed, offsets = self._unflushed()[:-1], self._offsets
        self._run_later(partial(self._sync, sealed, offsets.log_end_offset, offsets.truncations))

    def _unflushed(self) -> list[Segment]:
        """Segments that hold something past the recovery point, the active one at least.

        And the one before, where the point lies between two: it may have been cut to that.
        """
        segments = self._files.segments
        assert self._offsets.recovery_point <= self._offsets.log_end_offset, self._offsets
        first = segments.floor(max(self._offsets.recovery_point - 1, segments[0].base_offset))
        return [segments[index] for index in range(first, len(segments))]

    def _sync(self, segments: Sequence[Segment], end_offset: int, truncations: int) -> None:
        """Wait for the disk; runs beside appends, truncations and deletion on other threads."""
        if not segments or end_offset <= self._offsets.recovery_point:
            return
        with suppress(DeletedLogError):  # it needs no flush
            self._files.sync(segments)
            self._files.sync_names()
        self._offsets.raise_recovery_point(end_offset, truncations)
