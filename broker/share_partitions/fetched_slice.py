"""A piece of a log for share groups: its whole batches, and their positions."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from coordinator.share_partitions.acquisition import Acquired, FetchedBatch
from storage.segment.slices import Slice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.log.log_reader import LogReader
    from storage.segment.aborted_index import AbortedTransaction

_first_offset = attrgetter("first_offset")


class _Place(NamedTuple):
    """Place of a batch in the piece."""

    position: int
    end: int
    batch: FetchedBatch
    producer_id: int
    """-1 unless it belongs to a transaction and holds records of users."""


class FetchedSlice:
    """The first batches of a piece, `most` at most, as each costs a look at its header."""

    __slots__ = ("_piece", "_places")

    def __init__(self, reader: LogReader, piece: Slice, most: int) -> None:
        """Raises LogDirectoryError."""
        self._piece = piece
        self._places: list[_Place] = []
        for position, header in reader.headers_in(piece):
            end = position + header.size_in_bytes
            if end > piece.length or len(self._places) >= most:
                break
            is_in_transaction = header.is_transactional and not header.is_control
            producer_id = header.producer_id if is_in_transaction else -1
            batch = FetchedBatch(header.base_offset, header.last_offset)
            self._places.append(_Place(position, end, batch, producer_id))

    def __len__(self) -> int:
        return len(self._places)

    @property
    def batches(self) -> list[FetchedBatch]:
        """Offsets of the batches, in order."""
        return [place.batch for place in self._places]

    def aborted(self, transactions: Sequence[AbortedTransaction]) -> list[FetchedBatch]:
        """The batches that belong to aborted transactions."""
        if not transactions:
            return []
        by_producer: dict[int, list[AbortedTransaction]] = {}
        for one in transactions:
            by_producer.setdefault(one.producer_id, []).append(one)
        return [
            place.batch
            for place in self._places
            if _is_within(place.batch.first, by_producer.get(place.producer_id, ()))
        ]

    @property
    def whole(self) -> Slice:
        """All batches; there has to be one."""
        return self._cut(self._places[0], self._places[-1])

    def holding(self, acquired: Sequence[Acquired]) -> Slice:
        """The batches from the first to the last acquired record."""
        first, last = acquired[0].first, acquired[-1].last
        kept = [
            place
            for place in self._places
            if place.batch.last >= first and place.batch.first <= last
        ]
        return self._cut(kept[0], kept[-1])

    def _cut(self, begin: _Place, end: _Place) -> Slice:
        piece = self._piece
        return Slice(
            piece.file,
            piece.position + begin.position,
            end.end - begin.position,
            begin.batch.first,
            begin.end - begin.position,
        )


def _is_within(offset: int, transactions: Sequence[AbortedTransaction]) -> bool:
    """Return whether one of a producer's transactions, which are sorted, has the offset."""
    index = bisect_right(transactions, offset, key=_first_offset)
    return index > 0 and offset <= transactions[index - 1].last_offset
