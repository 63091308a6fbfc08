"""Which of the oldest segments of a log may go: a decision, no deed.

A segment goes when its newest record is older than `retention.ms`, when the log without it is
still as large as `retention.bytes`, or when all of it lies before the log start offset. Only whole
segments from the old end go, and only below the high watermark. A limit of -1 is no limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from config.topic import TopicConfig

UNLIMITED: Final = -1
DELETE: Final = "delete"


class SegmentFacts(NamedTuple):
    """What the decision needs to know of a segment."""

    size: int
    age_timestamp: int
    """Greatest timestamp of its records, or when its file was last changed if it has none."""
    end_offset: int
    """Where the next segment begins; of the active one, the log end offset."""


class LogFacts(NamedTuple):
    """What the decision needs to know of the log."""

    high_watermark: int
    log_start_offset: int


def count_deletable(
    segments: Sequence[SegmentFacts], log: LogFacts, config: TopicConfig, now_ms: int
) -> int:
    """How many segments, counted from the oldest, may go; the active one may be among them."""
    count = _count_before_start(segments, log.log_start_offset)
    if DELETE in config.cleanup_policy:
        count = max(
            count,
            _count_expired(segments, config.retention_ms, now_ms),
            _count_excess(segments, config.retention_bytes),
        )
    replicated = 0
    while replicated < count and segments[replicated].end_offset <= log.high_watermark:
        replicated += 1
    # An empty active segment is what deleting would leave, so there is nothing to gain.
    if replicated == len(segments) and segments[-1].size == 0:
        replicated -= 1
    return replicated


def _count_before_start(segments: Sequence[SegmentFacts], log_start_offset: int) -> int:
    count = 0
    while count < len(segments) - 1 and segments[count].end_offset <= log_start_offset:
        count += 1
    return count


def _count_expired(segments: Sequence[SegmentFacts], retention_ms: int, now_ms: int) -> int:
    count = 0
    if retention_ms != UNLIMITED:
        while count < len(segments) and now_ms - segments[count].age_timestamp > retention_ms:
            count += 1
    return count


def _count_excess(segments: Sequence[SegmentFacts], retention_bytes: int) -> int:
    count = 0
    if retention_bytes != UNLIMITED:
        excess = sum(segment.size for segment in segments) - retention_bytes
        while count < len(segments) and excess - segments[count].size >= 0:
            excess -= segments[count].size
            count += 1
    return count
