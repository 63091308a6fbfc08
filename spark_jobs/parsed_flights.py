"""Flights out of raw records: their fields, names, event time, and what is wrong with them.

Every job on flights starts here, so that all agree on what a valid flight is. The columns made
are those that `rules` lists. All of it is Spark SQL: no Python runs on the executors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.flights import FIELDS, airlines, airports
from spark_jobs.options import StreamOptions, TopicName
from spark_jobs.rules import rejection_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PRODUCE_HINT = "fill it with `python -m spark_jobs.produce_flights`, or name another with --topic"


class FlightsOptions(StreamOptions):
    """Options of every job that reads flights."""

    topic: TopicName = "flights"
    """topic to read"""

    delayed_from_minutes: Annotated[int, Field(ge=1)] = 15
    """least arrival delay that makes a flight delayed"""


def parsed_flights(spark: SparkSession, records: DataFrame) -> DataFrame:
    """Add to each record its fields, names, event time and `rejection` (NULL when valid)."""
    flights = (
        records.withColumn("text", F.col("value").cast("string"))
        .withColumn("document", F.expr("try_parse_json(concat('[', text, ']'))"))
        .withColumn("types", F.expr("schema_of_variant(document)"))
        .withColumn("flight_fields", F.expr(f"try_variant_get(document, '$[0]', '{_STRUCT}')"))
        .select("*", "flight_fields.*")
        .withColumn("hour_time", F.expr(_HOUR_TIME))
        .withColumn("event_time", F.expr("hour_time + make_dt_interval(0, 0, minute, 0)"))
    )
    return _with_names(spark, flights).withColumn("rejection", F.expr(rejection_sql()))


_STRUCT = f"struct<{','.join(f'{field.name}:{field.json_type.lower()}' for field in FIELDS)}>"
_HOUR_TIME = """try_to_timestamp(time_hour, "yyyy-MM-dd'T'HH:mm:ssX")"""


def _with_names(spark: SparkSession, flights: DataFrame) -> DataFrame:
    for rows, code, name in (
        (airlines(), "carrier", "airline_name"),
        (airports(), "origin", "origin_name"),
        (airports(), "dest", "dest_name"),
    ):
        table = spark.createDataFrame(rows, f"{code} string, {name} string")
        flights = flights.join(F.broadcast(table), code, "left")
    return flights
