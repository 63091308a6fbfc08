"""What waits in one partition, by the time it is due: the next in memory, the rest in files.

    push, pop    a heap of the next ones
    runs         when the heap has too many, the later ones go into a file, sorted: a run. Of each
                 run a page is in memory; a heap of their first entries tells which comes next.

So memory grows by a page for each some ten thousand entries. Runs are derived from the log: a file
that was left behind is removed when the log is loaded, as all files that end in `.tmp`.
"""

from __future__ import annotations

import heapq
import logging
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from storage.filesystem import FileSystem

logger = logging.getLogger(__name__)

MOST_IN_HEAP: Final = 16_384
KEPT_IN_HEAP: Final = 4_096
"""Of those that are due first, when the others become a run."""
PAGE_ENTRIES: Final = 128
_ENTRY = Struct(">qq")


class Waiting(NamedTuple):
    """One record: when it is due, and where it waits. They are delivered in this order."""

    due_ms: int
    offset: int


class WaitingQueue:
    """One caller at a time."""

    def __init__(self, filesystem: FileSystem, directory: str) -> None:
        """Runs are written to `directory`, which has to be there."""
        self._filesystem = filesystem
        self._directory = directory
        self._heap: list[Waiting] = []
        self._heads: list[tuple[Waiting, int]] = []
        """The first entry of each run, and the number of the run."""
        self._runs: dict[int, _Run] = {}
        self._runs_made = 0
        self._most_in_heap = MOST_IN_HEAP
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, waiting: Waiting) -> None:
        """Add one."""
        heapq.heappush(self._heap, waiting)
        self._size += 1
        if len(self._heap) > self._most_in_heap:
            self._spill()

    def peek(self) -> Waiting | None:
        """The one that is due first."""
        if self._heads and not (self._heap and self._heap[0] < self._heads[0][0]):
            return self._heads[0][0]
        return self._heap[0] if self._heap else None

    def pop(self) -> Waiting:
        """Take out the one that `peek` returns. OSError when a run cannot be read."""
        self._size -= 1
        if self._heads and not (self._heap and self._heap[0] < self._heads[0][0]):
            first, number = self._heads[0]
            following = self._runs[number].next()
            if following is None:
                heapq.heappop(self._heads)
                self._runs.pop(number).remove()
            else:
                heapq.heapreplace(self._heads, (following, number))
            return first
        return heapq.heappop(self._heap)

    def least_offset(self) -> int | None:
        """No entry has a lower offset; of runs, those count that have been taken out, too."""
        least = [min(entry.offset for entry in self._heap)] if self._heap else []
        least += [run.least_offset for run in self._runs.values()]
        return min(least, default=None)

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
        later = self._heap[KEPT_IN_HEAP:]
        self._runs_made += 1
        path = f"{self._directory}/delivery-{self._runs_made:020d}.tmp"
        try:
            run = _Run(self._filesystem, path, later)
        except OSError as error:
            # Nothing is lost, and the log itself will say so if its disk is full.
            self._most_in_heap *= 2
            logger.warning(
                "delivery: %s cannot be written, more is kept in memory: %s", path, error
            )
            return
        del self._heap[KEPT_IN_HEAP:]
        self._runs[self._runs_made] = run
        first = run.next()
        assert first is not None
        heapq.heappush(self._heads, (first, self._runs_made))


class _Run:
    """Sorted entries in a file, of which one page is in memory."""

    __slots__ = ("_count", "_filesystem", "_page", "_path", "_read", "least_offset")

    def __init__(self, filesystem: FileSystem, path: str, entries: list[Waiting]) -> None:
        data = b"".join([_ENTRY.pack(*entry) for entry in entries])
        filesystem.replace(path, data, sync=False)
        self._filesystem = filesystem
        self._path = path
        self._count = len(entries)
        self._read = 0
        self._page: list[Waiting] = []
        """Those that come next, the last one first."""
        self.least_offset = min(entry.offset for entry in entries)

    def next(self) -> Waiting | None:
        """The entry after the last one that was returned; None at the end."""
        if not self._page:
            if self._read == self._count:
                return None
            self._read_page()
        return self._page.pop()

    def remove(self) -> None:
        """Let go of the file."""
        self._filesystem.remove(self._path)

    def _read_page(self) -> None:
        count = min(PAGE_ENTRIES, self._count - self._read)
        file = self._filesystem.open(self._path)
        data = file.read_at(self._read * _ENTRY.size, count * _ENTRY.size)
        if len(data) < count * _ENTRY.size:
            raise OSError(f"{self._path} has become shorter")
        self._page = [Waiting(*fields) for fields in _ENTRY.iter_unpack(data)]
        self._page.reverse()
        self._read += count
