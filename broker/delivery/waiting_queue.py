"""What waits in one partition, in order: the next in memory, the rest in files.

    push, pop    a heap of the next ones
    runs         when the heap has too many, the later ones go into a file, sorted: a run. Of each
                 run a page is in memory; a heap of their first entries tells which comes next.

So memory grows by a page for each some ten thousand entries (three quarters of
`delivery.memory.max.records`). Records wait by the time at which they are due, dead letters by
where they were decided: an entry is a pair of numbers. Runs are derived from the log: a file
that was left behind is removed when the log is loaded, as all files that end in `.tmp`.
"""

from __future__ import annotations

import heapq
import itertools
import logging
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from storage.filesystem import FileSystem

logger = logging.getLogger(__name__)

KEPT_SHARE: Final = 4
"""One in so many, those that come first, is kept in the heap when the others become a run."""
PAGE_ENTRIES: Final = 128
SEARCHED_ENTRIES: Final = 4096
"""Looked through in one step: a millisecond."""
_ENTRY = Struct(">qq")
_offset_of = itemgetter(1)
_numbers = itertools.count()


class Waiting(NamedTuple):
    """One record: when it is due, and where it waits. They are delivered in this order."""

    due_ms: int
    offset: int


Entry = TypeVar("Entry", bound=tuple[int, int])
"""A pair whose second number is an offset, such as `Waiting`."""


class RunPlace(NamedTuple):
    """Where runs are written."""

    filesystem: FileSystem
    directory: str
    """It has to be there."""
    name: str
    """With which the names of the files begin."""


class WaitingQueue(Generic[Entry]):
    """One caller at a time."""

    def __init__(self, place: RunPlace, entry: Callable[[int, int], Entry], most: int) -> None:
        """`entry` makes one of its numbers; `most` are kept in memory, and a page of each run."""
        self._place = place
        self._number = next(_numbers)
        """Part of the names of its files: one before it may still be about to remove its own."""
        self._entry = entry
        self._most = most
        self._heap: list[Entry] = []
        self._heads: list[tuple[Entry, int]] = []
        """The first entry of each run, and the number of the run."""
        self._runs: dict[int, _Run[Entry]] = {}
        self._runs_made = 0
        self._most_in_heap = most
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, waiting: Entry) -> None:
        """Add one."""
        heapq.heappush(self._heap, waiting)
        self._size += 1
        if len(self._heap) > self._most_in_heap:
            self._spill()

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
        self._size -= 1
        return first

    def least_offset(self) -> int | None:
        """No entry has a lower offset; of runs, those count that have been taken out, too."""
        least = [min(map(_offset_of, self._heap))] if self._heap else []
        least += [run.least_offset for run in self._runs.values()]
        return min(least, default=None)

    def following(self, start: Entry, most: int) -> Iterator[list[Entry]]:
        """Entries at or after `start`, in pieces that are sorted: the first `most` of each place.

        What is added between two pieces may be missing, and what is taken out then be there.
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
        for run in self._runs.values():
            run.remove()
        self._runs.clear()
        self._heads.clear()
        self._heap.clear()
        self._size = 0

    def _spill(self) -> None:
        self._heap.sort()  # a sorted list is a heap
        kept = self._most // KEPT_SHARE
        later = self._heap[kept:]
        self._runs_made += 1
        name = f"{self._place.name}-{self._number}-{self._runs_made:020d}.tmp"
        path = f"{self._place.directory}/{name}"
        try:
            run = _Run(self._place.filesystem, path, later, self._entry)
        except OSError as error:
            # Nothing is lost, and the log itself will say so if its disk is full.
            self._most_in_heap *= 2
            logger.warning(
                "delivery: %s cannot be written, more is kept in memory: %s", path, error
            )
            return
        del self._heap[kept:]
        self._most_in_heap = self._most
        self._runs[self._runs_made] = run
        first = run.next()
        assert first is not None
        heapq.heappush(self._heads, (first, self._runs_made))


class _Run(Generic[Entry]):
    """Sorted entries in a file, of which one page is in memory."""

    __slots__ = (
        "_count",
        "_entry",
        "_filesystem",
        "_is_removed",
        "_page",
        "_path",
        "_read",
        "least_offset",
    )

    def __init__(
        self,
        filesystem: FileSystem,
        path: str,
        entries: list[Entry],
        entry: Callable[[int, int], Entry],
    ) -> None:
        data = b"".join([_ENTRY.pack(*entry) for entry in entries])
        filesystem.replace(path, data, sync=False)
        self._filesystem = filesystem
        self._path = path
        self._entry = entry
        self._count = len(entries)
        self._is_removed = False
        self._read = 0
        self._page: list[Entry] = []
        """Those that come next, the last one first."""
        self.least_offset = min(map(_offset_of, entries))

    def next(self) -> Entry | None:
        """The entry after the last one that was returned; None at the end."""
        if not self._page:
            if self._read == self._count:
                return None
            self._read_page()
        return self._page.pop()

    def following(self, start: Entry, most: int) -> list[Entry]:
        """The first `most` entries at or after `start`, whether they were returned or not."""
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if self._entries(middle, 1)[0] < start:
                low = middle + 1
            else:
                high = middle
        return self._entries(low, min(most, self._count - low))

    def pages(self) -> Iterator[list[Entry]]:
        """All entries, some at a time; ends early when the file is removed."""
        for first in range(0, self._count, SEARCHED_ENTRIES):
            if self._is_removed:
                return
            yield self._entries(first, min(SEARCHED_ENTRIES, self._count - first))

    def remove(self) -> None:
        """Let go of the file."""
        self._is_removed = True
        self._filesystem.remove(self._path)

    def _read_page(self) -> None:
        count = min(PAGE_ENTRIES, self._count - self._read)
        self._page = self._entries(self._read, count)
        self._page.reverse()
        self._read += count

    def _entries(self, first: int, count: int) -> list[Entry]:
        file = self._filesystem.open(self._path)
        data = file.read_at(first * _ENTRY.size, count * _ENTRY.size)
        if len(data) < count * _ENTRY.size:
            raise OSError(f"{self._path} has become shorter")
        return [self._entry(*fields) for fields in _ENTRY.iter_unpack(data)]
