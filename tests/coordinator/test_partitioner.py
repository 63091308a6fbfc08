"""Group ids go to the partitions that Apache would choose (PR-19)."""

from __future__ import annotations

import pytest

from coordinator.partitioner import (
    LONGEST_CACHED,
    cached_hash,
    java_string_hash,
    partition_for,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello world", 1794106052),
        ("polygenelubricants", -(2**31)),
        ("Größe", 69209585),
        ("𝄞", 1772394),
    ],
)
def test_hash_is_that_of_java_strings(text: str, expected: int) -> None:
    assert java_string_hash(text) == expected


def test_least_integer_counts_as_zero() -> None:
    assert partition_for("polygenelubricants", 50) == 0


def test_partition_is_never_negative() -> None:
    assert {partition_for(f"group-{index}", 50) for index in range(2_000)} == set(range(50))


def test_long_ids_are_not_cached() -> None:
    before = cached_hash.cache_info().currsize
    for number in range(100):
        java_string_hash(f"{number:0{LONGEST_CACHED + 1}}")
    assert cached_hash.cache_info().currsize == before
