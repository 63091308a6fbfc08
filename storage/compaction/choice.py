"""Choice of the logs to clean and of the range to clean in each; decides only, changes nothing.

    segments    |0      |100    |200    |300    |400      active
    clean up to                  ^ 200
    may be cleaned up to                 ^ 300            see `_first_uncleanable`
    ratio        size of |200 as a share of |0 |100 |200

A log is cleaned when the ratio passes `min.cleanable.dirty.ratio`, or when a record in its dirty
part is older than `max.compaction.lag.ms`; of several, the one with the greatest ratio first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from config.key import LONG_MAX
from storage.compaction.job import CleaningJob, LastOfProducer, SegmentLimits, SourceSegment
from storage.log.log_rules import COMPACT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.compaction.job import CleanerLimits
    from storage.log.log import Log
    from storage.segment.segment import Segment


@dataclass(frozen=True, slots=True)
class Cleanable:
    """Cleanable range of one log."""

    log: Log
    first_dirty_offset: int
    end_offset: int
    """Base offset of the first segment that must stay as it is."""
    clean_bytes: int
    cleanable_bytes: int
    is_overdue: bool
    """A record has waited for longer than `max.compaction.lag.ms`."""

    @property
    def ratio(self) -> float:
        """Share of what may be cleaned that was not yet."""
        return self.cleanable_bytes / max(1, self.clean_bytes + self.cleanable_bytes)

    @property
    def is_worth_it(self) -> bool:
        """Return whether the log should be cleaned now."""
        is_dirty = self.ratio > self.log.config.min_cleanable_dirty_ratio
        return self.cleanable_bytes > 0 and (is_dirty or self.is_overdue)


def assess(log: Log, now_ms: int) -> Cleanable | None:
    """Cleanable range of `log`; None if it is not compacted or has a single segment."""
    segments = log.segments
    if COMPACT not in log.config.cleanup_policy or len(segments) == 1:
        return None
    first_dirty = _first_dirty(log)
    first_uncleanable = max(first_dirty, _first_uncleanable(log, first_dirty, now_ms))
    end_offset = segments[segments.floor(first_uncleanable)].base_offset
    dirty = [one for one in _dirty(log, first_dirty) if one.base_offset < end_offset]
    return Cleanable(
        log,
        first_dirty,
        end_offset,
        sum(one.size for one in segments if one.base_offset < first_dirty),
        sum(one.size for one in dirty),
        _is_overdue(log, first_dirty, now_ms),
    )


def make_job(
    chosen: Cleanable, limits: CleanerLimits, now_ms: int, hash_seed: bytes
) -> CleaningJob:
    """Job description for the cleaner process. Reads only, and may run on any thread.

    `hash_seed` is 32 random bytes.
    """
    log = chosen.log
    config = log.config
    segments = list(log.segments)
    return CleaningJob(
        log.path,
        tuple(_source(one) for one in segments if one.base_offset < chosen.end_offset),
        tuple(one.base_offset for one in segments if one.base_offset >= chosen.end_offset),
        chosen.first_dirty_offset,
        chosen.end_offset,
        {
            producer.producer_id: LastOfProducer(producer.last_offset, producer.epoch)
            for producer in list(log.producers.producers.values())
        },
        now_ms,
        hash_seed.hex(),
        config.delete_retention_ms,
        SegmentLimits(
            config.segment_bytes, config.segment_index_bytes, config.index_interval_bytes
        ),
        limits,
    )


def _first_dirty(log: Log) -> int:
    """First dirty offset: the end of the last cleaning; the log start if out of range."""
    cleaned = log.cleaned_offset
    is_sound = log.log_start_offset <= cleaned <= log.log_end_offset
    return cleaned if is_sound else log.log_start_offset


def _first_uncleanable(log: Log, first_dirty: int, now_ms: int) -> int:
    """End of the cleanable part: before the active segment, undecided and too young records.

    With delays, also before records not certainly on the disk: a record that waited is dropped
    because the log shows its delivery.
    """
    offset = min(log.last_stable_offset, log.segments.active.base_offset)
    if log.delays.exist:
        offset = min(offset, log.recovery_point)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in _dirty(log, first_dirty):
            if segment.age_timestamp > now_ms - lag_ms:
                return min(offset, segment.base_offset)
    return offset


def _is_overdue(log: Log, first_dirty: int, now_ms: int) -> bool:
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms == LONG_MAX:
        return False
    begun = [one.first_timestamp for one in _dirty(log, first_dirty)]
    return min((one for one in begun if one > 0), default=now_ms) < now_ms - lag_ms


def _dirty(log: Log, first_dirty: int) -> Iterator[Segment]:
    """Segments with something dirty in them, but for the active one."""
    segments = log.segments
    for index in range(segments.floor(first_dirty), len(segments) - 1):
        yield segments[index]


def _source(segment: Segment) -> SourceSegment:
    offsets, times = segment.offset_index, segment.time_index
    return SourceSegment(
        segment.base_offset,
        segment.size,
        len(offsets) * offsets.entry.size,
        len(times) * times.entry.size,
        segment.created_ms,
    )
