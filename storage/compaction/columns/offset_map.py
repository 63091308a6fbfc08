"""The greatest offset of each key, in memory of a fixed size.

Keys are not kept, only 95 bits of hash of each (`key_hashes`): a million keys of any length take 21
MB, where a dictionary would take 150 and more. As in Apache Kafka, the memory configured divided by
24 gives the capacity in keys; the allocation exceeds neither that nor the need of the keys
expected.

The table is open addressing with linear probing. Keys are noted and looked up some thousands at
once, in rounds: in each, every key looks at one place, and those that have not found theirs go on
to the next place in the next round. The first round does nearly all. A place takes 16 of its 24
bytes, as a rule, so there can be more places than the capacity, and fewer rounds. All of a place is
in one line of the processor's cache, since getting it from memory is what takes the time:

    |high low offset|               |high low offset|high low offset|      offset: from the first on
                     high 0: free place
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.compaction.columns.key_hashes import KeyHashes

BYTES_PER_KEY: Final = 24
"""Bytes that Apache's map needs for one key: 16 bytes of MD5 and the offset."""
MOST_LOAD: Final = 0.75
"""Largest load factor; above it, keys would have to probe many slots."""
SMALL_SPAN: Final = 1 << 32
NOT_THERE: Final = -1

_HALF: Final = np.uint64(32)


class OffsetMap:
    """Filled with `note`, then asked with `newest`."""

    __slots__ = ("_base_offset", "_high", "_low", "_offsets", "_table", "capacity", "size")

    def __init__(self, capacity: int, room: int, offsets: tuple[int, int]) -> None:
        """Make a map for up to `capacity` keys in a table that has `room` for that many and more.

        `offsets` are the first that may be noted and the one after the last.
        """
        assert 0 < capacity <= room
        first, end = offsets
        self.capacity = capacity
        self.size = 0
        self._base_offset = first
        kind = "<u4" if end - first < SMALL_SPAN else "<u8"
        place = np.dtype([("high", "<u8"), ("low", "<u4"), ("offset", kind)], align=True)
        places = min(room * BYTES_PER_KEY // place.itemsize, int(capacity / MOST_LOAD))
        # At least one is free, so that a look-up of a missing key ends.
        self._table = np.zeros(places + 1, place)
        self._high = self._table["high"]
        self._low = self._table["low"]
        self._offsets = self._table["offset"]

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
            held = self._table.take(at)
            is_same = (held["high"] == high) & (held["low"] == low)
            is_held = held["high"] != 0
            same = np.flatnonzero(is_same)
            self._offsets[at.take(same)] = relative.take(same)  # of one that comes again, the last
            free = np.flatnonzero(~is_held)
            if len(free):
                won = free[self._claim(at.take(free))]
                places = at.take(won)
                self._high[places] = high.take(won)
                self._low[places] = low.take(won)
                self._offsets[places] = relative.take(won)
                self.size += len(won)
                is_same[won] = True
            # A key that lost a place looks at it again: an equal key may hold it by now.
            at += is_held
            rest = np.flatnonzero(~is_same)
            at, relative = at.take(rest), relative.take(rest)
            high, low = high.take(rest), low.take(rest)
            at[at == len(self._high)] = 0
        assert self.size <= self.capacity, (self.size, self.capacity)

    def newest(self, hashes: KeyHashes) -> NDArray[np.int64]:
        """The offset noted last for each key; NOT_THERE where there is none."""
        at = self._homes(hashes.high)
        found, goes_on = self._look(at, hashes)
        rest = np.flatnonzero(goes_on)
        while len(rest):
            at = at.take(np.flatnonzero(goes_on)) + 1
            at[at == len(self._high)] = 0
            found[rest], goes_on = self._look(at, hashes.of(rest))
            rest = rest[goes_on]
        return found

    def is_new(self, hashes: KeyHashes) -> NDArray[np.bool_]:
        """Mask of the keys that are neither in the map nor earlier among these."""
        is_new: NDArray[np.bool_] = self.newest(hashes) == NOT_THERE
        absent = np.flatnonzero(is_new)
        high, low = hashes.of(absent)
        order = np.lexsort((low, high))  # which leaves equal ones in their order
        high, low = high[order], low[order]
        is_again = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
        is_new[absent[order[1:][is_again]]] = False
        return is_new

    def _look(
        self, at: NDArray[np.int64], hashes: KeyHashes
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The offsets of keys at one place each, and which are to be looked for elsewhere."""
        held = self._table.take(at)
        is_same = (held["high"] == hashes.high) & (held["low"] == hashes.low)
        offsets = held["offset"].astype(np.int64) + self._base_offset
        return np.where(is_same, offsets, NOT_THERE), (held["high"] != 0) & ~is_same

    def _homes(self, high: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Slot at which probing for each key begins."""
        return ((high >> _HALF) * np.uint64(len(self._high)) >> _HALF).view(np.int64)

    def _claim(self, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Mask of the keys that win a free slot: for each slot, the first key that probes it."""
        numbers = np.arange(len(places), dtype=self._offsets.dtype)
        self._offsets[places[::-1]] = numbers[::-1]  # the last that is written stays
        has_won: NDArray[np.bool_] = self._offsets[places] == numbers
        return has_won
