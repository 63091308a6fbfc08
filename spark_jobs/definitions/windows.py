"""Windows of event time, of several lengths at once, with one state and one watermark.

Each row is taken once into the window of each granularity that its event time lies in. Windows
begin at multiples of their length since 1970, UTC: days at midnight, hours on the hour.

In a time zone, windows longer than an hour begin when clocks there show such a multiple: a day of
New York has 23 or 25 hours when clocks change. Shorter ones have their length always, as the hour
that clocks show twice is two hours.

    2013-11-03, New York     1 day     04:00Z to 05:00Z of the next day
                             6 hours   04:00Z to 11:00Z, then 11:00Z to 17:00Z
                             1 hour    05:00Z to 06:00Z and 06:00Z to 07:00Z are both one o'clock

The watermark trails the latest event time seen. A window that ended before it is forgotten by
Spark's state and changes no more; a row is left out of the windows that are, and still counts in
longer ones that are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}

WATERMARK_KEY = "spark.watermarkDelayMs"
"""How Spark marks a column that carries event time; it takes the `end` of a struct. `window`
passes the mark on by itself, but an operator may have only one, and so only one granularity."""


def seconds_of(duration: str) -> int:
    """Return the length of a `Duration`."""
    number, unit = duration.split()
    return int(number) * SECONDS[unit.removesuffix("s")]


def with_windows(
    rows: DataFrame, granularities: Sequence[str], watermark: str, zone: str | None = None
) -> DataFrame:
    """Return a row for each row and granularity, with the columns `granularity` and `window`.

    `rows` have `event_time`; those without are left out. `window` is a struct (start, end), to
    group by together with `granularity`.
    """
    mark = {WATERMARK_KEY: seconds_of(watermark) * 1000}
    return (
        rows.where("event_time IS NOT NULL")
        .withWatermark("event_time", watermark)
        .withColumn("place", F.explode(F.expr(window_structs_sql(granularities, zone))))
        .withColumn("granularity", F.col("place.granularity"))
        .withColumn("window", F.col("place.window"))
        .drop("place")
        .withColumn("window", F.col("window").alias("window", metadata=mark))
    )


def window_structs_sql(granularities: Sequence[str], zone: str | None = None) -> str:
    """Return SQL for the windows of `event_time`: an array of structs (granularity, window)."""
    return f"array({', '.join(_window_sql(granularity, zone) for granularity in granularities)})"


def _window_sql(granularity: str, zone: str | None) -> str:
    seconds = seconds_of(granularity)
    time = "unix_seconds(event_time)"
    clock = time if zone is None else f"unix_seconds(from_utc_timestamp(event_time, '{zone}'))"
    is_by_clock = zone is not None and seconds > SECONDS["hour"]
    start = f"{clock if is_by_clock else time} - pmod({clock}, {seconds})"
    begin, end = f"timestamp_seconds({start})", f"timestamp_seconds({start} + {seconds})"
    if is_by_clock:
        begin, end = (f"to_utc_timestamp({one}, '{zone}')" for one in (begin, end))
    return (
        f"named_struct('granularity', '{granularity}', 'window', "
        f"named_struct('start', {begin}, 'end', {end}))"
    )
