"""Partition of an internal topic to which a group id or transactional id belongs.

Java's `String.hashCode`, made positive as Kafka does, modulo the number of partitions. Data
directories and tools depend on it, so Python's own `hash` cannot stand in.
"""

from __future__ import annotations

import functools

MINIMUM_INT32 = -(2**31)
CACHED_HASHES = 16_384
"""Size of the cache of hashes; an entry takes about 200 bytes, and at most half a kilobyte."""
LONGEST_CACHED = 100
"""Characters; longer ids are hashed each time, lest strangers have megabytes of them kept."""


def java_string_hash(text: str) -> int:
    """Java's `String.hashCode`: 31-polynomial over UTF-16 units, in wrapping int32."""
    return cached_hash(text) if len(text) <= LONGEST_CACHED else _hash(text)


def _hash(text: str) -> int:
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


cached_hash = functools.lru_cache(maxsize=CACHED_HASHES)(_hash)


def partition_for(coordinator_key: str, partition_count: int) -> int:
    """The partition that coordinates `coordinator_key`; the least int32 counts as zero."""
    value = java_string_hash(coordinator_key)
    return (0 if value == MINIMUM_INT32 else abs(value)) % partition_count
