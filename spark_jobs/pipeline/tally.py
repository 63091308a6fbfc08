"""What a run of the pipeline came to, counted from the topics themselves.

Every record of the source is matched, by topic, partition and offset, with the records that
name it as their source. So the counts do not merely add up: a record that was lost, one that
went to two topics and one that was written twice are each seen for what they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.rejects import SOURCE_HEADER
from spark_jobs.flights.flights import ZONE
from spark_jobs.jobs.route import REJECTED
from spark_jobs.spark.streams import read_batch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from spark_jobs.jobs.aggregate import AggregateOptions
    from spark_jobs.jobs.route import RouteOptions

DELAYS, HOURLY = "delays-by-airport", "1 hour"
"""The aggregate of the definition `flights` whose windows are counted, and the length of them."""


@dataclass(frozen=True, slots=True)
class RouteTally:
    """How the records of the source were distributed."""

    source: int
    """Records in the source topic."""

    routed: dict[str, int]
    """Records of the source that each route has, each counted once."""

    copies: int
    """Records written more than once, because a batch was interrupted and repeated."""

    lost: int
    """Records of the source that are in no target topic."""

    strays: int
    """Records in two target topics, or in one but not in the source."""

    reasons: dict[str, int]
    """Rejected records by reason, each counted once."""

    def is_exact(self) -> bool:
        """Say whether each record of the source is in exactly one target topic."""
        return not self.lost and not self.strays and sum(self.routed.values()) == self.source


@dataclass(frozen=True, slots=True)
class HourDelays:
    """Flights of one airport in one local hour of the day and one month."""

    origin: str
    month: int
    hour: int
    flights: int
    cancelled: int
    delayed: int
    dep_delay_sum: int
    dep_delay_count: int


@dataclass(frozen=True, slots=True)
class WindowTally:
    """What the windows hold, each in its last version."""

    windows: int
    flights: int
    hours: list[HourDelays] = field(repr=False)


def tally_routes(spark: SparkSession, options: RouteOptions) -> RouteTally:
    """Count the source and target topics; one pass over both."""
    targets = options.targets()
    records = read_batch(spark, options, [options.topic, *targets.values()])
    is_source = F.col("topic") == options.topic
    itself = F.concat_ws("/", "topic", "partition", "offset")
    by_source = (
        records.select("topic", F.when(is_source, itself).otherwise(_source()).alias("source"))
        .groupBy("source")
        .agg(
            F.count_if(is_source).alias("there"),
            F.count_if(~is_source).alias("written"),
            F.min(F.when(~is_source, F.col("topic"))).alias("target"),
            F.max(F.when(~is_source, F.col("topic"))).alias("other"),
        )
    )
    counts = by_source.groupBy("target").agg(
        F.sum("there").alias("there"),
        F.count_if(F.expr("written > 0")).alias("distinct"),
        F.sum(F.expr("greatest(written - 1, 0)")).alias("copies"),
        F.count_if(F.expr("target != other OR there = 0")).alias("strays"),
    )
    rows = {row["target"]: row for row in counts.collect()}
    return RouteTally(
        source=sum(row["there"] for row in rows.values()),
        routed={
            route: rows[topic]["distinct"] if topic in rows else 0
            for route, topic in targets.items()
        },
        copies=sum(row["copies"] for row in rows.values()),
        lost=rows[None]["there"] if None in rows else 0,
        strays=sum(row["strays"] for row in rows.values()),
        reasons=_reasons(read_batch(spark, options, [targets[REJECTED]])),
    )


def tally_windows(spark: SparkSession, options: AggregateOptions) -> WindowTally:
    """Count the hourly windows of airports, and sum them up by airport, month and local hour."""
    records = read_batch(spark, options, [options.aggregates()[DELAYS].topic])
    last = records.groupBy("key").agg(F.max_by("value", F.struct("partition", "offset")).alias("v"))
    window = F.from_json(F.col("v").cast("string"), _WINDOW).alias("w")
    local = F.from_utc_timestamp("start", ZONE)
    hours = (
        last.select(window)
        .select("w.*")
        .where(F.col("granularity") == HOURLY)
        .groupBy("origin", F.month(local).alias("month"), F.hour(local).alias("hour"))
        .agg(
            F.count(F.lit(1)).alias("windows"),
            *(F.expr(f"coalesce(sum({name}), 0)").alias(name) for name in _SUMS),
        )
        .collect()
    )
    return WindowTally(
        windows=sum(row["windows"] for row in hours),
        flights=sum(row["flights"] for row in hours),
        hours=[
            HourDelays(row["origin"], row["month"], row["hour"], *(row[name] for name in _SUMS))
            for row in hours
        ],
    )


_SUMS = ("flights", "cancelled", "delayed", "dep_delay_sum", "dep_delay_count")
_WINDOW = ", ".join(
    [
        "granularity string",
        "origin string",
        "start timestamp",
        *(f"{name} bigint" for name in _SUMS),
    ]
)


def _source() -> Column:
    header = F.filter("headers", lambda header: header["key"] == SOURCE_HEADER)[0]
    return header["value"].cast("string")


def _reasons(rejected: DataFrame) -> dict[str, int]:
    value = F.any_value("value").cast("string").alias("value")
    rows = rejected.groupBy(_source()).agg(value).select("value")
    reasons = rows.select(F.get_json_object("value", "$.reason").alias("reason"))
    return {row["reason"]: row["count"] for row in reasons.groupBy("reason").count().collect()}
