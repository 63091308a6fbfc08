"""Valid look-up requests, and the errors of invalid ones."""

from __future__ import annotations

import pytest

from broker.key_index.request import BadRequestError, LookupRequest, read_request
from storage.key_index.query import EARLIEST, LATEST, Query


def test_a_request_with_all_parameters_is_parsed() -> None:
    text = (
        "topic=orders&key=a%26b&id=%FF&from=2026-11-23T10:00:00%2B01:00&to=1795430000000"
        "&partition=3&limit=7&isolation=read_uncommitted&start=3:170"
    )

    assert read_request(text) == LookupRequest(
        "orders",
        Query(b"a&b", b"\xff", 1_795_424_400_000, 1_795_430_000_000),
        3,
        (3, 170),
        7,
        is_read_committed=False,
    )


def test_a_request_with_only_a_key_gets_defaults() -> None:
    assert read_request("topic=orders&key=") == LookupRequest(
        "orders", Query(b"", None, EARLIEST, LATEST), None, (0, 0), 100, is_read_committed=True
    )


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("2026-11-23", 1_795_392_000_000),
        ("2026-11-23T10:00:00Z", 1_795_428_000_000),
        ("2026-11-23T10:00:00.250", 1_795_428_000_250),
        ("2026-11-23T11:00:00+01:00", 1_795_428_000_000),
        ("-5", -5),
        ("9" * 100, LATEST),
    ],
)
def test_times_are_milliseconds_or_iso_8601(time: str, expected: int) -> None:
    assert read_request(f"topic=orders&key=a&from={time}").query.from_ms == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "topic is missing"),
        ("topic=orders", "key or id is missing"),
        ("topic&key", "cannot be read"),
        ("topic=orders&key=a&key=b", "more than once"),
        ("topic=orders&key=a&colour=red", "'colour' is none of topic, key"),
        ("topic=orders&key=a&key.base64=YQ==", "both given"),
        ("topic=orders&key.base64=%3F", "no base64"),
        ("topic=orders&key=a&partition=-1", "no number"),
        ("topic=orders&key=a&partition=99999999999", "no number"),
        ("topic=orders&key=a&limit=%D9%A3", "no number"),
        ("topic=orders&key=a&limit=0", "limit=0 asks for nothing"),
        ("topic=orders&key=a&from=yesterday", "neither milliseconds nor a time"),
        ("topic=orders&key=a&start=5", "no PARTITION:OFFSET"),
        ("topic=orders&key=a&start=1:" + "9" * 40, "no PARTITION:OFFSET"),
        ("topic=orders&key=a&isolation=none", "none of read_committed"),
        ("&".join(["topic=orders"] * 50), "cannot be read"),
        ("topic=orders&key=" + "a" * 70_000, "65536 are allowed"),
    ],
)
def test_invalid_requests_are_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(BadRequestError, match=reason):
        read_request(text)
