"""The offsets that say what of a log is there, committed, flushed and compacted.

    log start <= high watermark <= log end
                 recovery point <= log end
                 cleaned offset <= log end

They move forward, each for its own reason, and back together when the log is cut. Whatever moves
one of them any other way is a mistake of ours, which the assertions here and in the appends find
before it reaches a checkpoint.

Sources: `UnifiedLog` and `LocalLog` in Apache Kafka; KIP-101 for the high watermark.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

NEVER_CLEANED: Final = -1
NAMES: Final = (
    "cleaned_offset",
    "high_watermark",
    "log_end_offset",
    "log_start_offset",
    "recovery_point",
    "truncations",
    "waiting_from",
)

_recovery_points = Lock()
"""Held for a moment: a flush that ends on a thread must not raise the recovery point of a log that
is being cut, and flushes of one log may end together. One for all logs, as idle ones cost memory.
"""


class Moves:
    """Count of changes of any log's checkpointed offsets.

    Counted after the change. Concurrent threads may count two changes as one, but the number
    differs from the one before.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


MOVES: Final = Moves()
"""Of all logs of this process: while it stays as it is, none has to be looked at."""


class LogOffsets:
    """Plain fields to read, as the paths of Produce and Fetch do; methods to move them."""

    __slots__ = NAMES

    def __init__(
        self,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        high_watermark: int,
        cleaned_offset: int = NEVER_CLEANED,
    ) -> None:
        """All but `log_start_offset`, which is of the first record left, are exclusive ends."""
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        """Of the next record. What appends sets it, after the write."""
        self.recovery_point = recovery_point
        """Everything before it is on the disk for good."""
        self.high_watermark = high_watermark
        """Everything before it is committed."""
        self.cleaned_offset = cleaned_offset
        """Up to here compaction has seen to it that keys are unique; -1: it has never been here."""
        self.truncations = 0
        """Number of truncations; a flush or a cleaning that began before the last one is void."""
        self.waiting_from: Callable[[], int] | None = None
        """On the broker that delivers waiting records, returns the first offset that waits."""
        self.check()

    def check(self) -> None:
        """Assert that the offsets can be those of one log."""
        end = self.log_end_offset
        assert 0 <= self.log_start_offset <= self.high_watermark <= end, self
        assert self.recovery_point <= end, self
        assert self.cleaned_offset <= end, self

    def __repr__(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in NAMES)

    def advance_high_watermark(self, offset: int) -> bool:
        """Raise the high watermark to `offset`, at most to the end; returns whether it moved."""
        offset = min(offset, self.log_end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        MOVES.count += 1
        return True

    def may_start_at(self, offset: int) -> bool:
        """Return whether the log start would move.

        Raises ApiError OFFSET_OUT_OF_RANGE past the high watermark.
        """
        if offset > self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is beyond the high watermark {self.high_watermark}",
            )
        return offset > self.log_start_offset

    def start_at(self, offset: int) -> None:
        """Move the log start forward, to the high watermark at most."""
        assert self.log_start_offset <= offset <= self.high_watermark, self
        self.log_start_offset = offset
        MOVES.count += 1

    def cut_to(self, offset: int) -> bool:
        """Truncate to `offset`; return whether flushed records were cut."""
        assert offset <= self.log_end_offset, self
        return self._end_at(offset, min(self.log_start_offset, offset))

    def start_over_at(self, offset: int) -> bool:
        """Truncate everything and start over at `offset`; as `cut_to`. Lower ones are committed."""
        is_flushed = self._end_at(offset, offset)
        self.high_watermark = offset
        MOVES.count += 1
        self.check()
        return is_flushed

    def raise_recovery_point(self, offset: int, truncations: int) -> None:
        """Note the end of a flush up to `offset` that began after that number of `truncations`.

        Safe on any thread. Ignored if the log was truncated since.
        """
        with _recovery_points:
            if truncations == self.truncations:
                assert offset <= self.log_end_offset, self
                self.recovery_point = max(self.recovery_point, offset)
        MOVES.count += 1

    def note_flushed(self) -> None:
        """The caller has waited for the disk on its own."""
        self.recovery_point = self.log_end_offset
        MOVES.count += 1

    def note_cleaned(self, offset: int) -> None:
        """Note that compaction has reached `offset`; it may have to resume from an earlier one."""
        assert offset <= self.log_end_offset, self
        self.cleaned_offset = offset
        MOVES.count += 1

    def move_to(self, others: LogOffsets) -> None:
        """The log is the copy now of which `others` are; it has the same records.

        What its disk has, and how far it is compacted, is that of the copy. Flushes and look-ups
        that are under way concern other files, as if the log had been cut.
        """
        assert others.log_end_offset == self.log_end_offset, (others, self)
        with _recovery_points:
            self.truncations += 1
            self.recovery_point = others.recovery_point
        self.cleaned_offset = others.cleaned_offset
        MOVES.count += 1

    def _end_at(self, offset: int, log_start_offset: int) -> bool:
        with _recovery_points:
            self.truncations += 1
            is_flushed = offset < self.recovery_point
            self.recovery_point = min(self.recovery_point, offset)
            self.log_end_offset = offset
        self.log_start_offset = log_start_offset
        self.high_watermark = min(self.high_watermark, offset)
        self.cleaned_offset = min(self.cleaned_offset, offset)
        MOVES.count += 1
        return is_flushed
