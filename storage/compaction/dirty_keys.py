"""Read the dirty part of a log for the newest offset of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from protocol.records.record import record_bytes
from protocol.records.spans import record_spans
from storage.compaction.batch_filter import check_batch
from storage.compaction.offset_map import NOT_THERE, OffsetMap
from storage.compaction.transactions import OngoingTransactions
from storage.errors import DamagedFileError

if TYPE_CHECKING:
    from protocol.records.batch import BatchHeader
    from storage.compaction.job import CleaningJob
    from storage.compaction.source_reader import SourceReader

PENDING_KEYS: Final = 16_384
"""Keys collected before they go into the map together: many come again meanwhile."""


def map_keys(job: CleaningJob, reader: SourceReader) -> tuple[OffsetMap, int]:
    """The newest offset of each key of the dirty part, and where the part that fits ends.

    Raises DamagedFileError when not even the keys of its first batch fit.
    """
    mapping = _KeyMapping(job)
    transactions = OngoingTransactions(reader.aborted_transactions())
    end_offset = job.first_dirty_offset
    ends = [*(segment.base_offset for segment in job.segments[1:]), job.end_offset]
    for segment, segment_end in zip(job.segments, ends, strict=True):
        if segment_end <= job.first_dirty_offset:
            continue
        for header, batch in reader.batches(segment):
            if header.is_control:
                transactions.end(header, batch)
            elif (
                not transactions.is_aborted(header)
                and header.next_offset > job.first_dirty_offset
                and not mapping.add(header, batch)
            ):
                if end_offset == job.first_dirty_offset:
                    raise DamagedFileError(
                        f"the keys of the batch at offset {header.base_offset} of {job.directory} "
                        "need more memory than log.cleaner.dedupe.buffer.size"
                    )
                return mapping.finish(), end_offset
            end_offset = max(end_offset, header.next_offset)
        end_offset = segment_end  # whatever offsets are missing at its end
    return mapping.finish(), end_offset


class _KeyMapping:
    """An `OffsetMap` with a dictionary of new keys before it."""

    def __init__(self, job: CleaningJob) -> None:
        first, end = job.first_dirty_offset, job.end_offset
        limits = job.limits
        self._first_offset = first
        self._map = OffsetMap.within(
            limits.memory_bytes, limits.load_factor, end - first, (first, end)
        )
        self._pending: dict[bytes, int] = {}

    def add(self, header: BatchHeader, batch: memoryview) -> bool:
        """Note the keys of a batch; False when they do not fit, and none is noted then."""
        check_batch(header, batch)
        body = bytes(record_bytes(batch, header))
        _, _, keys, deltas, _ = record_spans(body, header)
        base = header.base_offset
        if base >= self._first_offset and None not in keys:
            offsets = [base + delta for delta in deltas]
            found = cast("dict[bytes, int]", dict(zip(keys, offsets, strict=True)))
        else:
            found = {
                key: base + delta
                for key, delta in zip(keys, deltas, strict=True)
                if key is not None and base + delta >= self._first_offset
            }
        if not self._makes_room(found):
            return False
        self._pending.update(found)
        if len(self._pending) > PENDING_KEYS:
            self._flush()
        return True

    def finish(self) -> OffsetMap:
        """The map with all keys in it."""
        self._flush()
        return self._map

    def _makes_room(self, found: dict[bytes, int]) -> bool:
        capacity = self._map.capacity
        if self._map.size + len(self._pending) + len(found) <= capacity:
            return True
        self._flush()
        new = sum(offset == NOT_THERE for offset in self._map.newest(found).values())
        return self._map.size + new <= capacity

    def _flush(self) -> None:
        self._map.note(self._pending)
        self._pending.clear()
