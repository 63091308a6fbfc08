"""Batches that are small and take long to be looked into: the event loop leaves them to threads."""

from __future__ import annotations

import gzip
from dataclasses import replace

import cramjam
import pytest

from protocol.errors import ApiError
from protocol.records.batch import CODEC_MASK, parse_header, replace_records
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import PIECES_AT_ONCE, Codec, decompress, is_in_many_pieces
from protocol.records.outline import TURN_HEADERS, ManyHeadersError, outline_record
from protocol.records.recompression import recompress
from protocol.records.record import record_bytes
from protocol.records.validation import (
    FIELDS_IN_PASSING,
    TURN_RECORDS,
    LargeContentsError,
    ProduceRules,
    check_produced,
)
from tests.protocol.records.damage import NOW

HURRIED = ProduceRules(is_hurried=True)
COMPACTED = replace(HURRIED, is_compacted=True)
RECENT = replace(HURRIED, timestamp_before_max_ms=1000)
XERIAL = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"


def pieces(codec: Codec, data: bytes, count: int) -> bytes:
    """`data` compressed, after many empty pieces."""
    if codec is Codec.GZIP:
        return gzip.compress(b"") * count + gzip.compress(data)
    if codec is Codec.ZSTD:
        return bytes(cramjam.zstd.compress(b"")) * count + bytes(cramjam.zstd.compress(data))
    block = bytes(cramjam.snappy.compress_raw(data))
    return XERIAL + b"\0\0\0\1\0" * count + len(block).to_bytes(4, "big") + block


def in_pieces(codec: Codec, count: int) -> bytearray:
    batch = build_batch([NewRecord(NOW, b"key", b"value")])
    header = parse_header(batch)
    attributes = header.attributes & ~CODEC_MASK | codec
    whole = pieces(codec, bytes(record_bytes(batch, header)), count)
    return bytearray(replace_records(header._replace(attributes=attributes), whole))


def of_records(count: int, headers: int = 0) -> bytearray:
    record = NewRecord(NOW, b"key", None, (("", None),) * headers)
    return build_batch([record] * count, codec=Codec.ZSTD)


def test_gzip_in_many_members_is_refused_off_the_event_loop() -> None:
    many = in_pieces(Codec.GZIP, 2 * PIECES_AT_ONCE)

    with pytest.raises(LargeContentsError):
        check_produced(many, HURRIED, NOW)
    with pytest.raises(ApiError, match="an empty member comes first"):
        recompress(many, HURRIED, NOW)


@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.ZSTD])
def test_batch_in_many_pieces_is_left_to_others(codec: Codec) -> None:
    check_produced(in_pieces(codec, PIECES_AT_ONCE // 2), HURRIED, NOW)
    many = in_pieces(codec, 2 * PIECES_AT_ONCE)

    with pytest.raises(LargeContentsError):
        check_produced(many, HURRIED, NOW)
    assert recompress(many, HURRIED, NOW) is many


def test_streams_of_snappy_count_as_pieces() -> None:
    streams = memoryview(XERIAL * 2 * PIECES_AT_ONCE)

    assert is_in_many_pieces(Codec.SNAPPY, streams)
    assert decompress(Codec.SNAPPY, streams) == b""
    assert not is_in_many_pieces(Codec.SNAPPY, memoryview(b"raw"))
    assert not is_in_many_pieces(Codec.LZ4, streams)


@pytest.mark.parametrize("rules", [COMPACTED, RECENT])
def test_many_records_that_need_a_look_each_are_left_to_others(rules: ProduceRules) -> None:
    check_produced(of_records(FIELDS_IN_PASSING), rules, NOW)
    many = of_records(FIELDS_IN_PASSING + 1)

    with pytest.raises(LargeContentsError):
        check_produced(many, rules, NOW)
    assert recompress(many, rules, NOW) is many
    check_produced(many, HURRIED, NOW)  # where only the first and the last are looked into


@pytest.mark.parametrize(("count", "headers"), [(1, FIELDS_IN_PASSING), (10, 500)])
def test_many_headers_are_left_to_others(count: int, headers: int) -> None:
    check_produced(of_records(count, headers), COMPACTED, NOW)
    many = of_records(count, headers + 1)

    with pytest.raises(LargeContentsError):
        check_produced(many, COMPACTED, NOW)
    assert recompress(many, COMPACTED, NOW) is many


def test_unhurried_checks_pause_regularly() -> None:
    pauses: list[None] = []
    rules = replace(COMPACTED, pause=lambda: pauses.append(None))
    check_produced(of_records(3 * TURN_RECORDS), rules, NOW)
    assert len(pauses) == 3

    many = of_records(1, 2 * TURN_HEADERS)
    assert recompress(many, rules, NOW) is many
    assert len(pauses) == 3 + 2 * 2  # it is looked at as the first record and as each record


def test_headers_are_not_followed_beyond_the_bound() -> None:
    batch = build_batch([NewRecord(NOW, None, None, (("", None),) * 3)])
    body = record_bytes(batch, parse_header(batch))

    assert outline_record(body, 0) == outline_record(body, 0, 3)
    with pytest.raises(ManyHeadersError):
        outline_record(body, 0, 2)
