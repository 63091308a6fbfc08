"""The header of a batch: what it says, and what may be patched in it."""

from __future__ import annotations

import struct

import google_crc32c
import pytest

from protocol.errors import ApiError, ErrorCode
from protocol.records import batch as batches
from protocol.records.batch import (
    BatchHeader,
    assign_base_offset,
    assign_log_append_time,
    assign_max_timestamp,
    compute_crc,
    iterate_headers,
    parse_header,
    runs_of_batches,
)
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from protocol.records.record import iterate_records

HEADER = BatchHeader(100, 49, 3, 2, 0, 0, 4, 1000, 2000, 7, 1, 10, 5)


def one_batch(count: int = 3) -> bytearray:
    return build_batch([NewRecord(1000 + i, None, b"v%d" % i) for i in range(count)])


def test_the_c_implementation_of_the_checksum_is_in_use() -> None:
    assert google_crc32c.implementation == "c"
    assert google_crc32c.value(b"123456789") == 0xE3069283


def test_header_fields_are_read_in_the_order_of_the_layout() -> None:
    assert struct.calcsize(">qiibIhiqqqhii") == batches.HEADER_BYTES
    packed = struct.pack(">qiibIhiqqqhii", *HEADER)
    assert parse_header(b"xx" + packed, 2) == HEADER


def test_offsets_and_size_follow_from_the_header() -> None:
    assert (HEADER.last_offset, HEADER.next_offset, HEADER.size_in_bytes) == (104, 105, 61)


def test_sequence_after_the_largest_is_zero() -> None:
    assert HEADER.last_sequence == 14
    assert HEADER._replace(base_sequence=2**31 - 5).last_sequence == 2**31 - 1
    assert HEADER._replace(base_sequence=2**31 - 4).last_sequence == 0
    assert HEADER._replace(base_sequence=-1).last_sequence == -1


def test_attribute_bits_are_facts() -> None:
    facts = ("is_log_append_time", "is_transactional", "is_control", "has_delete_horizon")
    for bit, fact in zip((8, 16, 32, 64), facts, strict=True):
        header = HEADER._replace(attributes=bit)
        assert [getattr(header, name) for name in facts] == [name == fact for name in facts]
    assert HEADER.has_producer_id
    assert not HEADER._replace(producer_id=-1).has_producer_id


@pytest.mark.parametrize("codec", Codec)
def test_codec_is_in_the_low_bits(codec: Codec) -> None:
    assert HEADER._replace(attributes=0xF8 | codec).codec is codec


@pytest.mark.parametrize("number", [5, 6, 7])
def test_unknown_codec_is_refused(number: int) -> None:
    with pytest.raises(ApiError, match=f"compression type {number}") as caught:
        HEADER._replace(attributes=number).codec  # noqa: B018 - reading it is what fails
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_whole_batches_are_walked_and_a_cut_off_one_ends_the_walk() -> None:
    first, second = one_batch(1), one_batch(2)
    data = first + second
    whole = [(0, parse_header(first)), (len(first), parse_header(second))]
    assert list(iterate_headers(data)) == whole
    for missing in (1, 20, len(second) - 1):
        assert list(iterate_headers(memoryview(data)[:-missing])) == whole[:1]
    assert list(iterate_headers(b"")) == []


@pytest.mark.parametrize(("position", "patch"), [(8, b"\0\0\0\x30"), (8, b"\xff" * 4), (16, b"\1")])
def test_a_walk_over_malformed_bytes_is_refused(position: int, patch: bytes) -> None:
    first, second = one_batch(), one_batch()
    second[position : position + len(patch)] = patch
    walk = iterate_headers(first + second)
    assert next(walk)[0] == 0
    with pytest.raises(ApiError, match=f"byte {len(first)}") as caught:
        next(walk)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_base_offset_and_leader_epoch_are_outside_the_checksum() -> None:
    data = b"before" + one_batch()
    buffer = bytearray(data)
    assign_base_offset(memoryview(buffer), 6, 2**40, 17)
    header = parse_header(buffer, 6)
    assert (header.base_offset, header.partition_leader_epoch) == (2**40, 17)
    assert header.crc == compute_crc(buffer, 6, header.size_in_bytes)
    assert buffer[22:] == data[22:]


def test_log_append_time_is_the_time_of_every_record() -> None:
    buffer = bytearray(b"before") + one_batch()
    assign_log_append_time(memoryview(buffer), 6, 555_555)
    header = parse_header(buffer, 6)
    assert header.is_log_append_time
    assert header.crc == compute_crc(buffer, 6, header.size_in_bytes)
    assert {record.timestamp for record in iterate_records(buffer[6:])} == {555_555}


def test_max_timestamp_is_corrected_with_the_checksum() -> None:
    buffer = one_batch()
    assign_max_timestamp(buffer, 0, 12)
    header = parse_header(buffer)
    assert header.max_timestamp == 12
    assert header.crc == compute_crc(buffer, 0, len(buffer))


@pytest.mark.parametrize("size", [61, 1000, 1 << 18, (1 << 18) + 1, 700_000])
def test_checksum_is_that_of_the_bytes_after_it(size: int) -> None:
    data = bytes(range(251)) * (size // 251 + 2)
    expected = google_crc32c.value(data[3 + 21 : 3 + size])
    for buffer in (data, bytearray(data), memoryview(data), memoryview(bytearray(data))):
        assert compute_crc(buffer, 3, size) == expected


def test_a_buffer_is_cut_into_runs_of_whole_batches() -> None:
    parts = [bytes(one_batch(count)) for count in (1, 1, 50, 1, 1, 1)]
    small, large = len(parts[0]), len(parts[2])
    data = b"".join(parts)

    def runs(buffer: bytes, most: int) -> list[int]:
        found = list(runs_of_batches(buffer, most))
        assert b"".join(found) == buffer
        return [len(run) for run in found]

    assert runs(data, 2 * small) == [2 * small, large, 2 * small, small]
    assert runs(data, 1) == [len(one) for one in parts]
    assert runs(data, len(data)) == [len(data)]
    assert runs(data[:-1], 1)[-1] == 2 * small - 1, "what is cut off stays with the one before"
    damaged = data[: 2 * small + 8] + b"\x00\x00\x00\x01" + data[2 * small + 12 :]
    assert runs(damaged, 1) == [small, len(data) - small]
    assert runs(b"", 1) == []
