"""Job: check each flight, give it names, and send it on to the topic it belongs to.

    flights  ->  flights.on-time     it arrived, less than 15 minutes after schedule
                 flights.delayed     it arrived 15 minutes or more after schedule, or it left
                                     and no arrival delay is known (diverted, not reported)
                 flights.cancelled   it never left
                 flights.rejected    it breaks a rule; with the reason, and the text as it came

A flight goes on with the key it came with and as JSON with all its fields, `airline_name`,
`origin_name`, `dest_name`, `event_time` (scheduled departure, UTC), `route`, and `source` (topic,
partition and offset it came from). A rejected record holds `reason`, `detail`, `source` and
`raw`; where the bytes are not UTF-8 also `raw_base64`, which is exact.

Every record of the source goes to exactly one topic, and which one depends on nothing but the
record. Spark's sink is at-least-once: after a batch was interrupted, its records may be there
twice. So each carries the header `source` (`flights/0/123`), equal for equal copies: who needs
each flight once counts or keeps distinct sources, as `tally` does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import spark_jobs.extra  # noqa: F401 - first of all: it says what is not installed

# isort: split
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.errors import exit_code_of
from spark_jobs.flights import FIELDS
from spark_jobs.options import TopicName, parse_options
from spark_jobs.parsed_flights import PRODUCE_HINT, FlightsOptions, parsed_flights
from spark_jobs.rules import REJECTED, ROUTES, route_sql
from spark_jobs.session import spark_session
from spark_jobs.streams import read_stream, run, start_query
from spark_jobs.topics import open_topics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql.streaming.query import StreamingQuery

NAME = "route_flights"
SOURCE_HEADER = "source"


class RouteOptions(FlightsOptions):
    """Options of the routing job."""

    target_prefix: TopicName = "flights"
    """flights go to PREFIX.on-time, PREFIX.delayed, PREFIX.cancelled and PREFIX.rejected"""

    def targets(self) -> dict[str, str]:
        """Return the topic of each route."""
        return {route: f"{self.target_prefix}.{route}" for route in ROUTES}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    description = (__doc__ or "").partition("\n")[0]
    options = parse_options(RouteOptions, argv, NAME, description)
    with spark_session(options, NAME) as spark:
        rows = run([start(spark, options)], options)
    print(f"{NAME}: {rows[NAME]:,} records routed")
    return 0


def start(spark: SparkSession, options: RouteOptions) -> StreamingQuery:
    """Start the query, creating the target topics that are not there."""
    with open_topics(spark, options) as topics:
        topics.require(options.topic, PRODUCE_HINT)
        topics.create_missing(options.targets().values(), options.partitions, {})
    parsed = parsed_flights(spark, read_stream(spark, options, options.topic))
    return start_query(routed(parsed, options), options, NAME)


def routed(parsed: DataFrame, options: RouteOptions) -> DataFrame:
    """Return the records to write: key, value, topic and headers."""
    route = F.expr(
        f"CASE WHEN rejection IS NOT NULL THEN '{REJECTED}' "
        f"ELSE {route_sql(options.delayed_from_minutes)} END"
    )
    return parsed.withColumn("route", route).select(
        "key",
        F.expr(f"CASE WHEN route = '{REJECTED}' THEN {_REJECTED_JSON} ELSE {_FLIGHT_JSON} END")
        .cast("binary")
        .alias("value"),
        F.concat(F.lit(f"{options.target_prefix}."), "route").alias("topic"),
        F.expr(_HEADERS).alias("headers"),
    )


_SOURCE = "named_struct('topic', topic, 'partition', partition, 'offset', offset)"
_KEEP_NULLS = "map('ignoreNullFields', 'false', 'timestampFormat', \"yyyy-MM-dd'T'HH:mm:ssX\")"
_NAMES = ("airline_name", "origin_name", "dest_name", "event_time", "route")
_FLIGHT_PAIRS = ", ".join(f"'{name}', {name}" for name in (*(f.name for f in FIELDS), *_NAMES))
_FLIGHT_JSON = f"to_json(named_struct({_FLIGHT_PAIRS}, 'source', {_SOURCE}), {_KEEP_NULLS})"
_REJECTED_JSON = (
    "to_json(named_struct('reason', rejection.reason, 'detail', rejection.detail, "
    f"'source', {_SOURCE}, 'raw', make_valid_utf8(text), "
    "'raw_base64', CASE WHEN NOT is_valid_utf8(text) THEN base64(value) END), "
    f"{_KEEP_NULLS})"
)
_HEADERS = (
    f"array(named_struct('key', '{SOURCE_HEADER}', "
    "'value', cast(concat_ws('/', topic, partition, offset) AS binary)))"
)

if __name__ == "__main__":
    sys.exit(main())
