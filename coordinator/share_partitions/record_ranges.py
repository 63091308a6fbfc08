"""All records in flight, as ranges that follow each other without gaps or overlaps."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from coordinator.share_partitions.record_range import TRANSITIONS, RecordRange, RecordState

if TYPE_CHECKING:
    from collections.abc import Iterator

_first_of = attrgetter("first")
FEW: Final = 32
"""Number of ranges below which merging does not pay."""


class RecordRanges:
    """The ranges in [`start`, `end`), in order."""

    __slots__ = ("_join_at", "_ranges", "end", "final_count", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        """The offset behind the last record in flight."""
        self.final_count = 0
        """Records from `start` on that will not be delivered again, as far as is decided."""
        self._ranges: list[RecordRange] = []
        self._join_at = FEW

    def __iter__(self) -> Iterator[RecordRange]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    @property
    def record_count(self) -> int:
        """Offsets in flight."""
        return self.end - self.start

    def append(self, new: RecordRange) -> None:
        """Put a range behind the last."""
        assert new.first == self.end
        self._ranges.append(new)
        self.end = new.last + 1
        if new.state.is_final:
            self.final_count += len(new)

    def restart_at(self, offset: int) -> None:
        """Restart at another offset, while no records are in flight."""
        assert not self._ranges
        self.start = self.end = offset

    def overlapping(self, first: int, last: int) -> Iterator[RecordRange]:
        """The ranges that have offsets of [first, last]. None may be split or removed meanwhile."""
        for index in range(self._index(first), len(self._ranges)):
            each = self._ranges[index]
            if each.first > last:
                return
            yield each

    def isolated(self, first: int, last: int) -> list[RecordRange]:
        """Return the ranges that make up [first, last], as far as in flight, cutting some."""
        first, last = max(first, self.start), min(last, self.end - 1)
        if first > last:
            return []
        begin = self._cut(first)
        end = self._cut(last + 1)
        return self._ranges[begin:end]

    def change(self, one: RecordRange, state: RecordState) -> None:
        """Take a range from one state to another."""
        assert state in TRANSITIONS[one.state], f"{one} cannot become {state.name}"
        self._set(one, state)

    def take_back(self, one: RecordRange, state: RecordState) -> None:
        """Undo a change that could not be stored."""
        assert one.transition is not None
        one.transition = None
        self._set(one, state)

    def _set(self, one: RecordRange, state: RecordState) -> None:
        if state.is_final and not one.state.is_final:
            self.final_count += len(one)
        elif one.state.is_final and not state.is_final:
            self.final_count -= len(one)
        one.state = state

    def advance(self) -> bool:
        """Drop the finished ranges at the start; returns whether there were any."""
        count = 0
        for each in self._ranges:
            if not each.is_finished:
                break
            count += 1
        if not count:
            return False
        self.drop_before(self._ranges[count - 1].last + 1)
        return True

    def drop_before(self, offset: int) -> None:
        """Advance the start to `offset`, dropping all ranges before it."""
        assert offset >= self.start
        if offset >= self.end:
            self._forget(self._ranges)
            self._ranges.clear()
            self.start = self.end = offset
            return
        index = self._cut(offset)
        self._forget(self._ranges[:index])
        del self._ranges[:index]
        self.start = offset

    def _forget(self, dropped: list[RecordRange]) -> None:
        for each in dropped:
            if each.state.is_final:
                self.final_count -= len(each)

    def join(self) -> None:
        """Make one range of those that are in the same state, when many have gathered."""
        if len(self._ranges) <= self._join_at:
            return
        joined: list[RecordRange] = []
        for each in self._ranges:
            if joined and each.continues(joined[-1]):
                joined[-1].last = each.last
            else:
                joined.append(each)
        self._ranges = joined
        self._join_at = max(FEW, 2 * len(joined))

    def _index(self, offset: int) -> int:
        """Return the index of the range that holds `offset`; 0 before the start."""
        return max(0, bisect_right(self._ranges, offset, key=_first_of) - 1)

    def _cut(self, offset: int) -> int:
        """Have a range begin at `offset`; returns its index, or the number of ranges at the end."""
        if offset >= self.end:
            return len(self._ranges)
        index = self._index(offset)
        one = self._ranges[index]
        if one.first == offset:
            return index
        self._ranges.insert(index + 1, one.split(offset))
        return index + 1
