"""Spans of records: the same as a reader of whole records finds, in runs and one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ApiError
from protocol.records.batch import HEADER_BYTES, parse_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from protocol.records.record import iterate_records, record_bytes
from protocol.records.rewrite import empty_batch, rewrite_batch
from protocol.records.spans import RecordSpans, record_spans
from tests.protocol.records.rewritten import placed_records

KEYS = st.none() | st.binary(max_size=3) | st.binary(min_size=60, max_size=70)
VALUES = st.none() | st.binary(max_size=3) | st.binary(min_size=60, max_size=70)
TIMESTAMPS = st.integers(0, 130) | st.integers(-1, 2**62)
RECORDS = st.lists(st.builds(NewRecord, TIMESTAMPS, KEYS, VALUES), min_size=1, max_size=12)
REPEATS = st.integers(1, 30)


def spans_of(batch: bytes | bytearray) -> tuple[bytes, RecordSpans]:
    header = parse_header(batch)
    body = bytes(record_bytes(batch, header))
    return body, record_spans(body, header)


@given(records=RECORDS, repeats=REPEATS, codec=st.sampled_from(Codec))
def test_spans_say_what_a_reader_of_whole_records_finds(
    records: list[NewRecord], repeats: int, codec: Codec
) -> None:
    alike = [record for record in records for _ in range(repeats)]
    batch = build_batch(alike, codec=codec, base_offset=7)

    body, spans = spans_of(batch)

    read = list(iterate_records(batch))
    assert spans.keys == [record.key for record in read]
    assert spans.offset_deltas == [record.offset - 7 for record in read]
    assert spans.is_null == [record.value is None for record in read]
    assert [0, *spans.ends] == [*spans.starts, len(body)]


@given(
    records=RECORDS,
    repeats=REPEATS,
    codec=st.sampled_from(Codec),
    horizon_ms=st.none() | st.integers(0, 2**50),
    data=st.data(),
)
def test_rewritten_batches_keep_their_records_and_can_be_rewritten_again(
    records: list[NewRecord],
    repeats: int,
    codec: Codec,
    horizon_ms: int | None,
    data: st.DataObject,
) -> None:
    batch = build_batch([record for record in records for _ in range(repeats)], codec=codec)
    for _ in range(2):
        count = parse_header(batch).record_count
        kept = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1)))
        wanted = [record for index, record in enumerate(iterate_records(batch)) if index in kept]
        old = parse_header(batch)
        body = bytes(record_bytes(batch, old))

        batch = rewrite_batch(old, body, placed_records(body, old, kept), horizon_ms)

        new = parse_header(batch)
        assert list(iterate_records(batch)) == wanted
        assert (new.base_offset, new.last_offset) == (old.base_offset, old.last_offset)
        assert new.max_timestamp == max(record.timestamp for record in wanted)
        assert new.has_delete_horizon == (horizon_ms is not None)
        assert new.base_timestamp == (wanted[0].timestamp if horizon_ms is None else horizon_ms)


def test_a_batch_with_log_append_time_keeps_that_time() -> None:
    batch = build_batch([NewRecord(1000 + index, b"k", b"v") for index in range(3)])
    header = parse_header(batch)._replace(attributes=8, max_timestamp=9000)
    body = bytes(batch[HEADER_BYTES:])

    rewritten = rewrite_batch(header, body, placed_records(body, header, [1, 2]))

    assert [record.timestamp for record in iterate_records(rewritten)] == [9000, 9000]
    assert parse_header(rewritten).base_timestamp == 9000


def test_an_empty_batch_still_says_where_it_ended() -> None:
    batch = build_batch(
        [NewRecord(5, b"k", b"v")] * 3, codec=Codec.ZSTD, producer_id=4, base_sequence=3
    )
    old, new = parse_header(batch), parse_header(empty_batch(parse_header(batch)))

    assert list(iterate_records(empty_batch(old))) == []
    assert (new.last_offset, new.last_sequence) == (old.last_offset, old.last_sequence)
    assert new.codec is Codec.NONE


@given(data=st.data(), records=RECORDS, repeats=REPEATS)
def test_damaged_records_are_refused_or_read_as_far_as_they_are_sound(
    data: st.DataObject, records: list[NewRecord], repeats: int
) -> None:
    batch = build_batch([record for record in records for _ in range(repeats)])
    at = data.draw(st.integers(HEADER_BYTES, len(batch) - 1))
    batch[at] = data.draw(st.integers(0, 255))

    try:
        body, spans = spans_of(batch)
    except ApiError:
        return
    assert [0, *spans.ends] == [*spans.starts, len(body)]


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_records_that_are_cut_off_are_refused(cut: int) -> None:
    batch = build_batch([NewRecord(1, b"key", b"value")] * 20)
    header = parse_header(batch)
    body = bytes(batch[HEADER_BYTES:-cut])

    with pytest.raises(ApiError, match=r"cut off|impossible|end at"):
        record_spans(body, header)
