"""Rolls of a log: when the active segment is closed, and another one begun (KIP-32)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ApiError, ErrorCode
from storage.segment.batch_scan import MAX_RELATIVE_OFFSET

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.log.flushes import Flushes
    from storage.log.log_contents import LogContents
    from storage.log.log_rules import LogRules


class Rolls:
    """The rolls of one log, and how much earlier than others it makes the next one by time."""

    __slots__ = (
        "_draw_below",
        "_files",
        "_flushes",
        "_jitter_ms",
        "_offsets",
        "_producers",
        "_rules",
        "_segments",
    )

    def __init__(
        self,
        contents: LogContents,
        rules: LogRules,
        flushes: Flushes,
        draw_below: Callable[[int], int],
    ) -> None:
        """`draw_below` is that of `LogSettings`."""
        self._files = contents.files
        self._segments = contents.files.segments
        self._offsets = contents.offsets
        self._producers = contents.producers
        self._rules = rules
        self._flushes = flushes
        self._draw_below = draw_below
        self.draw_jitter()

    def draw_jitter(self) -> None:
        """Draw a new jitter: how much earlier than `segment.ms` the active segment rolls."""
        limit = min(self._rules.config.segment_jitter_ms, self._rules.roll_ms)
        self._jitter_ms = self._draw_below(limit) if limit > 0 else 0

    def must_roll(self, size: int, last_offset: int, timestamp: int, now_ms: int) -> bool:
        """Return whether the active segment must roll before a batch of `size` bytes.

        `timestamp` is the greatest of the batch: elapsed time is measured by record timestamps.
        Raises ApiError RECORD_LIST_TOO_LARGE for a batch that does not fit into a segment, and
        LogDirectoryError.
        """
        segment = self._segments.active
        rules = self._rules
        segment_bytes = rules.config.segment_bytes
        earliest = timestamp - rules.roll_ms + self._jitter_ms
        if (  # the common case, without avoidable calls
            0 < segment.size <= segment_bytes - size
            and earliest <= segment.known_first_timestamp >= 0
            and last_offset - segment.base_offset <= MAX_RELATIVE_OFFSET
            and not segment.is_index_full
        ):
            return False
        if size > segment_bytes:
            raise ApiError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"the batch has {size} bytes, segment.bytes is {segment_bytes}",
            )
        if segment.size == 0:
            return not segment.fits(last_offset)
        try:
            return (
                segment.size > segment_bytes - size
                or segment.age_ms(timestamp, now_ms) > rules.roll_ms - self._jitter_ms
                or segment.is_index_full
                or not segment.fits(last_offset)
            )
        except OSError as error:  # the segment had to be read
            raise self._files.place.directory.fail(error) from error

    def roll(self, now_ms: int, base_offset: int | None = None) -> None:
        """Close the active segment and begin one at `base_offset`, unless it is empty.

        Without an offset, at the log end; a follower's leader may be further. The closed segment is
        flushed through `LogSettings.run_later`.
        """
        files = self._files
        active = self._segments.active
        end_offset = self._offsets.log_end_offset
        offset = end_offset if base_offset is None else base_offset
        assert offset >= end_offset, (offset, self._offsets)
        if active.size == 0 and active.base_offset == offset:
            return
        config = self._rules.config
        with files.place.directory:
            if active.size == 0:
                # A follower whose leader's log begins later: the empty segment would stay for ever.
                new = files.new_segment_instead_of([active], offset, config, now_ms)
                self._segments.replace_active(new)
                return
            active.seal()
            files.epochs.save_if_changed()
            files.snapshots.write(offset, self._producers.snapshot())
            self._segments.add(files.new_segment(offset, config, now_ms))
        self.draw_jitter()
        self._flushes.flush_sealed()
