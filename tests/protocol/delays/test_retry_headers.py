"""Retries are counted in the headers, and wait longer each time."""

from __future__ import annotations

import pytest

from protocol.delays.retry_headers import (
    RetryRules,
    attempts_made,
    dead_letter,
    delay_of,
    doubling,
    given_back,
    levels,
)

RULES = RetryRules((10, 30))


def test_levels_repeat_the_last_one_or_are_cut_to_the_attempts() -> None:
    assert levels((10, 30), 4).delays_ms == (10, 30, 30, 30)
    assert levels((10, 30, 60), 2).delays_ms == (10, 30)


def test_delays_double_up_to_a_limit() -> None:
    assert doubling(100, 350, 4).delays_ms == (100, 200, 350, 350)
    assert doubling(500, 350, 2).delays_ms == (350, 350)


def test_a_record_waits_longer_each_time_and_is_dead_in_the_end() -> None:
    assert delay_of([], RULES) == 10
    assert delay_of([("retry-attempt", b"1")], RULES) == 30
    assert delay_of([("retry-attempt", b"2")], RULES) is None


@pytest.mark.parametrize(
    "headers",
    [
        [("retry-attempt", b"-1")],
        [("retry-attempt", b"one")],
        [("retry-attempt", None)],
        [("retry-attempt", b"9" * 10)],
        [("retry-attempt", b"1"), ("retry-attempt", b"1")],
    ],
)
def test_a_count_that_the_broker_did_not_give_is_an_error(
    headers: list[tuple[str, bytes | None]],
) -> None:
    with pytest.raises(ValueError, match="retry-attempt"):
        attempts_made(headers)


def test_a_retried_record_keeps_its_own_headers_and_one_attempt_count() -> None:
    sent = [
        ("deliver-after", b"2h"),
        ("reason", b"no stock"),
        ("retry-attempt", b"1"),
        ("retry-first-time", b"500"),
        ("delivery-source", b"17"),
        ("delivery-address", b"12 Main St"),
        ("deliver-to", b"Bob"),
    ]

    assert given_back(sent, 900) == (
        ("reason", b"no stock"),
        ("retry-first-time", b"500"),
        ("delivery-address", b"12 Main St"),
        ("deliver-to", b"Bob"),
        ("retry-attempt", b"2"),
    )
    assert given_back([], 900) == (("retry-first-time", b"900"), ("retry-attempt", b"1"))


def test_a_dead_letter_says_where_it_comes_from_and_how_often_it_was_tried() -> None:
    sent = [("reason", b"no stock"), ("retry-attempt", b"2"), ("retry-first-time", b"500")]

    assert dead_letter(sent, ("billing.retry", 3, 99), 1_000) == (
        ("reason", b"no stock"),
        ("retry-first-time", b"500"),
        ("dead-letter-attempts", b"2"),
        ("dead-letter-source", b"billing.retry/3/99"),
        ("dead-letter-time", b"1000"),
    )


def test_a_second_dead_letter_carries_only_its_own_headers() -> None:
    first = dead_letter([("own", b"1")], ("billing.retry", 3, 99), 1_000)

    assert dead_letter(first, ("billing.retry", 3, 200), 2_000) == (
        ("own", b"1"),
        ("dead-letter-attempts", b"0"),
        ("dead-letter-source", b"billing.retry/3/200"),
        ("dead-letter-time", b"2000"),
    )
