"""What compaction leaves of one batch: all of it, some of its records, an empty batch, or nothing.

The rules, which are Apache Kafka's:

- Of each key the newest record stays, among those up to where the map of keys reaches; records
  past that stay untouched. Records without a key go.
- A tombstone (a key with a null value) and the marker of a transaction without data first get a
  delete horizon, `delete.retention.ms` from the cleaning that first meets them, so that readers
  who are behind see them; when that has passed they go (KIP-534).
- The data of aborted transactions goes. Markers are never compared by key: all commits have one.
- The batch with the last data of an active producer stays, emptied if need be, because its
  sequence numbers tell duplicates from news; of a producer without data its marker does. And the
  last batch of a segment stays like that, so that the segment still says where it ends.

A batch that keeps all its records is copied as it is, bytes and compression.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.records.batch import compute_crc
from protocol.records.record import record_bytes
from protocol.records.rewrite import empty_batch, rewrite_batch
from protocol.records.spans import RecordSpans, record_spans
from storage.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.records.batch import BatchHeader
    from protocol.wire import Buffer
    from storage.compaction.offset_map import OffsetMap

MEMO_KEYS: Final = 16_384
"""Keys whose newest offset is remembered besides the map."""


class Whole(Enum):
    """A decision on a batch that makes no new bytes."""

    KEPT = "kept"
    DROPPED = "dropped"


class LastOfProducer(NamedTuple):
    """Where the newest state of an active producer stands in the log."""

    last_offset: int
    """Of its last data; -1 when only a marker is left."""
    epoch: int


@dataclass(frozen=True, slots=True)
class Horizons:
    """Times and offsets that one cleaning goes by."""

    now_ms: int
    delete_retention_ms: int
    clean_end_offset: int
    """Records from here on are not in the map of keys."""


class BatchFilter:
    """Decides on the batches of one log, in order."""

    __slots__ = ("_memo", "_producers", "horizons", "keyless", "newest")

    def __init__(
        self, newest: OffsetMap, horizons: Horizons, producers: dict[int, LastOfProducer]
    ) -> None:
        """`producers` are the active ones by id."""
        self.newest = newest
        self.horizons = horizons
        self._producers = producers
        self.keyless = 0
        """Records that were dropped for want of a key."""
        self._memo: dict[bytes, int] = {}

    def apply(
        self, header: BatchHeader, batch: Buffer, *, is_discardable: bool, is_last: bool
    ) -> Whole | bytearray:
        """What stays of `batch`.

        `is_discardable`: it is data of an aborted transaction, or a marker without data. `is_last`:
        it is the last of what will be one segment.
        """
        is_needed = is_last or self.is_newest_of_producer(header)
        is_dropped = is_discardable and (not header.is_control or self._is_past_horizon(header))
        if is_dropped or header.record_count == 0:
            return self._emptied(header) if is_needed else Whole.DROPPED
        if header.is_control:
            return self._kept_marker(header, batch, is_discardable=is_discardable)
        body, spans = _opened(header, batch)
        kept = self._kept_records(header, spans)
        if not kept:
            return self._emptied(header) if is_needed else Whole.DROPPED
        horizon_ms = None
        if not header.has_delete_horizon and any(map(spans.is_null.__getitem__, kept)):
            horizon_ms = self._new_horizon_ms()
        if horizon_ms is None and len(kept) == header.record_count:
            return Whole.KEPT
        return rewrite_batch(header, body, spans, kept, horizon_ms)

    def is_newest_of_producer(self, header: BatchHeader) -> bool:
        """Whether the state of an active producer rests on this batch."""
        if not header.has_producer_id or (last := self._producers.get(header.producer_id)) is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.epoch

    def _kept_marker(
        self, header: BatchHeader, batch: Buffer, *, is_discardable: bool
    ) -> Whole | bytearray:
        if not is_discardable or header.has_delete_horizon:
            return Whole.KEPT
        body, spans = _opened(header, batch)
        everything = range(header.record_count)
        return rewrite_batch(header, body, spans, everything, self._new_horizon_ms())

    def _kept_records(self, header: BatchHeader, spans: RecordSpans) -> Sequence[int]:
        """Indexes of the records that stay."""
        newest = self._newest_of(spans.keys)
        base = header.base_offset
        clean_end = self.horizons.clean_end_offset - base
        drops_tombstones = self._is_past_horizon(header)
        kept = [
            index
            for index, (key, delta, is_null) in enumerate(
                zip(spans.keys, spans.offset_deltas, spans.is_null, strict=True)
            )
            if delta >= clean_end
            or (
                key is not None
                and base + delta >= newest[key]
                and not (is_null and drops_tombstones)
            )
        ]
        if None in spans.keys:
            self.keyless += sum(
                key is None and delta < clean_end
                for key, delta in zip(spans.keys, spans.offset_deltas, strict=True)
            )
        return kept

    def _newest_of(self, keys: list[bytes | None]) -> dict[bytes, int]:
        """Newest offsets by key, of `keys` and others."""
        memo = self._memo
        if len(memo) > MEMO_KEYS:
            memo.clear()
        new = [key for key in keys if key not in memo and key is not None]
        if new:
            memo.update(self.newest.newest(new))
        return memo

    def _is_past_horizon(self, header: BatchHeader) -> bool:
        return header.has_delete_horizon and header.base_timestamp <= self.horizons.now_ms

    def _new_horizon_ms(self) -> int:
        return self.horizons.now_ms + self.horizons.delete_retention_ms

    @staticmethod
    def _emptied(header: BatchHeader) -> Whole | bytearray:
        return empty_batch(header) if header.record_count else Whole.KEPT


def _opened(header: BatchHeader, batch: Buffer) -> tuple[bytes, RecordSpans]:
    """Records of a batch without compression, and where they stand.

    Raises DamagedFileError for a batch that cannot be what was written: rewriting it would give
    the damage a checksum that is right.
    """
    check_batch(header, batch)
    body = bytes(record_bytes(batch, header))
    return body, record_spans(body, header)


def check_batch(header: BatchHeader, batch: Buffer) -> None:
    """Raise DamagedFileError when the checksum is wrong."""
    if header.crc != compute_crc(batch, 0, header.size_in_bytes):
        raise DamagedFileError(f"the checksum of the batch at offset {header.base_offset} is wrong")
