"""Aborted transactions of each batch, and markers that have outlived their data.

The cleaner walks the log in order and reports each batch. The data of an aborted transaction can go
at once. A marker can go once the cleaner meets it without having met data of its transaction:
either an earlier cleaning has removed all of it, or there never was any (KIP-98, KIP-534). Until
then the marker of an aborted transaction keeps its entry in the `.txnindex`.

A producer id has one transaction at a time, so the state is one entry per producer id:

    batch      t(7) t(8) abort(7) t(7) commit(8) commit(7)
    index      (7, from 0 to 2)
    answer     drop keep  had 0    keep  had 1     had 3
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.records.control import ControlType, parse_marker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from protocol.records.batch import BatchHeader
    from protocol.wire import Buffer
    from storage.segment.aborted_index import AbortedTransaction


class OngoingTransactions:
    """State of one walk."""

    __slots__ = ("_aborted", "_coming", "_committed", "_with_data")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """`aborted` are those of the range that will be walked, in any order; others do no harm."""
        self._coming = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}
        """Aborted transactions that have begun, by producer id."""
        self._with_data: set[int] = set()
        """Producer ids of those of which data was met."""
        self._committed: set[int] = set()
        """Producer ids that data of a committed transaction was met of."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Note a data batch; return whether its transaction was aborted."""
        if not header.is_transactional:
            return False
        self._begin_up_to(header)
        if header.producer_id in self._aborted:
            self._with_data.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def end(self, header: BatchHeader, batch: Buffer) -> tuple[bool, AbortedTransaction | None]:
        """Note a control batch; return whether it may go, and the index entry it must keep."""
        self._begin_up_to(header)
        if header.record_count == 0:
            return True, None
        marker = parse_marker(batch)
        producer_id = header.producer_id
        if marker is None:
            return False, None
        if marker.type is ControlType.COMMIT:
            had_data = producer_id in self._committed
            self._committed.discard(producer_id)
            return not had_data, None
        aborted = self._aborted.pop(producer_id, None)
        had_data = producer_id in self._with_data
        self._with_data.discard(producer_id)
        return not had_data, aborted if had_data else None

    def _begin_up_to(self, header: BatchHeader) -> None:
        coming = self._coming
        while coming and coming[-1].first_offset <= header.last_offset:
            one = coming.pop()
            if one.last_offset >= header.base_offset:  # or it was over before the walk began
                self._aborted[one.producer_id] = one
