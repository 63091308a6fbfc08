"""Acknowledgements of acquired records by a member: checked, then applied.

The acknowledgements of a partition in one request apply together, or not at all; a renewal of locks
is not rolled back, as it changes no record's state.
"""

from __future__ import annotations

from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from coordinator.share_partitions.record_range import (
    NOBODY,
    AcknowledgeType,
    RecordRange,
    RecordState,
    Transition,
)
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coordinator.share_partitions.record_ranges import RecordRanges
    from coordinator.share_partitions.settings import ShareGroupSettings


class AcknowledgementBatch(NamedTuple):
    """Acknowledgements of the records from the first to the last offset."""

    first: int
    last: int
    types: Sequence[int]
    """One for all records, or one for each."""


class Acknowledgement:
    """One member's acknowledgements of one partition's records."""

    def __init__(
        self, ranges: RecordRanges, settings: ShareGroupSettings, member_id: str, now_ms: int
    ) -> None:
        self._ranges = ranges
        self._settings = settings
        self._member_id = member_id
        self._now_ms = now_ms
        self.transition = Transition(member_id)
        """Changes made so far."""

    def apply(self, batches: Sequence[AcknowledgementBatch]) -> Iterator[None]:
        """Apply all batches, pausing after each few microseconds.

        Raises ApiError INVALID_RECORD_STATE for records that the member does not hold, and
        INVALID_REQUEST for records that were never fetched; the caller rolls the changes back.
        """
        for batch in batches:
            if batch.last < self._ranges.start:
                continue  # they left the log, or all before them is finished
            if not len(self._ranges):
                raise ApiError(ErrorCode.INVALID_RECORD_STATE, "no records are in delivery")
            if batch.last >= self._ranges.end:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"offsets {batch.first} to {batch.last} are past what was delivered",
                )
            for first, last, kind in _runs(batch, self._ranges.start):
                self._apply(first, last, kind)
                yield

    def release(self, most: int) -> None:
        """Release the ranges that the member holds, at most `most` of them."""
        for one in islice(filter(self._holds, self._ranges), most):
            self._finish(one, RecordState.AVAILABLE)

    def _apply(self, first: int, last: int, kind: AcknowledgeType) -> None:
        first = max(first, self._ranges.start)
        for one in self._ranges.overlapping(first, last):
            if not one.is_gap and not self._holds(one):
                raise ApiError(
                    ErrorCode.INVALID_RECORD_STATE,
                    f"{one.first} to {one.last} are not acquired by the member, or no more",
                )
        is_renewal = kind is AcknowledgeType.RENEW
        if is_renewal and not self._settings.is_renewal_enabled:
            raise ApiError(
                ErrorCode.INVALID_RECORD_STATE, "the group may not renew acquisition locks"
            )
        for one in self._ranges.isolated(first, last):
            if one.is_gap:
                continue
            if is_renewal:
                one.lock_until_ms = self._now_ms + self._settings.record_lock_duration_ms
            else:
                self._finish(one, BECOMES[kind])

    def _holds(self, one: RecordRange) -> bool:
        return (
            one.state is RecordState.ACQUIRED
            and one.transition is None
            and one.member_id == self._member_id
        )

    def _finish(self, one: RecordRange, state: RecordState) -> None:
        if state is RecordState.AVAILABLE:
            state = released(one, self._settings)
        self._ranges.change(one, state)
        one.member_id = NOBODY
        one.transition = self.transition
        self.transition.ranges.append(one)


BECOMES = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


def released(one: RecordRange, settings: ShareGroupSettings) -> RecordState:
    """Return the state of a record that is released: available, until its last delivery."""
    if one.delivery_count >= settings.delivery_count_limit:
        return RecordState.ARCHIVED
    return RecordState.AVAILABLE


def _runs(batch: AcknowledgementBatch, start: int) -> Iterator[tuple[int, int, AcknowledgeType]]:
    """The batch, from `start` on, in pieces of one type each."""
    if len(batch.types) == 1:
        yield batch.first, batch.last, AcknowledgeType(batch.types[0])
        return
    first = max(batch.first, start)
    for number, run in groupby(batch.types[first - batch.first :]):
        count = sum(1 for _ in run)
        yield first, first + count - 1, AcknowledgeType(number)
        first += count
