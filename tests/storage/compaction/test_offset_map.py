"""The map of keys: exact up to its capacity, in the memory that it is given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.compaction.offset_map import NOT_THERE, OffsetMap

ROUNDS = st.lists(st.dictionaries(st.binary(max_size=2), st.integers(0, 5)), max_size=8)


@given(rounds=ROUNDS, load_factor=st.sampled_from([0.5, 0.9, 1.0]), first=st.integers(0, 2**40))
def test_of_each_key_the_offset_noted_last_is_found(
    rounds: list[dict[bytes, int]], load_factor: float, first: int
) -> None:
    keys = {key for one in rounds for key in one}
    end = first + 1000
    found = OffsetMap.within(24 * 1000, load_factor, max(1, len(keys)), (first, end))
    expected: dict[bytes, int] = {}
    for number, one in enumerate(rounds):
        noted = {key: first + 10 * number + rest for key, rest in one.items()}
        found.note(noted)
        expected |= noted

    assert found.newest(keys) == expected
    assert found.newest([b"of three"]) == {b"of three": NOT_THERE}
    assert found.size == len(expected)


def test_a_map_filled_to_the_last_place_still_finds_everything() -> None:
    count = 5000
    full = OffsetMap.within(24 * count, 1.0, count, (0, count))
    assert full.capacity == count
    noted = {b"key-%d" % index: index for index in range(count)}

    full.note(noted)

    assert full.newest(noted) == noted
    others = [b"other-%d" % index for index in range(100)]
    assert full.newest(others) == dict.fromkeys(others, NOT_THERE)


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

    wide.note({b"a": first, b"b": last})

    assert wide.newest([b"a", b"b"]) == {b"a": first, b"b": last}
