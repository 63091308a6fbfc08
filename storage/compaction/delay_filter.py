"""Outcome of compaction for batches that concern delays, by the rules of `delay_bounds`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.delays.delivered_remainder import delivered_remainder
from protocol.records.batch import (
    CONTROL_BIT,
    DELAY_BIT,
    POINT_BIT,
    RELAY_BIT,
    assign_attributes,
    parse_header,
)
from protocol.records.rewrite import empty_batch
from storage.compaction.batch_filter import Whole
from storage.delays.delay_index import DelayKind, kind_of

if TYPE_CHECKING:
    from protocol.records.batch import BatchHeader
    from protocol.wire import Buffer
    from storage.compaction.batch_filter import BatchFilter
    from storage.compaction.delay_bounds import DelayBounds
    from storage.compaction.transactions import OngoingTransactions

_DELAYS_CONTROL = CONTROL_BIT | DELAY_BIT | POINT_BIT | RELAY_BIT


class DelayFilter:
    """Decides on the batches with the delay bit of one log, in order."""

    __slots__ = ("_bounds", "_ordinary", "_transactions")

    def __init__(
        self, bounds: DelayBounds, ordinary: BatchFilter, transactions: OngoingTransactions
    ) -> None:
        """`ordinary` decides on their records, and on all other batches."""
        self._bounds = bounds
        self._ordinary = ordinary
        self._transactions = transactions

    def apply(self, header: BatchHeader, batch: Buffer, *, is_last: bool) -> Whole | bytearray:
        """Outcome for a batch that is not a transaction marker.

        `is_last`: it is the last batch of a future segment.
        """
        kind = kind_of(header)
        if kind is DelayKind.WAITING:
            return self._waiting(header, is_last=is_last)
        if kind is DelayKind.RELAYED:
            is_kept = header.base_offset >= self._bounds.relayed_from
            return Whole.KEPT if is_kept else _dropped(header, is_needed=is_last)
        is_kept = header.base_offset >= self._bounds.delivered_from
        if header.is_control:
            return Whole.KEPT if is_kept else _dropped(header, is_needed=is_last)
        stays = self._ordinary.apply(header, batch, is_discardable=False, is_last=is_last)
        if stays is Whole.KEPT:
            return stays
        if is_kept:
            return _remainder(batch, stays)
        if stays is not Whole.DROPPED:
            assign_attributes(stays, 0, parse_header(stays).attributes & ~DELAY_BIT)
        return stays

    def _waiting(self, header: BatchHeader, *, is_last: bool) -> Whole | bytearray:
        # Data of its transaction, although it waits: the marker does not go before.
        self._transactions.is_aborted(header)
        if header.last_offset >= self._bounds.waiting_from:
            return Whole.KEPT
        return _dropped(header, is_needed=is_last or self._ordinary.is_newest_of_producer(header))


def _remainder(batch: Buffer, stays: Whole | bytearray) -> bytearray:
    if isinstance(stays, bytearray) and parse_header(stays).record_count:
        return delivered_remainder(batch, stays)
    return delivered_remainder(batch, None)


def _dropped(header: BatchHeader, *, is_needed: bool) -> Whole | bytearray:
    """Drop a batch, or empty it if its offsets or sequence numbers are needed.

    An emptied batch is ordinary data, without the marks of delays.
    """
    if not is_needed:
        return Whole.DROPPED
    return empty_batch(header._replace(attributes=header.attributes & ~_DELAYS_CONTROL))
