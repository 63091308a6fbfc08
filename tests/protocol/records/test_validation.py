"""Batches that clients may produce or not, with the codes that Apache Kafka 4.3.1 gave."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import compute_crc, parse_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from protocol.records.record import iterate_records
from protocol.records.validation import (
    HOUR_MS,
    MAX_RECORD_ERRORS,
    ProduceRules,
    RecordsRejectedError,
    check_produced,
)
from tests.protocol.records.damage import GOOD, KAFKAS, NOW, OURS, old_message, patched, records

COMPACTED = ProduceRules(is_compacted=True)
STAMPED = ProduceRules(is_log_append_time=True)
SECOND_MS = 1000
RECENT = ProduceRules(timestamp_before_max_ms=SECOND_MS, timestamp_after_max_ms=SECOND_MS)


def refusal(
    data: bytes | bytearray,
    rules: ProduceRules = ProduceRules(),  # noqa: B008 - frozen
    api_version: int = 13,
) -> ApiError | None:
    buffer = memoryview(bytearray(data))
    try:
        check_produced(buffer, rules, NOW, api_version)
    except ApiError as error:
        assert bytes(buffer) == data
        return error
    return None


@pytest.mark.parametrize(("data", "code"), [pytest.param(*c[1:], id=c[0]) for c in KAFKAS])
def test_refused_with_kafkas_code(data: bytes, code: ErrorCode) -> None:
    error = refusal(data)
    assert error is not None
    assert error.code is code


@pytest.mark.parametrize(("data", "code"), [pytest.param(*c[1:], id=c[0]) for c in OURS])
def test_refused_where_kafka_is_lenient_or_fails(data: bytes, code: ErrorCode) -> None:
    error = refusal(data)
    assert error is not None
    assert error.code is code


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("count", [1, 2, 3, 64, 65, 1000])
def test_sound_batch_passes_untouched(codec: Codec, count: int) -> None:
    batch = build_batch(records(count), codec=codec)
    buffer = bytearray(batch)
    assert check_produced(memoryview(buffer), now_ms=NOW) == parse_header(batch)
    assert buffer == batch


def test_producer_and_unused_fields_pass() -> None:
    for batch in (
        build_batch(records(), producer_id=0, producer_epoch=0, base_sequence=0),
        build_batch(records(), producer_id=9, producer_epoch=1, base_sequence=2**31 - 1),
        build_batch(records(), producer_id=9, base_sequence=0, is_transactional=True),
        build_batch(records(), base_sequence=5),
        build_batch(records(), leader_epoch=9),
        patched(">h", 21, 0x80),
        patched(">H", 21, 0x8000),
    ):
        assert refusal(batch) is None


def test_zstd_needs_version_7() -> None:
    batch = build_batch(records(), codec=Codec.ZSTD)
    assert refusal(batch, api_version=7) is None
    error = refusal(batch, api_version=6)
    assert error is not None
    assert error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_in_old_versions_are_unsupported(magic: int) -> None:
    error = refusal(old_message(magic), api_version=2)
    assert error is not None
    assert error.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_size_limit_is_that_of_the_batch_as_it_came() -> None:
    assert refusal(GOOD, ProduceRules(max_message_bytes=len(GOOD))) is None
    error = refusal(GOOD, ProduceRules(max_message_bytes=len(GOOD) - 1))
    assert error is not None
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", Codec)
def test_compacted_topic_names_each_record_without_a_key(codec: Codec) -> None:
    batch = build_batch([NewRecord(NOW, key, None) for key in (b"a", None, b"", None)], codec=codec)
    error = refusal(batch, COMPACTED)
    assert isinstance(error, RecordsRejectedError)
    assert error.code is ErrorCode.INVALID_RECORD
    assert [record.batch_index for record in error.record_errors] == [1, 3]
    assert refusal(build_batch(records(key=b"k"), codec=codec), COMPACTED) is None
    assert refusal(batch) is None


def test_number_of_named_records_is_limited() -> None:
    error = refusal(build_batch(records(MAX_RECORD_ERRORS + 5)), COMPACTED)
    assert isinstance(error, RecordsRejectedError)
    assert len(error.record_errors) == MAX_RECORD_ERRORS


def times(*timestamps: int) -> bytearray:
    return build_batch([NewRecord(timestamp, b"k", None) for timestamp in timestamps])


@pytest.mark.parametrize("timestamp", [NOW, NOW + HOUR_MS, 0, -1, -5])
def test_default_limits_take_any_past_and_an_hour_of_future(timestamp: int) -> None:
    assert refusal(times(timestamp)) is None


@pytest.mark.parametrize(
    ("timestamps", "rules", "wrong"),
    [
        ((NOW, NOW + HOUR_MS + 1, NOW), ProduceRules(), [1]),
        ((-(2**63),), ProduceRules(), [0]),
        ((NOW, NOW - SECOND_MS - 1, NOW, -1, NOW - SECOND_MS), RECENT, [1]),
        ((NOW + 2 * SECOND_MS, NOW, NOW - 2 * SECOND_MS), RECENT, [0, 2]),
    ],
)
def test_records_out_of_time_are_named(
    timestamps: tuple[int, ...], rules: ProduceRules, wrong: list[int]
) -> None:
    error = refusal(times(*timestamps), rules)
    assert isinstance(error, RecordsRejectedError)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [record.batch_index for record in error.record_errors] == wrong


def test_topic_with_log_append_time_takes_any_timestamp() -> None:
    assert refusal(times(1, NOW * 2), STAMPED) is None


def test_without_a_clock_timestamps_are_not_limited() -> None:
    assert check_produced(times(NOW * 2), RECENT).max_timestamp == NOW * 2


@pytest.mark.parametrize("stated", [NOW - 5, NOW + 10 * HOUR_MS, 0])
def test_wrong_latest_timestamp_is_put_right(stated: int) -> None:
    buffer = bytearray(patched(">q", 35, stated))
    header = check_produced(memoryview(buffer), ProduceRules(), NOW)
    assert header == parse_header(buffer)
    assert header.max_timestamp == NOW + 2
    assert header.crc == compute_crc(buffer, 0, len(buffer))
    assert bytes(buffer) == GOOD


def test_timestamp_past_64_bits_is_refused() -> None:
    batch = patched(">q", 27, 2**63 - 1)
    error = refusal(batch)
    assert error is not None
    assert error.code is ErrorCode.INVALID_RECORD


@given(data=st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    assert refusal(data) is not None


@given(position=st.integers(0, 10_000), byte=st.integers(0, 255), codec=st.sampled_from(Codec))
def test_changed_byte_under_the_checksum_is_noticed(position: int, byte: int, codec: Codec) -> None:
    batch = build_batch(records(20), codec=codec)
    at = 17 + position % (len(batch) - 17)
    if batch[at] != byte:
        batch[at] = byte
        error = refusal(batch)
        assert error is not None
        assert error.code is ErrorCode.CORRUPT_MESSAGE


@given(
    position=st.integers(0, 10_000),
    byte=st.integers(0, 255),
    codec=st.sampled_from(Codec),
    rules=st.sampled_from([ProduceRules(max_decompressed_bytes=100_000), COMPACTED, RECENT]),
)
def test_change_with_a_true_checksum_is_refused_or_leaves_a_chain(
    position: int, byte: int, codec: Codec, rules: ProduceRules
) -> None:
    batch = build_batch(records(5, key=b"k"), codec=codec)
    batch[position % len(batch)] = byte
    batch[17:21] = compute_crc(batch, 0, len(batch)).to_bytes(4, "big")
    if refusal(batch, rules) is None:
        assert parse_header(batch).record_count == 5
        if rules in (COMPACTED, RECENT):
            assert len(list(iterate_records(batch))) == 5


def test_refusal_of_a_huge_count_allocates_nothing() -> None:
    batch = next(case[1] for case in KAFKAS if case[0] == "two thousand million records")
    tracemalloc.start()
    try:
        refusal(batch)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100_000
