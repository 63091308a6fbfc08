"""Outcome of compaction for one batch: kept, some records kept, emptied, or dropped.

The rules, which are Apache Kafka's:

- Of each key the newest record stays, among those up to where the map of keys reaches; records
  past that stay untouched. Records without a key go.
- A tombstone (a key with a null value) and the marker of a transaction without data first get a
  delete horizon, `delete.retention.ms` from the cleaning that first meets them, so that lagging
  readers see them; when that has passed they go (KIP-534).
- The data of aborted transactions goes. Markers are never compared by key: all commits have one.
- The batch with the last data of an active producer stays, emptied if need be, because its
  sequence numbers identify duplicates; of a producer without data its marker stays. The last batch
  of a segment stays likewise, to keep the end offset of the segment.

A batch that keeps all its records is copied as it is, bytes and compression.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from protocol.records.rewrite import empty_batch
from storage.compaction.kept_records import is_past_horizon

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from protocol.records.batch import BatchHeader
    from protocol.wire import Buffer
    from storage.compaction.job import LastOfProducer
    from storage.compaction.kept_records import Horizons, KeptRecords, RecordSieve


class Whole(Enum):
    """A decision on a batch that makes no new bytes."""

    KEPT = "kept"
    DROPPED = "dropped"


class BatchFilter:
    """Decides on the batches of one log, in order."""

    __slots__ = ("_kept", "_producers", "_sieve", "horizons", "keyless")

    def __init__(
        self, sieve: RecordSieve, horizons: Horizons, producers: dict[int, LastOfProducer]
    ) -> None:
        """`producers` are the active ones by id."""
        self._sieve = sieve
        self.horizons = horizons
        self._producers = producers
        self.keyless = 0
        """Records that were dropped because they have no key."""
        self._kept: Iterator[KeptRecords] = iter(())

    def look_at(self, batches: Sequence[tuple[BatchHeader, Buffer]]) -> None:
        """Batches that `apply` will be called for next, in this order; some may be skipped."""
        self._kept = self._sieve.sift(
            [one for one in batches if one[0].record_count and not one[0].is_control]
        )

    def apply(
        self, header: BatchHeader, batch: Buffer, *, is_discardable: bool, is_last: bool
    ) -> Whole | bytearray:
        """Outcome for `batch`, one of those passed to `look_at`.

        `is_discardable`: it is data of an aborted transaction, or a marker without data. `is_last`:
        it is the last batch of a future segment.
        """
        is_needed = is_last or self.is_newest_of_producer(header)
        is_dropped = is_discardable and (
            not header.is_control or is_past_horizon(header, self.horizons.now_ms)
        )
        if is_dropped or header.record_count == 0:
            return self._emptied(header) if is_needed else Whole.DROPPED
        if header.is_control:
            return self._kept_marker(header, batch, is_discardable=is_discardable)
        kept = self._kept_of(header)
        self.keyless += kept.keyless
        if not kept.count:
            return self._emptied(header) if is_needed else Whole.DROPPED
        horizon_ms = None
        if not header.has_delete_horizon and kept.has_tombstones:
            horizon_ms = self._new_horizon_ms()
        if horizon_ms is None and kept.count == header.record_count:
            return Whole.KEPT
        return kept.batch(horizon_ms)

    def is_newest_of_producer(self, header: BatchHeader) -> bool:
        """Return whether the state of an active producer rests on this batch."""
        if not header.has_producer_id or (last := self._producers.get(header.producer_id)) is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.epoch

    def _kept_of(self, header: BatchHeader) -> KeptRecords:
        return _sound(next(one for one in self._kept if one.header is header))

    def _kept_marker(
        self, header: BatchHeader, batch: Buffer, *, is_discardable: bool
    ) -> Whole | bytearray:
        if not is_discardable or header.has_delete_horizon:
            return Whole.KEPT
        return _sound(self._sieve.everything(header, batch)).batch(self._new_horizon_ms())

    def _new_horizon_ms(self) -> int:
        return self.horizons.now_ms + self.horizons.delete_retention_ms

    @staticmethod
    def _emptied(header: BatchHeader) -> Whole | bytearray:
        return empty_batch(header) if header.record_count else Whole.KEPT


def _sound(kept: KeptRecords) -> KeptRecords:
    """Return `kept` if its batch is sound.

    Raises DamagedFileError for a batch that differs from the one written, ApiError(INVALID_RECORD)
    for one with malformed records.
    """
    if kept.error is not None:
        raise kept.error
    return kept
