"""The feed: all flights in order of event time, and damaged lines that stay where they are."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise

from spark_jobs.definitions.definition import load_definition
from spark_jobs.definitions.rejection_rules import rejection_sql
from spark_jobs.flights.damage import DAMAGES
from spark_jobs.flights.flight_feed import Feed
from spark_jobs.flights.flights import fields
from spark_jobs.record_formats.formats import format_of
from tests.spark_jobs.data.month import DAMAGED, FEED, damaged_lines, month_of_flights


def test_every_flight_is_there_once_and_in_order_of_event_time() -> None:
    lines = list(FEED.lines(FEED.flights()))
    good = [line for line in lines if line.damage is None]
    assert [line.number for line in lines] == list(range(len(lines)))
    assert len(good) == len(month_of_flights())
    assert all(a.timestamp_ms <= b.timestamp_ms for a, b in pairwise(lines))


def test_values_that_are_not_available_become_null_and_numbers_stay_whole() -> None:
    flights = [
        json.loads(line.value or b"") for line in FEED.lines(FEED.flights()) if not line.damage
    ]
    cancelled = [flight for flight in flights if flight["dep_time"] is None]
    assert len(cancelled) == month_of_flights().dep_time.isna().sum()
    assert {tuple(flight) for flight in flights} == {tuple(fields())}
    assert all(isinstance(flight["distance"], int) for flight in flights)
    assert sum(flight["arr_delay"] or 0 for flight in flights) == month_of_flights().arr_delay.sum()


def test_event_time_is_the_scheduled_departure_in_utc() -> None:
    first = next(FEED.lines(FEED.flights()))
    assert json.loads(first.value or b"")["time_hour"] == "2013-03-01T10:00:00Z"
    assert first.timestamp_ms == 1_362_132_000_000


def test_the_same_feed_has_the_same_damage_at_the_same_places() -> None:
    again = Feed(damaged=DAMAGED, months=FEED.months)
    assert {line.number: line for line in again.lines(again.flights()) if line.damage} == (
        damaged_lines()
    )


def test_damage_of_every_kind_occurs_equally_often() -> None:
    kinds = Counter(line.damage.name for line in damaged_lines().values() if line.damage)
    assert kinds == {damage.name: DAMAGED // len(DAMAGES) for damage in DAMAGES}


def test_every_reason_has_a_kind_of_damage() -> None:
    record = load_definition("flights").record
    possible = set(re.findall(r"'reason', '([^']+)'", rejection_sql(record, format_of(record))))
    assert {damage.reason for damage in DAMAGES} == possible - {"too-large"}


def test_another_seed_is_another_feed() -> None:
    assert Feed(seed=1).name != Feed(seed=2).name
    assert Feed(months=(1,)).name != Feed(months=(2,)).name
