"""Hashes of keys: of the key alone, of one function for each seed, and of no two keys the same."""

from __future__ import annotations

from hashlib import shake_256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.compaction.columns.key_hashes import MOST_WORDS, WORD_BYTES, KeyHashes
from tests.storage.compaction.compacting import SEED
from tests.storage.compaction.hashing import hashes_of

LONGEST = MOST_WORDS * WORD_BYTES
KEYS = st.lists(
    st.binary(max_size=9) | st.binary(min_size=LONGEST - 2, max_size=LONGEST + 2), max_size=30
)


def pairs(hashes: KeyHashes) -> list[tuple[int, int]]:
    return list(zip(hashes.high.tolist(), hashes.low.tolist(), strict=True))


@given(keys=KEYS)
def test_a_keys_hash_does_not_depend_on_its_neighbours(
    keys: list[bytes],
) -> None:
    together = pairs(hashes_of(keys))

    assert together == [pairs(hashes_of([key]))[0] for key in keys]
    assert len(set(together)) == len(set(keys))


@given(key=st.binary(max_size=20))
def test_a_hash_is_the_documented_sum(key: bytes) -> None:
    count = 3 * (2 + MOST_WORDS)
    drawn = shake_256(SEED).digest(8 * count)
    factors = [int.from_bytes(drawn[at : at + 8], "little") for at in range(0, 8 * count, 8)]
    padded = key + bytes(-len(key) % WORD_BYTES)
    words = [
        int.from_bytes(padded[at : at + WORD_BYTES], "little")
        for at in range(0, len(padded), WORD_BYTES)
    ]
    parts = []
    for number in range(3):
        terms = zip(factors[number::3], [1, len(key), *words], strict=False)
        total = sum(factor * value for factor, value in terms)
        parts.append(total % 2**64 >> 32)

    assert pairs(hashes_of([key])) == [(parts[0] << 32 | parts[1] | 1, parts[2])]


@pytest.mark.parametrize("key", [b"", b"k", b"key", bytes(LONGEST), bytes(LONGEST + 1)])
def test_another_seed_makes_another_hash_of_each_key(key: bytes) -> None:
    one, other = hashes_of([key]), hashes_of([key], bytes(32))

    assert one.low != other.low
    assert one.high >> np.uint64(32) != other.high >> np.uint64(32)


def test_zeros_at_the_end_of_a_key_belong_to_it() -> None:
    keys = [b"k" + bytes(count) for count in range(LONGEST + 20)]

    assert len(set(pairs(hashes_of(keys)))) == len(keys)
