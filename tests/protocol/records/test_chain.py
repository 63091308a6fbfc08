"""The chain of record lengths: sound ones give the last record, all others are refused."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protocol.errors import ApiError
from protocol.records.chain import FIRST_WINDOW, SHORT_RUN, last_record
from protocol.records.record import MIN_RECORD_BYTES
from protocol.records.varints import encode_varint

SIZES = st.integers(MIN_RECORD_BYTES, 70) | st.sampled_from([63, 64, 127, 128, 8191, 8192, 20_000])
RUNS = st.lists(
    st.tuples(SIZES, st.sampled_from([1, 2, SHORT_RUN, 40, FIRST_WINDOW, FIRST_WINDOW + 1])),
    min_size=1,
    max_size=6,
)


def body(lengths: list[int], filler: int = 0) -> tuple[bytes, int]:
    """Records of these lengths, filled with one byte; and where the last begins."""
    parts = [encode_varint(length) + bytes([filler]) * length for length in lengths]
    return b"".join(parts), sum(map(len, parts[:-1]))


@given(runs=RUNS, filler=st.integers(0, 255), start=st.sampled_from([0, 1, 40]))
@example(runs=[(8, 4 * FIRST_WINDOW)], filler=16, start=0)
@example(runs=[(64, 4 * FIRST_WINDOW), (63, 1)], filler=0x80, start=0)
def test_chain_of_any_lengths_ends_at_its_last_record(
    runs: list[tuple[int, int]], filler: int, start: int
) -> None:
    lengths = [length for length, count in runs for _ in range(count)]
    data, last = body(lengths, filler)
    assert last_record(b"\xff" * start + data, len(lengths), start) == start + last
    assert last_record(bytearray(data), len(lengths)) == last


@given(runs=RUNS, filler=st.integers(0, 255), change=st.sampled_from([-1, 1]))
def test_chain_of_another_count_is_refused(
    runs: list[tuple[int, int]], filler: int, change: int
) -> None:
    lengths = [length for length, count in runs for _ in range(count)]
    data, _ = body(lengths, filler)
    count = len(lengths) + change
    if count > 0:
        with pytest.raises(ApiError, match=f"counts? {count} records"):
            last_record(data, count)


@given(runs=RUNS, cut=st.integers(1, 200), extra=st.binary(min_size=1, max_size=20))
def test_chain_that_is_too_short_or_too_long_is_refused(
    runs: list[tuple[int, int]], cut: int, extra: bytes
) -> None:
    lengths = [length for length, count in runs for _ in range(count)]
    data, _ = body(lengths)
    for wrong in (data[:-cut], data + extra):
        with pytest.raises(ApiError):
            last_record(wrong, len(lengths))


@given(data=st.binary(max_size=2000), count=st.integers(1, 400))
def test_chain_agrees_with_a_walk_one_by_one(data: bytes, count: int) -> None:
    try:
        found: int | None = last_record(data, count)
    except ApiError:
        found = None
    assert found == slow_last_record(data, count)


def slow_last_record(data: bytes, count: int) -> int | None:
    """Return the result of `last_record`, computed as the layout says."""
    position = last = 0
    for _ in range(count):
        last = position
        value = shift = 0
        while True:
            if position >= len(data) or shift > 28:
                return None
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        value &= 2**32 - 1
        length = (value >> 1) ^ -(value & 1)
        if length < MIN_RECORD_BYTES:
            return None
        position += length
    return last if position == len(data) else None


@pytest.mark.parametrize("length", [-1, 0, MIN_RECORD_BYTES - 1, -70, -9000])
def test_length_that_no_record_can_have_is_refused(length: int) -> None:
    data = encode_varint(length) + bytes(200)
    with pytest.raises(ApiError):
        last_record(data, 2)
    with pytest.raises(ApiError):
        last_record(data, 1)
