"""Records of a batch: round trips, and every way in which one can be damaged."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import HEADER_BYTES, parse_header
from protocol.records.builder import NewRecord, build_batch, encode_record
from protocol.records.compression import Codec
from protocol.records.control import ControlType, EndTransactionMarker, build_marker, parse_marker
from protocol.records.outline import has_key, outline_record
from protocol.records.record import Record, iterate_records, parse_headers, parse_record
from protocol.records.varints import encode_varint, read_varint, read_varlong
from tests.protocol.records.rewritten import rewritten

TIMESTAMPS = st.integers(-1, 2**62)
NEW_RECORDS = st.builds(
    NewRecord,
    TIMESTAMPS,
    st.none() | st.binary(max_size=200),
    st.none() | st.binary(max_size=200),
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(
        tuple
    ),
)


@given(records=st.lists(NEW_RECORDS, min_size=1, max_size=8), codec=st.sampled_from(Codec))
def test_built_records_are_read_back(records: list[NewRecord], codec: Codec) -> None:
    batch = build_batch(records, base_offset=1000, codec=codec)
    expected = [Record(1000 + i, *record) for i, record in enumerate(records)]
    assert list(iterate_records(memoryview(batch))) == expected
    header = parse_header(batch)
    assert header.size_in_bytes == len(batch)
    assert (header.base_offset, header.last_offset) == (1000, 999 + len(records))
    assert header.max_timestamp == max(record.timestamp for record in records)


@given(records=st.lists(NEW_RECORDS, min_size=1, max_size=8), data=st.data())
def test_compaction_keeps_offsets_and_drops_records(
    records: list[NewRecord], data: st.DataObject
) -> None:
    batch = build_batch(records, base_offset=7, codec=Codec.LZ4, producer_id=4, base_sequence=3)
    old = parse_header(batch)
    kept = [index for index in range(len(records)) if data.draw(st.booleans())]
    left = rewritten(batch, kept)
    before = list(iterate_records(batch))
    assert list(iterate_records(left)) == [before[index] for index in kept]
    new = parse_header(left)
    assert (new.base_offset, new.last_offset) == (old.base_offset, old.last_offset)
    assert (new.producer_id, new.base_sequence) == (4, 3)
    assert new.last_sequence == old.last_sequence


def test_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    batch = build_batch([NewRecord(1000, b"a", None), NewRecord(1001, b"b", None)])
    kept = list(iterate_records(batch))
    marked = rewritten(batch, [0, 1], delete_horizon_ms=9_000)
    header = parse_header(marked)
    assert header.has_delete_horizon
    assert (header.base_timestamp, header.max_timestamp) == (9_000, 1001)
    assert list(iterate_records(marked)) == kept


def test_offsets_that_compaction_left_are_those_of_the_records() -> None:
    batch = build_batch([NewRecord(0, b"%d" % i, b"") for i in range(10)], base_offset=50)
    offsets = [r.offset for r in iterate_records(rewritten(batch, [3, 8]))]
    assert offsets == [53, 58]


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (64, "8001"), (-64, "7f"), (-65, "8101")],
)
def test_varints_are_zig_zag(value: int, encoded: str) -> None:
    assert encode_varint(value).hex() == encoded
    assert read_varint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@given(st.integers(-(2**63), 2**63 - 1))
def test_int64_varints_come_back(value: int) -> None:
    encoded = encode_varint(value)
    assert read_varlong(b"x" + encoded + b"x", 1) == (value, 1 + len(encoded))
    if -(2**31) <= value < 2**31:
        assert read_varint(encoded, 0) == (value, len(encoded))


@given(st.integers(-(2**31), 2**31 - 1))
def test_int32_varints_come_back(value: int) -> None:
    encoded = encode_varint(value)
    assert len(encoded) <= 5
    assert read_varint(encoded, 0) == (value, len(encoded))


def test_varint_that_does_not_end_is_refused() -> None:
    with pytest.raises(ApiError, match="does not end"):
        read_varint(b"\xff" * 5 + b"\0", 0)
    with pytest.raises(ApiError, match="does not end"):
        read_varlong(b"\xff" * 10 + b"\0", 0)


RECORD = NewRecord(5, b"key", b"value", (("name", b"x"),))


@given(record=NEW_RECORDS)
def test_outline_agrees_with_the_record(record: NewRecord) -> None:
    encoded = encode_record(record, 3, 0)
    (timestamp_delta, offset_delta, key, _, headers), end = parse_record(encoded, 0)
    *outline, key_at, headers_at = outline_record(encoded, 0)
    assert outline == [end, timestamp_delta, offset_delta]
    assert has_key(encoded, key_at) == (key is not None)
    count, begin = read_varint(encoded, headers_at)
    assert parse_headers(encoded[begin:end], count) == headers


@given(data=st.binary(max_size=40), count=st.integers(-1, 5))
def test_bytes_that_are_no_headers_are_refused(data: bytes, count: int) -> None:
    with suppress(ApiError):
        assert len(parse_headers(data, count)) == max(count, 0)


@given(
    record=NEW_RECORDS, position=st.integers(0, 1000), byte=st.integers(0, 255), next_=st.binary()
)
def test_outline_accepts_exactly_the_records_that_can_be_read(
    record: NewRecord, position: int, byte: int, next_: bytes
) -> None:
    damaged = bytearray(encode_record(record, 3, 0))
    damaged[position % len(damaged)] = byte
    damaged += next_
    assert _accepts(parse_record, damaged) == _accepts(outline_record, damaged)


def _accepts(reader: object, data: bytearray) -> bool:
    assert callable(reader)
    try:
        reader(data, 0)
    except ApiError as error:
        if error.code is not ErrorCode.INVALID_RECORD:
            raise
        return False
    return True


@pytest.mark.parametrize(
    ("hex_", "why"),
    [
        ("0c 00 00 00 01 01", "cut off|claims"),
        ("0a 00 00 00 01 01", "claims 5"),
        ("01 00 00 00 01 01 00", "claims -1"),
        ("0c 00 00 00 7e 01 00", "cut off|passes|claims"),
        ("0e 00 00 00 01 01 00 00", "fields take 6"),
        ("0c 00 00 00 01 01 02", "1 headers cannot"),
        ("10 00 00 00 01 01 01 00 00", "-1 headers cannot"),
        ("10 00 00 00 01 01 02 01 01", "no name"),
        ("10 00 00 00 01 01 02 7e 01", "cut off|passes"),
        ("", "cut off"),
    ],
)
def test_damaged_record_is_refused_with_its_reason(hex_: str, why: str) -> None:
    data = bytes.fromhex(hex_)
    for reader in (parse_record, outline_record):
        with pytest.raises(ApiError, match=why) as caught:
            reader(data, 0)
        assert caught.value.code is ErrorCode.INVALID_RECORD


def test_bytes_after_the_last_record_are_refused() -> None:
    batch = build_batch([RECORD]) + b"x"
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    with pytest.raises(ApiError, match="1 bytes follow the 1 records"):
        list(iterate_records(batch))


def test_timestamp_past_64_bits_is_refused() -> None:
    batch = build_batch([NewRecord(2**63 - 1, None, None)])
    batch[HEADER_BYTES + 2] = 2  # the timestamp delta of the first record becomes 1
    with pytest.raises(ApiError, match="64 bits"):
        list(iterate_records(batch))


@pytest.mark.parametrize("type_", ControlType)
def test_marker_comes_back(type_: ControlType) -> None:
    marker = EndTransactionMarker(type_, coordinator_epoch=12)
    batch = build_marker(marker, producer_id=5, producer_epoch=2, now_ms=77)
    header = parse_header(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 2, -1)
    assert (header.max_timestamp, header.record_count) == (77, 1)
    assert parse_marker(batch) == marker


def test_control_record_of_another_kind_is_no_marker() -> None:
    batch = build_batch([NewRecord(0, b"\0\0\0\x02", b"")], is_control=True)
    assert parse_marker(batch) is None
    assert parse_marker(rewritten(batch, [])) is None


@pytest.mark.parametrize(
    ("key", "value"), [(None, b""), (b"\0\0", b""), (b"\0\0\0\1", None), (b"\0\0\0\1", b"\0\0\0")]
)
def test_unreadable_marker_is_refused(key: bytes | None, value: bytes | None) -> None:
    batch = build_batch([NewRecord(0, key, value)], is_control=True)
    with pytest.raises(ApiError, match=r"control|marker"):
        parse_marker(batch)
