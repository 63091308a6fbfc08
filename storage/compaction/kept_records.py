"""Records of several batches that stay, by the rules of `batch_filter`, decided all at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from protocol.records.rewrite import PlacedRecords, rewrite_batch
from storage.compaction.columns.opened_batches import open_batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from protocol.errors import ApiError
    from protocol.records.batch import BatchHeader
    from protocol.wire import Buffer
    from storage.compaction.columns.key_hashes import KeyHasher
    from storage.compaction.columns.offset_map import OffsetMap
    from storage.compaction.columns.opened_batches import OpenedBatches


@dataclass(frozen=True, slots=True)
class Horizons:
    """Times and offsets that bound one cleaning."""

    now_ms: int
    delete_retention_ms: int
    clean_end_offset: int
    """Records from here on are not in the map of keys."""


class KeptRecords:
    """Records of one batch that stay."""

    __slots__ = ("_index", "_kept", "_opened", "count", "has_tombstones", "header", "keyless")

    def __init__(
        self,
        opened: OpenedBatches,
        index: int,
        kept: NDArray[np.bool_],
        counts: tuple[int, int, int],
    ) -> None:
        """`kept` is a column of `opened`, this the batch at `index`.

        `counts` are of its records that stay, of the tombstones among them, and of those dropped
        because they have no key.
        """
        self._opened = opened
        self._index = index
        self._kept = kept
        self.header = opened.headers[index]
        self.count, tombstones, self.keyless = counts
        self.has_tombstones = tombstones > 0

    @property
    def error(self) -> ApiError | None:
        """Error in the batch; if there is one, all other attributes are void."""
        return self._opened.errors.get(self._index)

    def batch(self, delete_horizon_ms: int | None) -> bytearray:
        """The batch with these records, at least one, only."""
        opened, columns = self._opened, self._opened.columns
        first, end = opened.bounds[self._index : self._index + 2]
        which = first + np.flatnonzero(self._kept[first:end])
        records = PlacedRecords(
            columns.starts[which].tolist(),
            columns.ends[which].tolist(),
            opened.timestamp_deltas[which].tolist(),
        )
        return rewrite_batch(self.header, opened.octets, records, delete_horizon_ms)


class RecordSieve:
    """Decides on the records of one log."""

    def __init__(self, newest: OffsetMap, hasher: KeyHasher, horizons: Horizons) -> None:
        """`newest` has the newest offsets by what `hasher` makes of keys."""
        self._newest = newest
        self._hasher = hasher
        self._horizons = horizons

    def sift(self, batches: Sequence[tuple[BatchHeader, Buffer]]) -> Iterator[KeptRecords]:
        """Records that stay of each of `batches`; none of them is empty or holds markers."""
        for opened in open_batches(batches):
            kept, is_keyless = self._kept(opened)
            counts = zip(
                opened.count(kept),
                opened.count(kept & opened.columns.is_null),
                repeat(0) if is_keyless is None else opened.count(is_keyless),
                strict=False,
            )
            for index, each in enumerate(counts):
                yield KeptRecords(opened, index, kept, each)

    def everything(self, header: BatchHeader, batch: Buffer) -> KeptRecords:
        """All records of one batch, without exception."""
        opened = next(open_batches([(header, batch)]))
        kept = np.ones(header.record_count, np.bool_)
        return KeptRecords(opened, 0, kept, (header.record_count, 0, 0))

    def _kept(self, opened: OpenedBatches) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
        """Columns of the records that stay, and of those dropped for lack of a key, if any."""
        columns = opened.columns
        offsets = opened.base_offsets() + columns.offset_deltas
        keyed = np.flatnonzero(columns.key_sizes >= 0)
        hashes = self._hasher.hashes(
            opened.octets, columns.keys.take(keyed), columns.key_sizes.take(keyed)
        )
        kept = np.zeros(len(offsets), np.bool_)
        kept[keyed] = offsets.take(keyed) >= self._newest.newest(hashes)
        is_past = [is_past_horizon(header, self._horizons.now_ms) for header in opened.headers]
        if any(is_past):
            kept &= ~(columns.is_null & opened.of_each_record(is_past).astype(np.bool_))
        is_beyond = offsets >= self._horizons.clean_end_offset
        kept |= is_beyond
        if len(keyed) == len(offsets):
            return kept, None
        return kept, (columns.key_sizes < 0) & ~is_beyond


def is_past_horizon(header: BatchHeader, now_ms: int) -> bool:
    """Return whether the tombstones, or the marker, in a batch may go."""
    return header.has_delete_horizon and header.base_timestamp <= now_ms
