"""The greatest offset of each key, in memory of a fixed size.

Keys are not kept, only 96 bits of a cryptographic hash of each: a million keys of any length take
20 MB, where a dictionary would take 150 and more. That two of five million keys share a hash has a
chance of one in 10^15. As in Apache Kafka, the memory configured divided by 24 says how many keys
there is room for; what is allocated is less, and no more than the keys expected need.

The table is open addressing in buckets: a key belongs into the bucket that Python's own hash of it
says, or, when that one is full, into the next that is not. A bucket is 16 hashes in a row, so that
one call of `find` looks through it in C, whatever is in it:

    hashes   |h h h h . . .|h h h h h h h|h . . . . . .|     12 bytes each
    offsets  |o o o o . . .|o o o o o o o|o . . . . . .|     relative to the first
    counts   |4            |7 (full)     |1            |     how many a bucket holds

Records come in batches and keys often come again soon, so a dictionary of some thousand keys
before the table takes most of the calls (`note` and `newest` are given one).
"""

from __future__ import annotations

from array import array
from hashlib import blake2s
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

BYTES_PER_KEY: Final = 24
"""What Apache's map needs for one key: 16 bytes of MD5 and the offset."""
HASH_BYTES: Final = 12
BUCKET_KEYS: Final = 16
BUCKET_BYTES: Final = BUCKET_KEYS * HASH_BYTES
SMALL_SPAN: Final = 1 << 32
NOT_THERE: Final = -1


class OffsetMap:
    """Filled once with `note`, then asked with `newest`."""

    __slots__ = ("_base_offset", "_counts", "_hashes", "_offsets", "capacity", "size")

    def __init__(self, capacity: int, room: int, offsets: tuple[int, int]) -> None:
        """Make a map for up to `capacity` keys in a table that has `room` for that many and more.

        `offsets` are the first that may be noted and the one after the last.
        """
        assert 0 < capacity <= room
        buckets = room // BUCKET_KEYS + 1  # so that looking for what is not there ends
        first, end = offsets
        self.capacity = capacity
        self.size = 0
        self._base_offset = first
        self._counts = bytearray(buckets)
        self._hashes = bytearray(buckets * BUCKET_BYTES)
        self._offsets = array("I" if end - first < SMALL_SPAN else "Q", [0]) * (
            buckets * BUCKET_KEYS
        )

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

    def note(self, offsets: Mapping[bytes, int]) -> None:
        """Keep the offsets by key; later ones replace earlier ones, so they must not be smaller.

        The caller sees to it that `size` never passes `capacity`.
        """
        # The search stands here and in `newest`: shared, each key would cost a tenth more.
        hashes, places, counts = self._hashes, self._offsets, self._counts
        find, buckets, base = hashes.find, len(counts), self._base_offset
        added = 0
        for key, offset in offsets.items():
            bucket = hash(key) % buckets
            digest = blake2s(key, digest_size=HASH_BYTES).digest()
            while True:
                start = bucket * BUCKET_BYTES
                count = counts[bucket]
                at = find(digest, start, start + count * HASH_BYTES)
                if at >= 0 and at % HASH_BYTES == 0:  # and not across two hashes, by chance
                    break
                if count < BUCKET_KEYS:
                    at = start + count * HASH_BYTES
                    hashes[at : at + HASH_BYTES] = digest
                    counts[bucket] = count + 1
                    added += 1
                    break
                bucket = (bucket + 1) % buckets
            places[at // HASH_BYTES] = offset - base
        self.size += added
        assert self.size <= self.capacity, (self.size, self.capacity)

    def newest(self, keys: Iterable[bytes]) -> dict[bytes, int]:
        """The offset noted last for each key; NOT_THERE where there is none."""
        places, counts, find = self._offsets, self._counts, self._hashes.find
        buckets, base = len(counts), self._base_offset
        found = {}
        for key in keys:
            bucket = hash(key) % buckets
            digest = blake2s(key, digest_size=HASH_BYTES).digest()
            while True:
                start = bucket * BUCKET_BYTES
                count = counts[bucket]
                at = find(digest, start, start + count * HASH_BYTES)
                if at >= 0 and at % HASH_BYTES == 0:
                    found[key] = places[at // HASH_BYTES] + base
                    break
                if count < BUCKET_KEYS:
                    found[key] = NOT_THERE
                    break
                bucket = (bucket + 1) % buckets
        return found
