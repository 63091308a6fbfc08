"""Batches that Kafka's own classes wrote are read; batches that we write are read by them."""

from __future__ import annotations

from operator import attrgetter

import pytest

from protocol.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    compute_crc,
    parse_header,
)
from protocol.records.builder import NewRecord, TimestampType, build_batch
from protocol.records.compression import Codec
from protocol.records.control import (
    ControlType,
    EndTransactionMarker,
    build_marker,
    parse_marker,
)
from protocol.records.record import iterate_records
from protocol.records.validation import check_produced
from tests.golden import java_batches
from tests.golden.java_batches import GoldenBatch, describe
from tests.protocol.records.rewritten import rewritten

NOW = 1_700_000_000_000
KEPT = java_batches.kept()
UNCOMPRESSED = [
    golden
    for golden in KEPT
    if not parse_header(golden.data).attributes & (CODEC_MASK | LOG_APPEND_TIME_BIT)
]
"""Compressors differ, and the time of an append is not one of its records'."""
SENDABLE = [
    golden
    for golden in KEPT
    if not parse_header(golden.data).attributes & (CONTROL_BIT | LOG_APPEND_TIME_BIT)
]
RECORDS = [
    NewRecord(NOW, b"key", b"value", (("name", b"1"), ("name", None), ("", b""), ("é", b"x" * 80))),
    NewRecord(NOW - 10**11, None, None),
    NewRecord(0, b"", b""),
    NewRecord(253_402_300_799_999, None, b"v" * 9_000),
    *[NewRecord(NOW + i, b"k%d" % i, b"v" * (i % 90)) for i in range(200)],
]


@pytest.mark.parametrize("golden", KEPT, ids=attrgetter("name"))
def test_kafkas_batches_are_read(golden: GoldenBatch) -> None:
    assert describe(golden.data) == golden.description


@pytest.mark.parametrize("golden", KEPT, ids=attrgetter("name"))
def test_kafkas_checksums_are_right(golden: GoldenBatch) -> None:
    assert parse_header(golden.data).crc == compute_crc(golden.data, 0, len(golden.data))


@pytest.mark.parametrize("golden", UNCOMPRESSED, ids=attrgetter("name"))
def test_kafkas_uncompressed_batches_are_built_byte_for_byte(golden: GoldenBatch) -> None:
    header = parse_header(golden.data)
    rebuilt = build_batch(
        [NewRecord(*record[1:]) for record in iterate_records(golden.data)],
        base_offset=header.base_offset,
        leader_epoch=header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
    )
    assert rebuilt.hex() == golden.data.hex()


@pytest.mark.parametrize("golden", SENDABLE, ids=attrgetter("name"))
def test_kafkas_batches_pass_the_check_as_a_client_sends_them(golden: GoldenBatch) -> None:
    batch = bytearray(golden.data)
    batch[:8] = bytes(8)
    assert check_produced(batch) == parse_header(golden.data)._replace(base_offset=0)


def test_markers_are_kafkas_byte_for_byte() -> None:
    goldens = {golden.name: golden.data for golden in KEPT}
    for type_, name in ((ControlType.COMMIT, "marker commit"), (ControlType.ABORT, "marker abort")):
        marker = EndTransactionMarker(type_, coordinator_epoch=3)
        ours = build_marker(marker, producer_id=42, producer_epoch=7, now_ms=NOW)
        assert ours.hex() == goldens[name].hex()
        assert parse_marker(goldens[name]) == marker


@pytest.mark.java
def test_kept_batches_are_those_that_kafka_writes_today() -> None:
    wrote = {golden.name: golden for golden in java_batches.ask([]).wrote}
    assert {golden.name: golden for golden in KEPT} == wrote


@pytest.mark.java
def test_our_batches_are_read_by_kafka() -> None:
    batches = []
    for codec in Codec:
        batches += [
            build_batch(RECORDS, codec=codec, base_offset=2**40, leader_epoch=12),
            build_batch(
                RECORDS,
                codec=codec,
                producer_id=5,
                producer_epoch=3,
                base_sequence=2**31 - 3,
                is_transactional=True,
            ),
            build_batch(RECORDS, codec=codec, timestamp_type=TimestampType.LOG_APPEND_TIME),
        ]
        whole, some = batches[-2], range(3, 190, 7)
        batches.append(rewritten(whole, some))
        batches.append(rewritten(whole, some, delete_horizon_ms=NOW + 9))
        batches.append(rewritten(whole, []))
    batches.append(
        build_marker(
            EndTransactionMarker(ControlType.ABORT, 8), producer_id=9, producer_epoch=1, now_ms=NOW
        )
    )
    assert java_batches.ask(batches).read == [describe(batch) for batch in batches]
