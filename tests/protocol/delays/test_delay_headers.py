"""Delivery times in the headers of records, and headers that are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.delays.delay_headers import (
    MOST_CANCELLED,
    DelayLimits,
    cancelled_offsets,
    delivery_times,
)
from protocol.errors import ErrorCode
from protocol.records.batch import HEADER_BYTES, parse_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.validation import RecordsRejectedError

NOW_MS = 1_795_229_963_000
DAY_MS = 86_400_000
LIMITS = DelayLimits(0, DAY_MS, 1 << 20)

Headers = tuple[tuple[str, bytes | None], ...]


def body_of(*headers: Headers) -> bytes:
    records = [NewRecord(NOW_MS, None, b"value", each) for each in headers]
    return bytes(build_batch(records)[HEADER_BYTES:])


def times(*headers: Headers, limits: DelayLimits = LIMITS) -> list[int]:
    return delivery_times(body_of(*headers), len(headers), limits, NOW_MS)


@pytest.mark.parametrize(
    ("value", "delay_ms"),
    [
        (b"0", 0),
        (b"1500", 1500),
        (b"500ms", 500),
        (b"90s", 90_000),
        (b"5m", 300_000),
        (b"2h", 7_200_000),
        (b"1d", DAY_MS),
    ],
)
def test_a_delay_is_minus_one_less_its_milliseconds(value: bytes, delay_ms: int) -> None:
    assert times((("deliver-after", value),)) == [-1 - delay_ms]


def test_deliver_at_is_used_unchanged_even_in_the_past() -> None:
    at = b"%d" % (NOW_MS + 5)
    assert times((("deliver-at", at),), (("deliver-at", b"0"),)) == [NOW_MS + 5, 0]


def test_records_without_a_header_take_the_delay_of_the_topic() -> None:
    limits = LIMITS._replace(default_ms=700)
    assert times((), (("deliver-after", b"1"),), (("other", b"x"),), limits=limits) == [
        -701,
        -2,
        -701,
    ]
    assert times((), (), limits=limits) == [-701, -701]


@pytest.mark.parametrize(
    "headers",
    [
        (("deliver-after", b""),),
        (("deliver-after", None),),
        (("deliver-after", b"-5"),),
        (("deliver-after", b"+5"),),
        (("deliver-after", b"5 s"),),
        (("deliver-after", b"5w"),),
        (("deliver-after", b"1.5s"),),
        (("deliver-after", "٣s".encode()),),
        (("deliver-after", b"1\n"),),
        (("deliver-after", b"86400001"),),
        (("deliver-after", b"2d"),),
        (("deliver-after", b"9999999999999999999d"),),
        (("deliver-after", b"1" * 1000),),
        (("deliver-at", b"soon"),),
        (("deliver-at", b"9223372036854775808"),),
        (("deliver-at", b"%d" % (NOW_MS + DAY_MS + 1)),),
        (("deliver-at", b"5"), ("deliver-after", b"5")),
        (("deliver-after", b"5"), ("deliver-after", b"5")),
    ],
    ids=repr,
)
def test_an_invalid_delay_header_is_refused_with_its_record_index(headers: Headers) -> None:
    with pytest.raises(RecordsRejectedError) as refused:
        times((), headers, (("deliver-after", b"1"),))

    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in refused.value.record_errors] == [1]


def test_cancellations_name_offsets_and_stand_alone() -> None:
    first, second = (("deliver-cancel", b"5"),), (("deliver-cancel", b"70"),)
    assert cancelled_offsets(body_of(first, second), 2) == [5, 70]
    assert cancelled_offsets(body_of(()), 1) is None
    assert cancelled_offsets(body_of((("x", b"deliver-cancel"),)), 1) is None
    with pytest.raises(RecordsRejectedError) as refused:
        cancelled_offsets(body_of(first, ()), 2)
    assert [error.batch_index for error in refused.value.record_errors] == [1]


def test_a_batch_cancels_no_more_records_than_are_looked_at_in_one_go() -> None:
    named = [(("deliver-cancel", b"%d" % offset),) for offset in range(MOST_CANCELLED + 1)]
    assert cancelled_offsets(body_of(*named[1:]), MOST_CANCELLED) is not None

    with pytest.raises(RecordsRejectedError, match="at most"):
        cancelled_offsets(body_of(*named), MOST_CANCELLED + 1)


def test_headers_are_read_of_the_records_that_a_batch_declares() -> None:
    batch = build_batch([NewRecord(NOW_MS, None, None, (("deliver-after", b"1s"),))] * 3)
    assert parse_header(batch).record_count == 3
    assert delivery_times(bytes(batch[HEADER_BYTES:]), 3, LIMITS, NOW_MS) == [-1001] * 3


VALUES = (
    st.none()
    | st.binary(max_size=70)
    | st.integers(0, NOW_MS + 2 * DAY_MS).map(lambda number: b"%d" % number)
    | st.from_regex(rb"[0-9]{1,21}(ms|s|m|h|d|)", fullmatch=True)
)


def outcome(*headers: tuple[str, bytes | None]) -> list[int] | tuple[object, ...]:
    """The number of a record, or why it has none."""
    try:
        return times(headers)
    except RecordsRejectedError as error:
        return error.record_errors


@given(
    names=st.lists(st.sampled_from(["deliver-at", "deliver-after", "deliver", "x"]), max_size=3),
    values=st.lists(VALUES, min_size=3, max_size=3),
)
def test_a_delay_header_means_the_same_alone_and_beside_others(
    names: list[str], values: list[bytes | None]
) -> None:
    """Records with one header are read in a way of their own."""
    for alone in zip(names, values, strict=False):
        assert outcome(alone) == outcome(alone, ("deliver-other", b""))
