"""Waiting and delivered batches: what is put in comes out, and clients may not write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.delays.delay_headers import DelayLimits
from protocol.delays.delayed_batch import wrap
from protocol.delays.delivered_batch import DeliveryPoint, build_delivered, parse_point
from protocol.delays.retry_headers import levels
from protocol.delays.waiting_batch import (
    CANCELLED,
    FRONT_BYTES,
    WAITING,
    build_cancellation,
    build_waiting,
    is_cancellation,
    parse_front,
    parse_number,
    parse_waiting,
)
from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import (
    CONTROL_BIT,
    DELAY_BIT,
    assign_attributes,
    compute_crc,
    parse_header,
)
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from protocol.records.control import parse_marker
from protocol.records.record import Record, iterate_records
from protocol.records.validation import check_produced
from tests.protocol.delays.due_records import due_record

NOW_MS = 1_795_229_963_000

NEW_RECORDS = st.builds(
    NewRecord,
    st.integers(-1, 1 << 40),
    st.none() | st.binary(max_size=100),
    st.none() | st.binary(max_size=100),
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(
        tuple
    ),
)


def produced(count: int = 3, value: bytes = b"value", codec: Codec = Codec.LZ4) -> bytearray:
    records = [NewRecord(NOW_MS - 5, b"key", value) for _ in range(count)]
    return build_batch(
        records,
        codec=codec,
        producer_id=7,
        producer_epoch=2,
        base_sequence=9,
        is_transactional=True,
    )


def test_a_waiting_batch_is_its_producers_batch_for_sequences_and_offsets() -> None:
    inner = produced()
    header = parse_header(inner)

    batch = build_waiting(inner, header, [-1, 5, -2], NOW_MS)

    outer = parse_header(batch)
    assert outer.attributes & (CONTROL_BIT | DELAY_BIT) == CONTROL_BIT | DELAY_BIT
    assert outer.is_transactional
    assert outer[9:12] == header[9:12]
    assert (outer.last_sequence, outer.last_offset_delta) == (11, 2)
    assert (outer.base_timestamp, outer.max_timestamp) == (NOW_MS, NOW_MS)
    assert not outer.ends_transaction
    assert outer.crc == compute_crc(batch, 0, len(batch))
    assert len(list(iterate_records(batch))) == outer.record_count == 1
    assert parse_marker(batch) is None
    waiting = parse_waiting(batch)
    assert (waiting.type, waiting.received_ms, waiting.numbers) == (WAITING, NOW_MS, (-1, 5, -2))
    assert waiting.inner == inner


@pytest.mark.parametrize("count", [1, 2, 100, 3000])
def test_cancellations_and_waiting_batches_differ_in_their_first_bytes(count: int) -> None:
    header = parse_header(produced(count))
    cancellation = build_cancellation(header, range(count), NOW_MS)
    waiting = build_waiting(produced(count), header, range(count), NOW_MS)

    assert is_cancellation(cancellation)
    assert not is_cancellation(waiting)
    assert parse_waiting(cancellation)[:3] == (CANCELLED, NOW_MS, tuple(range(count)))


def test_a_batch_without_delays_stays_as_it_is() -> None:
    batch = produced()
    limits = DelayLimits(0, 1000, 1 << 20)
    assert wrap(batch, parse_header(batch), limits, NOW_MS) is batch


@pytest.mark.parametrize("value", [b"0", b"none", None])
def test_in_a_retry_topic_a_record_cancels_nothing(value: bytes | None) -> None:
    """Its headers may be those of somebody who sent it to another topic."""
    foreign = NewRecord(NOW_MS, b"k", b"v", (("deliver-cancel", value),))
    batch = build_batch([foreign, NewRecord(NOW_MS, b"k", b"v")])
    limits = DelayLimits(0, 1000, 1 << 20, levels([500], 1))

    waiting = parse_waiting(wrap(batch, parse_header(batch), limits, NOW_MS))

    assert (waiting.type, waiting.numbers) == (WAITING, (-501, -501))


def test_a_record_that_could_not_be_delivered_is_refused() -> None:
    batch = produced(1, bytes(10_000))
    with pytest.raises(ApiError) as refused:
        wrap(batch, parse_header(batch), DelayLimits(5, 1000, 10_000), NOW_MS)
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE

    several = produced(20, bytes(1000))
    wrapped = wrap(several, parse_header(several), DelayLimits(5, 1000, 10_000), NOW_MS)
    assert parse_waiting(wrapped).numbers == (-6,) * 20


def test_the_largest_record_of_a_retry_topic_fits_again_with_its_headers() -> None:
    """The largest record, with all that the broker adds to it meanwhile."""
    most, numbers = 10_000, b"%d" % ((1 << 63) - 1)
    limits = DelayLimits(0, 1000, most, levels([500], 99))
    largest = next(
        size for size in range(most, 0, -1) if not _refused(limits, bytes(size), headers=())
    )
    added = (
        ("retry-first-time", numbers),
        ("retry-attempt", b"98"),
        ("delivery-source", numbers),
        ("delivery-created-at", numbers),
        ("delivery-point", b",".join([numbers] * 3)),
    )

    again = [NewRecord(NOW_MS, None, bytes(largest), added)]
    assert len(build_batch(again)) <= most
    assert not _refused(limits, bytes(largest), added)
    assert largest > most - 700


def _refused(limits: DelayLimits, value: bytes, headers: tuple[tuple[str, bytes], ...]) -> bool:
    batch = build_batch([NewRecord(NOW_MS, None, value, headers)])
    try:
        wrap(batch, parse_header(batch), limits, NOW_MS)
    except ApiError as error:
        return error.code is ErrorCode.MESSAGE_TOO_LARGE
    return False


def test_a_delivered_batch_carries_the_delivery_point() -> None:
    due = [
        due_record(NOW_MS + index, Record(50 - index, NOW_MS, b"k", b"v", (("own", b"x"),)))
        for index in range(3)
    ]

    batch = build_delivered(due, 17, Codec.ZSTD)

    header = parse_header(batch)
    assert header.attributes & DELAY_BIT
    assert not header.is_control
    assert header.max_timestamp == NOW_MS + 2
    assert parse_point(batch) == DeliveryPoint(NOW_MS + 2, 48, 17)
    first, *_, last = iterate_records(batch)
    created = ("delivery-created-at", b"%d" % NOW_MS)
    assert last.headers == (("own", b"x"), ("delivery-source", b"48"), created)
    assert first.headers[:2] == (("own", b"x"), ("delivery-source", b"50"))
    assert first.timestamp == NOW_MS


@pytest.mark.parametrize("bits", [DELAY_BIT, DELAY_BIT | CONTROL_BIT])
def test_batches_with_broker_only_attributes_are_refused(bits: int) -> None:
    batch = build_batch([NewRecord(NOW_MS, None, b"x")])
    assign_attributes(batch, 0, bits)
    with pytest.raises(ApiError) as refused:
        check_produced(batch)
    assert refused.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("cut", range(1, 30))
def test_damage_is_refused(cut: int) -> None:
    batch = build_waiting(b"", parse_header(produced(1)), [1], NOW_MS)
    with pytest.raises(ApiError) as refused:
        parse_waiting(bytes(batch[:61]) + bytes(batch[61:-cut]))
    assert refused.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("count", [1, 5, 300])
def test_one_delivery_time_is_read_without_the_rest_of_the_batch(count: int) -> None:
    times = [-7 - index for index in range(count)]
    inner = build_batch([NewRecord(NOW_MS, None, b"x" * 20)] * count)
    batch = build_waiting(inner, parse_header(inner), times, NOW_MS)

    front = parse_front(bytes(batch[:FRONT_BYTES]))

    assert front[:3] == (WAITING, NOW_MS, count)
    for index in (0, count - 1):
        at, size = front.number_at(index)
        assert parse_number(batch[at : at + size]) == times[index]


@pytest.mark.parametrize("cut", range(60, 87))
def test_a_front_that_is_cut_off_is_refused(cut: int) -> None:
    inner = build_batch([NewRecord(NOW_MS, None, b"x")])
    batch = build_waiting(inner, parse_header(inner), [-1], NOW_MS)

    with pytest.raises(ApiError):
        parse_front(bytes(batch[:cut]))


@given(
    records=st.lists(
        st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 40), NEW_RECORDS),
        min_size=1,
        max_size=5,
    ),
    codec=st.sampled_from(Codec),
)
def test_a_delivered_record_is_the_original_with_more_headers(
    records: list[tuple[int, int, NewRecord]], codec: Codec
) -> None:
    due = [due_record(due_ms, Record(offset, *record)) for due_ms, offset, record in records]

    batch = build_delivered(due, 17, codec)

    point = b"%d,%d,17" % records[-1][:2]
    for (due_ms, offset, record), read in zip(records, iterate_records(batch), strict=True):
        source = ("delivery-source", b"%d" % offset)
        created = ("delivery-created-at", b"%d" % record.timestamp)
        headers = (*record.headers, source, created)
        if read.offset == 0:
            headers += (("delivery-point", point),)
        assert read == Record(read.offset, due_ms, record.key, record.value, headers)
    header = parse_header(batch)
    assert header.crc == compute_crc(batch, 0, len(batch))
    assert header.max_timestamp == max(due_ms for due_ms, _, _ in records)
