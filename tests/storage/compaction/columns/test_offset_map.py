"""The map of keys: exact up to its capacity, in the memory that it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.compaction.columns.key_hashes import KeyHashes
from storage.compaction.columns.offset_map import NOT_THERE, OffsetMap
from tests.storage.compaction.hashing import hashes_of

if TYPE_CHECKING:
    from collections.abc import Iterable

ROUNDS = st.lists(st.lists(st.tuples(st.binary(max_size=2), st.integers(0, 5))), max_size=8)


def note(target: OffsetMap, noted: Iterable[tuple[bytes, int]]) -> None:
    pairs = [*noted]
    offsets = np.array([offset for _, offset in pairs], np.int64)
    target.note(hashes_of(key for key, _ in pairs), offsets)


def newest(source: OffsetMap, keys: Iterable[bytes]) -> dict[bytes, int]:
    wanted = [*keys]
    return dict(zip(wanted, source.newest(hashes_of(wanted)).tolist(), strict=True))


@given(rounds=ROUNDS, load_factor=st.sampled_from([0.5, 0.9, 1.0]), first=st.integers(0, 2**40))
def test_of_each_key_the_offset_noted_last_is_found(
    rounds: list[list[tuple[bytes, int]]], load_factor: float, first: int
) -> None:
    keys = {key for one in rounds for key, _ in one}
    end = first + 1000
    found = OffsetMap.within(24 * 1000, load_factor, max(1, len(keys)), (first, end))
    expected: dict[bytes, int] = {}
    for number, one in enumerate(rounds):
        noted = [(key, first + 10 * number + rest) for key, rest in one]
        note(found, noted)
        expected |= dict(noted)

    assert newest(found, keys) == expected
    assert newest(found, [b"of three"]) == {b"of three": NOT_THERE}
    assert found.size == len(expected)


@given(
    noted=st.lists(st.sampled_from([b"a", b"b", b"c"])),
    asked=st.lists(st.sampled_from([b"a", b"b", b"c", b"d", b"e"])),
)
def test_a_key_is_reported_new_once_unless_noted(noted: list[bytes], asked: list[bytes]) -> None:
    found = OffsetMap.within(24 * 100, 0.9, 100, (0, 100))
    note(found, ((key, index) for index, key in enumerate(noted)))

    expected = [key not in noted and key not in asked[:index] for index, key in enumerate(asked)]
    assert found.is_new(hashes_of(asked)).tolist() == expected


def test_a_map_filled_to_the_last_place_still_finds_everything() -> None:
    count = 5000
    full = OffsetMap.within(24 * count, 1.0, count, (0, count))
    assert full.capacity == count
    noted = {b"key-%d" % index: index for index in range(count)}

    note(full, noted.items())

    assert newest(full, noted) == noted
    others = [b"other-%d" % index for index in range(100)]
    assert newest(full, others) == dict.fromkeys(others, NOT_THERE)


def test_keys_are_told_apart_by_all_of_their_hashes() -> None:
    high = np.array([5, 5, 7], np.uint64) << np.uint64(32) | np.uint64(1)
    alike = KeyHashes(high, np.array([1, 2, 1], np.uint32))
    found = OffsetMap.within(24 * 8, 1.0, 8, (0, 100))

    found.note(alike, np.array([10, 20, 30], np.int64))

    assert found.newest(alike).tolist() == [10, 20, 30]
    assert found.size == 3


@pytest.mark.parametrize(
    ("memory_bytes", "load_factor", "records", "capacity"),
    [
        (24_000, 0.9, 10**6, 900),
        (24_000, 0.9, 100, 100),
        (24_000, 1.0, 10**6, 1000),
        (1, 0.9, 10**6, 1),
    ],
)
def test_memory_and_load_factor_say_how_many_keys_fit(
    memory_bytes: int, load_factor: float, records: int, capacity: int
) -> None:
    assert OffsetMap.within(memory_bytes, load_factor, records, (0, 10**6)).capacity == capacity


def test_offsets_far_apart_are_kept_whole() -> None:
    first, last = 5, 5 + (1 << 40)
    wide = OffsetMap.within(24_000, 0.9, 10, (first, last + 1))

    note(wide, {b"a": first, b"b": last}.items())

    assert newest(wide, [b"a", b"b"]) == {b"a": first, b"b": last}
