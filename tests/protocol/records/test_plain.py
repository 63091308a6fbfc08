"""Plain records are recognised, and nothing is taken for one that reading it would not bear out."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from protocol.errors import ApiError
from protocol.records.builder import NewRecord, encode_record
from protocol.records.chain import last_record
from protocol.records.outline import has_key, outline_record
from protocol.records.plain import MAX_ROOM, NOT_PLAIN, is_plain_first, plain_last_timestamp

SIZES = st.integers(0, 200) | st.sampled_from([58, 59, 8183, 8184, 8190, 8192])
LONGEST_VALUE = MAX_ROOM - 2 - 2 - 5
"""With its own length, two deltas of one byte and so on, in a record of 8191 bytes."""
DELTAS = st.sampled_from([0, 1, 63, 64, 8191])
POSITIONS = st.integers(0, 20)


def plain(size: int, timestamp_delta: int = 0, offset_delta: int = 0) -> bytes:
    return bytes(encode_record(NewRecord(timestamp_delta, None, b"v" * size), offset_delta, 0))


@given(size=SIZES)
def test_first_record_without_key_and_headers_is_plain(size: int) -> None:
    is_short = size <= LONGEST_VALUE
    assert is_plain_first(b"__" + plain(size), 2) == is_short
    assert is_plain_first(bytearray(plain(size)), 0) == is_short


@given(size=SIZES, timestamp_delta=DELTAS, offset_delta=DELTAS)
def test_last_record_tells_its_timestamp(
    size: int, timestamp_delta: int, offset_delta: int
) -> None:
    body = plain(100) + plain(size, timestamp_delta, offset_delta)
    found = plain_last_timestamp(body, len(plain(100)), offset_delta)
    assert found in {timestamp_delta, NOT_PLAIN}
    assert size > LONGEST_VALUE - 4 or found == timestamp_delta
    assert plain_last_timestamp(body, len(plain(100)), offset_delta + 1) == NOT_PLAIN


@given(size=st.integers(0, 80), position=POSITIONS, byte=st.integers(0, 255), rest=st.binary())
@example(size=70, position=0, byte=0x80, rest=b"")
def test_damaged_first_record_is_plain_only_if_reading_it_agrees(
    size: int, position: int, byte: int, rest: bytes
) -> None:
    damaged = bytearray(plain(size))
    damaged[position % len(damaged)] = byte
    body = bytes(damaged + rest)
    try:
        last_record(body[: outline_record(body, 0)[0]], 1)
    except ApiError:
        return
    if is_plain_first(body, 0):
        _, *deltas, key_at, _ = outline_record(body, 0)
        assert (deltas, has_key(body, key_at)) == ([0, 0], False)


@given(
    size=st.integers(0, 80),
    timestamp_delta=DELTAS,
    offset_delta=DELTAS,
    position=POSITIONS,
    byte=st.integers(0, 255),
)
def test_damaged_last_record_is_plain_only_if_reading_it_agrees(
    size: int, timestamp_delta: int, offset_delta: int, position: int, byte: int
) -> None:
    damaged = bytearray(plain(size, timestamp_delta, offset_delta))
    damaged[position % len(damaged)] = byte
    try:
        last_record(damaged, 1)
    except ApiError:
        return
    found = plain_last_timestamp(damaged, 0, offset_delta)
    if found != NOT_PLAIN:
        end, *deltas, key_at, _ = outline_record(damaged, 0)
        assert (end, deltas) == (len(damaged), [found, offset_delta])
        assert not has_key(damaged, key_at)
