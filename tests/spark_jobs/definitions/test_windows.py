"""Windows by the clocks of a time zone, through both changes of clocks, counted without Spark."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from spark_jobs.definitions.windows import window_structs_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GRANULARITIES = ("15 minutes", "1 hour", "6 hours", "1 day", "7 days")
HOURS = {"15 minutes": 0.25, "1 hour": 1, "6 hours": 6, "1 day": 24, "7 days": 168}
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - of any clock


def _expected(instant: int, granularity: str, zone: ZoneInfo) -> tuple[int, int]:
    """Return a window's bounds: by the clock from its midnight, or by the clock's minutes."""
    length = dt.timedelta(hours=HOURS[granularity])
    shown = dt.datetime.fromtimestamp(instant, zone).replace(tzinfo=None)
    begin = EPOCH + (shown - EPOCH) // length * length
    if length <= dt.timedelta(hours=1):
        start = instant - int((shown - begin).total_seconds())
        return start, start + int(length.total_seconds())
    bounds = (begin.replace(tzinfo=zone), (begin + length).replace(tzinfo=zone))
    return int(bounds[0].timestamp()), int(bounds[1].timestamp())


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin", "Asia/Kolkata"])
def test_windows_begin_by_the_clocks_of_their_zone(zone: str, spark: SparkSession) -> None:
    # Days around the changes of clocks of 2013 in New York and in Berlin, each quarter of an hour.
    days = ("2013-03-09", "2013-03-30", "2013-10-26", "2013-11-02")
    starts = [int(dt.datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()) for day in days]
    instants = [start + 900 * at for start in starts for at in range(4 * 24 * 3)]
    rows = spark.sql(f"SELECT explode(array({','.join(map(str, instants))})) AS instant")
    rows = rows.selectExpr("instant", "timestamp_seconds(instant) AS event_time")
    sql = window_structs_sql(GRANULARITIES, zone)
    rows = rows.selectExpr("instant", f"inline({sql})")
    found = {
        (row[0], row[1]): (row[2], row[3])
        for row in rows.selectExpr(
            "instant", "granularity", "unix_seconds(window.start)", "unix_seconds(window.end)"
        ).collect()
    }
    assert found == {
        (instant, granularity): _expected(instant, granularity, ZoneInfo(zone))
        for instant in instants
        for granularity in GRANULARITIES
    }


def test_a_day_of_new_york_has_23_hours_when_clocks_go_forward(spark: SparkSession) -> None:
    sql = window_structs_sql(["1 day"], "America/New_York")
    noons = "array(timestamp'2013-03-10 12:00:00Z', timestamp'2013-11-03 12:00:00Z')"
    rows = spark.sql(f"SELECT explode({noons}) AS event_time").selectExpr(f"inline({sql})")
    hours = rows.selectExpr("(unix_seconds(window.end) - unix_seconds(window.start)) / 3600")
    assert [row[0] for row in hours.collect()] == [23, 25]
