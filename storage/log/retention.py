"""Retention: the choice of the oldest segments to delete, apart from their deletion.

A segment is deleted when its newest record is older than `retention.ms`, when the log without it is
still as large as `retention.bytes`, or when all of it lies before the log start offset. Only whole
segments from the old end are deleted, and only below the high watermark. -1 stands for no limit.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from storage.delays.log_delays import NOTHING_WAITS, LogDelays

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config.topic import TopicConfig
    from storage.log.log_contents import LogContents
    from storage.log.log_rules import LogRules
    from storage.log.rolls import Rolls

UNLIMITED: Final = -1
DELETE: Final = "delete"


class OldSegment(Protocol):
    """Properties of a segment that the choice depends on."""

    @property
    def size(self) -> int:
        """Bytes of its batches."""

    @property
    def age_timestamp(self) -> int:
        """Greatest timestamp of its records, or when its file was last changed if it has none.

        Read only if the decision depends on it: it may have to come from a file.
        """


class LogFacts(NamedTuple):
    """Properties of the log that the choice depends on."""

    end_offsets: Sequence[int]
    """End offset of each segment, where the next begins; of the active one, the log end offset."""
    high_watermark: int
    log_start_offset: int
    needed_from: int = NOTHING_WAITS
    """The first offset of records that wait for their delivery; what holds them stays."""


def count_deletable(
    segments: Sequence[OldSegment], log: LogFacts, config: TopicConfig, now_ms: int
) -> int:
    """Number of segments to delete, from the oldest; may include the active one."""
    count = _count_before_start(log)
    if DELETE in config.cleanup_policy:
        old = max(
            _count_expired(segments, config.retention_ms, now_ms),
            _count_excess(segments, config.retention_bytes),
        )
        count = max(count, min(old, bisect_right(log.end_offsets, log.needed_from)))
    replicated = 0
    while replicated < count and log.end_offsets[replicated] <= log.high_watermark:
        replicated += 1
    # An empty active segment is what deleting would leave, so there is nothing to gain.
    if replicated == len(segments) and segments[-1].size == 0:
        replicated -= 1
    return replicated


def _count_before_start(log: LogFacts) -> int:
    """The active segment is not counted: it holds the log end offset, hence no gain."""
    count = 0
    while count < len(log.end_offsets) - 1 and log.end_offsets[count] <= log.log_start_offset:
        count += 1
    return count


def _count_expired(segments: Sequence[OldSegment], retention_ms: int, now_ms: int) -> int:
    count = 0
    if retention_ms != UNLIMITED:
        while count < len(segments) and now_ms - segments[count].age_timestamp > retention_ms:
            count += 1
    return count


def _count_excess(segments: Sequence[OldSegment], retention_bytes: int) -> int:
    count = 0
    if retention_bytes != UNLIMITED:
        excess = sum(segment.size for segment in segments) - retention_bytes
        while count < len(segments) and excess - segments[count].size >= 0:
            excess -= segments[count].size
            count += 1
    return count


class Retention:
    """Deletion of expired segments of one log."""

    __slots__ = ("_delays", "_files", "_offsets", "_rolls", "_rules")

    def __init__(self, contents: LogContents, rules: LogRules, rolls: Rolls) -> None:
        self._delays = LogDelays(contents)
        self._files = contents.files
        self._offsets = contents.offsets
        self._rules = rules
        self._rolls = rolls

    def delete_expired(self, now_ms: int) -> list[str]:
        """Take out the segments that may go; returns files to remove later.

        The files are renamed to `.deleted`, and readers that hold a region of them are not hurt.
        """
        files, offsets = self._files, self._offsets
        segments = files.segments
        with files.place.directory:
            ends = [*segments.base_offsets[1:], offsets.log_end_offset]
            log = LogFacts(
                ends, offsets.high_watermark, offsets.log_start_offset, self._delays.needed_from()
            )
            count = count_deletable(list(segments), log, self._rules.config, now_ms)
            if count == 0:
                return []
            if count == len(segments):
                self._rolls.roll(now_ms)
            removed = segments.take_first(count)
            offsets.start_at(max(offsets.log_start_offset, segments[0].base_offset))
            files.epochs.truncate_from_start(offsets.log_start_offset)
            for segment in removed:
                files.snapshots.remove(segment.base_offset)
            return [path for segment in removed for path in segment.mark_deleted()]
