"""Read the dirty part of a log for the newest offset of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from storage.compaction.columns.offset_map import OffsetMap
from storage.compaction.columns.opened_batches import open_batches
from storage.compaction.transactions import OngoingTransactions
from storage.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.records.batch import BatchHeader
    from storage.compaction.columns.key_hashes import KeyHasher
    from storage.compaction.columns.opened_batches import OpenedBatches
    from storage.compaction.job import CleaningJob
    from storage.compaction.source_reader import SourceReader


def map_keys(job: CleaningJob, reader: SourceReader, hasher: KeyHasher) -> tuple[OffsetMap, int]:
    """The newest offset of each key of the dirty part, and where the part that fits ends.

    Raises DamagedFileError when not even the keys of its first batch fit.
    """
    mapping = _KeyMapping(job, hasher)
    transactions = OngoingTransactions(reader.aborted_transactions())
    end_offset = job.first_dirty_offset
    segment_ends = [*(segment.base_offset for segment in job.segments[1:]), job.end_offset]
    for segment, segment_end in zip(job.segments, segment_ends, strict=True):
        if segment_end <= job.first_dirty_offset:
            continue
        for batches in reader.batches(segment):
            wanted = []
            ends = []
            for header, batch in batches:
                if header.is_control:
                    transactions.end(header, batch)
                elif (
                    not transactions.is_aborted(header)
                    and header.next_offset > job.first_dirty_offset
                    and header.record_count
                ):
                    wanted.append((header, batch))
                    ends.append(end_offset)
                end_offset = max(end_offset, header.next_offset)
            added = mapping.add(wanted)
            if added < len(wanted):
                if ends[added] == job.first_dirty_offset:
                    raise DamagedFileError(
                        f"the keys of the batch at offset {wanted[added][0].base_offset} of "
                        f"{job.directory} need more memory than log.cleaner.dedupe.buffer.size"
                    )
                return mapping.map, ends[added]
        end_offset = segment_end  # whatever offsets are missing at its end
    return mapping.map, end_offset


class _KeyMapping:
    """Puts the keys of batches into an `OffsetMap`."""

    def __init__(self, job: CleaningJob, hasher: KeyHasher) -> None:
        first, end = job.first_dirty_offset, job.end_offset
        limits = job.limits
        self._first_offset = first
        self._hasher = hasher
        self.map = OffsetMap.within(
            limits.memory_bytes, limits.load_factor, end - first, (first, end)
        )

    def add(self, batches: Sequence[tuple[BatchHeader, memoryview]]) -> int:
        """Note the keys of as many of `batches`, none empty, as fit; returns how many those are."""
        added = 0
        for opened in open_batches(batches):
            if opened.errors:
                raise opened.errors[min(opened.errors)]
            fitting = self._add(opened)
            added += fitting
            if fitting < len(opened.headers):
                break
        return added

    def _add(self, opened: OpenedBatches) -> int:
        columns = opened.columns
        offsets = opened.base_offsets() + columns.offset_deltas
        which = np.flatnonzero((columns.key_sizes >= 0) & (offsets >= self._first_offset))
        hashes = self._hasher.hashes(
            opened.octets, columns.keys.take(which), columns.key_sizes.take(which)
        )
        fitting = len(opened.headers)
        if self.map.size + len(which) > self.map.capacity:
            is_new = np.zeros(len(offsets), np.bool_)
            is_new[which] = self.map.is_new(hashes)
            sizes = self.map.size + np.cumsum(opened.count(is_new))
            fitting = int(np.searchsorted(sizes, self.map.capacity, side="right"))
            fit = np.searchsorted(which, opened.bounds[fitting])
            which, hashes = which[:fit], hashes.of(np.arange(fit))
        self.map.note(hashes, offsets.take(which))
        return fitting
