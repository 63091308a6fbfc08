"""Sorted entries: merged a few at a time, and kept in a file of which a page is in memory."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from config.key import LONG_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.filesystem import File, FileSystem

Entry = TypeVar("Entry", bound=tuple[int, ...])
"""A named tuple of integers, of which the second is an offset, such as `Waiting`."""
Make = Callable[[Iterable[Any]], Entry]
"""Makes an entry of its numbers: `_make` of its class."""

NUMBER_BYTES: Final = 8
SORTED_AT_ONCE: Final = 2048
"""In one step: a millisecond."""
PAGE_ENTRIES: Final = 128
SEARCHED_ENTRIES: Final = 4096
"""Looked through in one step: a millisecond."""
_offset_of = itemgetter(1)


def sorted_pieces(entries: list[Entry]) -> Iterator[list[Entry]]:
    """All entries in order, at most SORTED_AT_ONCE in a piece; an empty one is a step as well.

    No two entries are the same. Each chunk of them is sorted first. Then of each chunk as many may
    come as have a share in one piece, up to the entry at which the first of the chunks has used up
    its share: nothing that follows in any chunk comes before that one.

        chunks    1 4 7 9   2 3 5 8      shares of 2: 1 4, and 2 3
        pieces    1 2 3                  up to 3; then 4 7, and 5 8, up to 7
    """
    chunks = []
    for first in range(0, len(entries), SORTED_AT_ONCE):
        chunks.append(sorted(entries[first : first + SORTED_AT_ONCE]))
        yield []
    del entries
    taken = [0] * len(chunks)
    while remaining := [at for at, chunk in enumerate(chunks) if taken[at] < len(chunk)]:
        share = max(SORTED_AT_ONCE // len(remaining), 1)
        bound = min(chunks[at][min(taken[at] + share, len(chunks[at])) - 1] for at in remaining)
        piece: list[Entry] = []
        for at in remaining:
            end = bisect_right(chunks[at], bound, taken[at])
            piece += chunks[at][taken[at] : end]
            taken[at] = end
        piece.sort()
        yield piece


class SortedRun(Generic[Entry]):
    """Sorted entries in a file, of which one page is in memory. `add` all, then read."""

    __slots__ = (
        "_count",
        "_file",
        "_filesystem",
        "_is_removed",
        "_make",
        "_page",
        "_path",
        "_read",
        "_width",
        "least_offset",
    )

    def __init__(self, filesystem: FileSystem, path: str, make: Make[Entry]) -> None:
        """Create the file."""
        self._filesystem = filesystem
        self._path = path
        self._make = make
        self._width = 0
        """Numbers of an entry."""
        self._file: File | None = filesystem.open(path, create=True)
        """Open while entries are added: another file may get its name if its directory is gone."""
        self._count = 0
        self._is_removed = False
        self._read = 0
        self._page: list[Entry] = []
        """Next entries, the last one first."""
        self.least_offset = LONG_MAX
        """No entry has a lower one."""

    def add(self, entries: list[Entry]) -> None:
        """Write entries that come after all that were added before."""
        if entries:
            assert self._file is not None
            self._width = len(entries[0])
            count = len(entries) * self._width
            data = struct.pack(f">{count}q", *chain.from_iterable(entries))
            self._file.write_at(self._count * self._width * NUMBER_BYTES, data)
            self._count += len(entries)
            self.least_offset = min(self.least_offset, *map(_offset_of, entries))

    def begin_at(self, taken: int) -> None:
        """All are there; the first ones were taken already."""
        self._file = None
        self._read = min(taken, self._count)

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
        """Remove the file."""
        self._is_removed = True
        self._file = None
        self._filesystem.remove(self._path)

    def _read_page(self) -> None:
        count = min(PAGE_ENTRIES, self._count - self._read)
        self._page = self._entries(self._read, count)
        self._page.reverse()
        self._read += count

    def _entries(self, first: int, count: int) -> list[Entry]:
        file, size = self._filesystem.open(self._path), self._width * NUMBER_BYTES
        data = file.read_at(first * size, count * size)
        if len(data) < count * size:
            raise OSError(f"{self._path} has become shorter")
        return list(map(self._make, struct.iter_unpack(f">{self._width}q", data)))
