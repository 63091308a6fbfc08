"""The greatest offset of each key, in memory of a fixed size.

Keys are not kept, only 95 bits of hash of each (`key_hashes`): a million keys of any length take
24 MB, where a dictionary would take 150 and more. As in Apache Kafka, the memory configured divided
by 24 says how many keys there is room for; what is allocated is no more than that, and no more than
the keys expected need.

The table is open addressing with linear probing, in three columns. Keys are noted and looked up
some thousands at once, in rounds: in each, every key looks at one place, and those that have not
found theirs go on to the next place in the next round. The first round does nearly all. A place
takes 16 or 20 of its 24 bytes, so there are more places than is said, and fewer rounds:

    high      |h     |      |h     |h     |      |      |     0: nobody is here
    low       |h     |      |h     |h     |      |      |
    offsets   |o     |      |o     |o     |      |      |     relative to the first
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.compaction.key_hashes import KeyHashes

BYTES_PER_KEY: Final = 24
"""What Apache's map needs for one key: 16 bytes of MD5 and the offset."""
HASH_BYTES: Final = 12
SMALL_SPAN: Final = 1 << 32
NOT_THERE: Final = -1

_HALF: Final = np.uint64(32)


class OffsetMap:
    """Filled with `note`, then asked with `newest`."""

    __slots__ = ("_base_offset", "_high", "_low", "_offsets", "capacity", "size")

    def __init__(self, capacity: int, room: int, offsets: tuple[int, int]) -> None:
        """Make a map for up to `capacity` keys in a table that has `room` for that many and more.

        `offsets` are the first that may be noted and the one after the last.
        """
        assert 0 < capacity <= room
        first, end = offsets
        self.capacity = capacity
        self.size = 0
        self._base_offset = first
        kind = np.dtype(np.uint32 if end - first < SMALL_SPAN else np.uint64)
        # One is free at the least, so that looking for what is not there ends.
        places = room * BYTES_PER_KEY // (HASH_BYTES + kind.itemsize) + 1
        self._high = np.zeros(places, np.uint64)
        self._low = np.zeros(places, np.uint32)
        self._offsets = np.zeros(places, kind)

    @classmethod
    def within(
        cls, memory_bytes: int, load_factor: float, records: int, offsets: tuple[int, int]
    ) -> OffsetMap:
        """The map that `memory_bytes` allow, smaller if there are only `records` to note."""
        room = memory_bytes // BYTES_PER_KEY
        capacity = max(1, min(int(room * load_factor), room))
        if records < capacity:
            capacity = max(1, records)
            room = max(capacity, int(capacity / load_factor))
        return cls(capacity, max(room, capacity), offsets)

    def note(self, hashes: KeyHashes, offsets: NDArray[np.int64]) -> None:
        """Keep the offsets by key; later ones replace earlier ones, so they must not be smaller.

        A key may come several times. The caller sees to it that `size` never passes `capacity`.
        """
        high, low = hashes
        relative = (offsets - self._base_offset).astype(self._offsets.dtype)
        at = self._homes(high)
        while len(at):
            held = self._high.take(at)
            is_same = (held == high) & (self._low.take(at) == low)
            self._offsets[at[is_same]] = relative[is_same]  # of a key that comes again, the last
            goes_on = ~is_same
            free = np.flatnonzero(held == 0)
            if len(free):
                won = free[self._claim(at[free])]
                self._high[at[won]] = high[won]
                self._low[at[won]] = low[won]
                self._offsets[at[won]] = relative[won]
                self.size += len(won)
                goes_on[won] = False
            # Who has lost a place to another looks at it again: it may be held by its own key now.
            at += held != 0
            at, high, low, relative = at[goes_on], high[goes_on], low[goes_on], relative[goes_on]
            at[at == len(self._high)] = 0
        assert self.size <= self.capacity, (self.size, self.capacity)

    def newest(self, hashes: KeyHashes) -> NDArray[np.int64]:
        """The offset noted last for each key; NOT_THERE where there is none."""
        high, low = hashes
        found = np.full(len(high), NOT_THERE, np.int64)
        at = self._homes(high)
        which = np.arange(len(high))
        while len(at):
            held = self._high.take(at)
            is_same = (held == high) & (self._low.take(at) == low)
            offsets = self._offsets.take(at[is_same]).astype(np.int64)
            found[which[is_same]] = offsets + self._base_offset
            goes_on = (held != 0) & ~is_same
            at, which = at[goes_on] + 1, which[goes_on]
            high, low = high[goes_on], low[goes_on]
            at[at == len(self._high)] = 0
        return found

    def is_new(self, hashes: KeyHashes) -> NDArray[np.bool_]:
        """Which keys are not there and have not come before among these."""
        is_new = self.newest(hashes) == NOT_THERE
        absent = np.flatnonzero(is_new)
        high, low = hashes.of(absent)
        order = np.lexsort((low, high))  # which leaves equal ones in their order
        high, low = high[order], low[order]
        is_again = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
        is_new[absent[order[1:][is_again]]] = False
        return is_new

    def _homes(self, high: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Where looking for a key begins."""
        return ((high >> _HALF) * np.uint64(len(self._high)) >> _HALF).view(np.int64)

    def _claim(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Who has each of the free `places`: the first that wants it."""
        numbers = np.arange(len(places), dtype=self._offsets.dtype)
        self._offsets[places[::-1]] = numbers[::-1]  # the last that is written stays
        return self._offsets.take(places) == numbers
