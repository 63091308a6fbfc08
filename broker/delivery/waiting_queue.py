"""Waiting records of one partition, in order: the next in memory, the rest in files.

    push, pop    a heap of the next ones
    spill        when the heap has too many, the later ones go into a file, sorted: a run. Of each
                 run a page is in memory; a heap of their first entries gives the next one.

So memory grows by a page for each some ten thousand entries (three quarters of
`delivery.memory.max.records`). Records are ordered by due time, dead letters by the position of
their decision: an entry is a few numbers. Runs are derived from the log: a leftover file is removed
when the log is loaded, as all files that end in `.tmp`.
"""

from __future__ import annotations

import heapq
import itertools
import logging
from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Generic, NamedTuple

from broker.delivery.sorted_run import PAGE_ENTRIES, SORTED_AT_ONCE, Entry, SortedRun, sorted_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.delivery.sorted_run import Make
    from storage.filesystem import FileSystem

logger = logging.getLogger(__name__)

KEPT_SHARE: Final = 4
"""Divisor of the heap that gives the first entries kept in it when the others become a run."""
_offset_of = itemgetter(1)
_numbers = itertools.count()


class Waiting(NamedTuple):
    """One record: when it is due, and where it waits. They are delivered in this order.

    Also a point in that order: one up to which all is delivered states its own due time.
    """

    due_ms: int
    """Stated delivery time, or the delivery position before it, if later."""
    offset: int
    stated_ms: int = -1
    """The time it states. By a clock that was set back this comes long before the other."""


class RunPlace(NamedTuple):
    """Directory for runs."""

    filesystem: FileSystem
    directory: str
    """Must exist."""
    name: str
    """With which the names of the files begin."""


class WaitingQueue(Generic[Entry]):
    """One caller at a time."""

    def __init__(self, place: RunPlace, make: Make[Entry], most: int) -> None:
        """`most` entries are kept in memory, and a page of each run."""
        self._place = place
        self._number = next(_numbers)
        """Part of the names of its files: one before it may still be about to remove its own."""
        self._make = make
        self._most = most
        self._heap: list[Entry] = []
        self._offsets: list[int] = []
        """A heap as well: the offsets of those in `_heap`, and some of `_popped`."""
        self._popped: set[int] = set()
        """Offsets that were taken out of `_heap` and are still in `_offsets`."""
        self._heads: list[tuple[Entry, int]] = []
        """The first entry of each run, and the number of the run."""
        self._runs: dict[int, SortedRun[Entry]] = {}
        self._runs_made = 0
        self._most_in_heap = most
        self._size = 0
        self._is_closed = False

    def __len__(self) -> int:
        return self._size

    def push(self, waiting: Entry) -> bool:
        """Add one; returns whether too many are in memory now, and are to `spill`."""
        heapq.heappush(self._heap, waiting)
        heapq.heappush(self._offsets, waiting[1])
        self._size += 1
        return len(self._heap) > self._most_in_heap

    @property
    def is_full(self) -> bool:
        """True if more are in memory than allowed."""
        return len(self._heap) > self._most_in_heap

    def peek(self) -> Entry | None:
        """The one that comes first."""
        if self._heads and not (self._heap and self._heap[0] < self._heads[0][0]):
            return self._heads[0][0]
        return self._heap[0] if self._heap else None

    def pop(self) -> Entry:
        """Take out the one that `peek` returns. OSError when a run cannot be read."""
        if self._heads and not (self._heap and self._heap[0] < self._heads[0][0]):
            first, number = self._heads[0]
            following = self._runs[number].next()
            if following is None:
                heapq.heappop(self._heads)
                self._runs.pop(number).remove()
            else:
                heapq.heapreplace(self._heads, (following, number))
        else:
            first = heapq.heappop(self._heap)
            self._popped.add(first[1])
            self._forget_popped()
        self._size -= 1
        return first

    def least_offset(self) -> int | None:
        """No entry has a lower offset; of runs, those count that have been taken out, too."""
        least = self._offsets[:1]
        least += [run.least_offset for run in self._runs.values()]
        return min(least, default=None)

    def following(self, start: Entry, most: int) -> Iterator[list[Entry]]:
        """Entries at or after `start`, in sorted pieces: the first `most` of heap and runs each.

        Entries added between two pieces may be missing, and entries taken out may be included.
        """
        first = self.peek()
        if first is None:
            return
        start = max(start, first)
        yield heapq.nsmallest(most, [entry for entry in self._heap if entry >= start])
        for number in list(self._runs):
            if number in self._runs:
                yield self._runs[number].following(start, most)

    def holding(self, offset: int) -> Iterator[Entry | None]:
        """The entry of this offset, once it is found, and nothing after it; None is a step."""
        first = self.peek()
        for entry in self._heap:
            if entry[1] == offset:
                yield entry
                return
        yield None
        for number in list(self._runs):
            pages = self._runs[number].pages() if number in self._runs else ()
            for page in pages:
                for entry in page:
                    if entry[1] == offset and first is not None and entry >= first:
                        yield entry
                        return
                yield None

    def close(self) -> None:
        """Remove all files."""
        self._is_closed = True
        for run in self._runs.values():
            run.remove()
        self._runs.clear()
        self._heads.clear()
        self._heap.clear()
        self._offsets.clear()
        self._popped.clear()
        self._size = 0

    def _forget_popped(self) -> None:
        """Have the least of `_offsets` be one of `_heap`, and not many besides those."""
        offsets, popped = self._offsets, self._popped
        while offsets and offsets[0] in popped:
            popped.remove(heapq.heappop(offsets))
        # One that waits for long would keep all that came and went since.
        if len(popped) > len(self._heap) + PAGE_ENTRIES:
            self._note_offsets()

    def _note_offsets(self) -> None:
        self._offsets = sorted(map(_offset_of, self._heap))
        self._popped.clear()

    def spill(self) -> Iterator[None]:
        """Put the later ones into a file, in steps between which entries may be read and taken.

        None may be added before the last step: until then all are in the heap as they were.
        """
        self._runs_made += 1
        number = self._runs_made
        name = f"{self._place.name}-{self._number}-{number:020d}.tmp"
        path = f"{self._place.directory}/{name}"
        try:
            yield from self._spill_to(path, number)
        except OSError as error:
            # Nothing is lost, and the log itself reports a full disk.
            self._most_in_heap *= 2
            logger.warning(
                "delivery: %s cannot be written, more is kept in memory: %s", path, error
            )

    def _spill_to(self, path: str, number: int) -> Iterator[None]:
        count, kept_count = len(self._heap), self._most // KEPT_SHARE
        kept: list[Entry] = []
        run = SortedRun(self._place.filesystem, path, self._make)
        try:
            for piece in sorted_pieces(list(self._heap)):
                room = kept_count - len(kept)
                kept += piece[:room]
                run.add(piece[room:])
                yield
                if self._is_closed:
                    return
            taken = count - len(self._heap)
            run.begin_at(max(taken - kept_count, 0))
            first = run.next()
            if first is not None:
                heapq.heappush(self._heads, (first, number))
                self._runs[number] = run
            left, self._heap = self._heap, kept[taken:]  # a sorted list is a heap
            self._note_offsets()
            self._most_in_heap = self._most
        finally:
            if number not in self._runs:
                with suppress(OSError):  # the next start removes it
                    run.remove()
        while left:  # to free all at once would take as long as a step
            del left[-SORTED_AT_ONCE:]
            yield
