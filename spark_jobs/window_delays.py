"""Job: how late flights leave and arrive, per airport and hour of scheduled departure.

    flights  ->  flights.delays-by-hour     one record per airport and hour, keyed by both

The windows are of event time, the scheduled departure, not of when a record arrived. A window
is written each time that a batch changes it, under the same key, and the topic is compacted:
the last record of a key is the window. Writing a batch again writes the same records again, so
an interruption changes no window.

The job reads the source, not the routed topics: Spark's state remembers exactly which offsets
it has counted, whereas the routed topics may hold copies. The rules that decide what is a valid
flight are the same; rejected records are left out before the watermark is taken, so that a
nonsensical date cannot push it on.

The watermark trails the latest event time seen by `--watermark`; a flight for a window that
ended before it is too late and is left out. Batches must therefore not let partitions drift
apart by more than that: without `--max-offsets-per-trigger` a catching-up batch takes in all there
is and nothing is too late. `pipeline` checks the windows' sum against the flights.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import spark_jobs.extra  # noqa: F401 - first of all: it says what is not installed

# isort: split
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.errors import exit_code_of
from spark_jobs.options import Duration, TopicName, parse_options
from spark_jobs.parsed_flights import PRODUCE_HINT, FlightsOptions, parsed_flights
from spark_jobs.rules import CANCELLED, DELAYED, route_sql
from spark_jobs.session import spark_session
from spark_jobs.streams import read_stream, run, start_query
from spark_jobs.topics import open_topics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "window_delays"

COMPACTED = {"cleanup.policy": "compact"}


class WindowOptions(FlightsOptions):
    """Options of the windowing job."""

    windows_topic: TopicName = "flights.delays-by-hour"
    """topic for the windows; created compacted when it is not there"""

    window: Duration = "1 hour"
    """length of a window"""

    watermark: Duration = "1 day"
    """how far behind the latest event time a flight may be and still count"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    description = (__doc__ or "").partition("\n")[0]
    options = parse_options(WindowOptions, argv, NAME, description)
    with spark_session(options, NAME) as spark:
        rows = run([start(spark, options)], options)
    print(f"{NAME}: {rows[NAME]:,} records taken into windows of {options.window}")
    return 0


def start(spark: SparkSession, options: WindowOptions) -> StreamingQuery:
    """Start the query, creating the topic of the windows when it is not there."""
    with open_topics(spark, options) as topics:
        topics.require(options.topic, PRODUCE_HINT)
        topics.create_missing([options.windows_topic], options.partitions, COMPACTED)
    parsed = parsed_flights(spark, read_stream(spark, options, options.topic))
    return start_query(windows(parsed, options), options, NAME, output_mode="update")


def windows(parsed: DataFrame, options: WindowOptions) -> DataFrame:
    """Return the records to write, one per airport and window: key, value and topic."""
    valid = parsed.where("rejection IS NULL").withWatermark("event_time", options.watermark)
    route = F.expr(route_sql(options.delayed_from_minutes))
    counted = valid.groupBy(
        F.window("event_time", options.window).alias("window"), "origin", "origin_name"
    ).agg(
        F.count(F.lit(1)).alias("flights"),
        F.count_if(route == CANCELLED).alias("cancelled"),
        F.count_if(route == DELAYED).alias("delayed"),
        F.count_if(F.expr("dep_time IS NOT NULL AND arr_delay IS NULL")).alias("without_arrival"),
        F.sum("dep_delay").alias("dep_delay_sum"),
        F.count("dep_delay").alias("dep_delay_count"),
        F.sum("arr_delay").alias("arr_delay_sum"),
        F.count("arr_delay").alias("arr_delay_count"),
        F.max("arr_delay").alias("arr_delay_max"),
    )
    key = F.concat_ws(" ", "origin", F.date_format("window.start", _INSTANT))
    return counted.select(
        key.cast("binary").alias("key"),
        F.expr(_WINDOW_JSON).cast("binary").alias("value"),
        F.lit(options.windows_topic).alias("topic"),
    )


_INSTANT = "yyyy-MM-dd'T'HH:mm:ssX"
_MEASURES = (
    "origin",
    "origin_name",
    "flights",
    "cancelled",
    "delayed",
    "without_arrival",
    "dep_delay_sum",
    "dep_delay_count",
    "arr_delay_sum",
    "arr_delay_count",
    "arr_delay_max",
)
_WINDOW_JSON = (
    "to_json(named_struct('start', window.start, 'end', window.end, "
    + ", ".join(f"'{name}', {name}" for name in _MEASURES)
    + f"), map('ignoreNullFields', 'false', 'timestampFormat', \"{_INSTANT}\"))"
)

if __name__ == "__main__":
    sys.exit(main())
