"""Ranges of records in one state, and the merging of changes into the stored ranges.

Of two states of one record the one that was delivered more often counts, and of equally many
deliveries the later state: acknowledged before available, archived before acknowledged. Changes may
thus be applied again, and in any order. The stored ranges are disjoint and in ascending order, and
only those that a change touches are looked at:

    stored     0-9 available 1     10-19 available 1     20-29 acknowledged 1
    change          5-12 available 2
    result     0-4 available 1     5-12 available 2     13-19 available 1     20-29 acknowledged 1

Neighbours in the same state become one range. Everything before the start offset is dropped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from heapq import heappop, heappush
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

from coordinator.share_state.state import NO_START_OFFSET, StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Batches = tuple[StateBatch, ...]

_first = attrgetter("first_offset")
_last = attrgetter("last_offset")


def combined(stored: Batches, changes: Iterable[StateBatch], start_offset: int) -> Batches:
    """`stored` with `changes` laid over it, from the start offset on."""
    stored = _from(stored, start_offset)
    new = [
        batch._replace(first_offset=max(batch.first_offset, start_offset))
        for batch in changes
        if batch.last_offset >= max(batch.first_offset, start_offset)
    ]
    if not new:
        return stored
    left = bisect_left(stored, min(map(_first, new)) - 1, key=_last)
    right = bisect_right(stored, max(map(_last, new)) + 1, key=_first)
    touched = stored[left:right]
    laid = new if not touched and _is_tidy(new) else _swept([*touched, *new])
    return (*stored[:left], *laid, *stored[right:])


def _from(stored: Batches, start_offset: int) -> Batches:
    if start_offset == NO_START_OFFSET or not stored or stored[0].first_offset >= start_offset:
        return stored
    kept = stored[bisect_left(stored, start_offset, key=_last) :]
    if kept and kept[0].first_offset < start_offset:
        return (kept[0]._replace(first_offset=start_offset), *kept[1:])
    return kept


def _is_tidy(batches: Sequence[StateBatch]) -> bool:
    """Return whether they are disjoint, in ascending order, and no two of them can be merged."""
    return all(
        before.last_offset + 1 < after.first_offset
        or (before.last_offset < after.first_offset and before[2:] != after[2:])
        for before, after in pairwise(batches)
    )


def _swept(batches: Sequence[StateBatch]) -> list[StateBatch]:
    """Disjoint ranges in ascending order; costs n log n steps for n batches."""
    waiting = sorted(batches, key=_first, reverse=True)
    edges = sorted(
        {batch.first_offset for batch in waiting} | {each + 1 for each in map(_last, waiting)}
    )
    open_now: list[tuple[int, int, int]] = []
    swept: list[StateBatch] = []
    for start, end in pairwise(edges):
        while waiting and waiting[-1].first_offset == start:
            _, last, state, count = waiting.pop()
            heappush(open_now, (-count, -state, last))
        while open_now and open_now[0][2] < start:
            heappop(open_now)
        if open_now:
            count, state, _ = open_now[0]
            _extend(swept, StateBatch(start, end - 1, -state, -count))
    return swept


def _extend(swept: list[StateBatch], batch: StateBatch) -> None:
    if swept:
        before = swept[-1]
        if before.last_offset + 1 == batch.first_offset and before[2:] == batch[2:]:
            swept[-1] = before._replace(last_offset=batch.last_offset)
            return
    swept.append(batch)
