"""Job: count and sum records in event-time windows of several lengths.

    TOPIC  ->  topic of the aggregate      one record per window and group, keyed by both
           ->  TABLE/NAME                  the same windows as a table of Delta Lake or Iceberg
           ->  TOPIC.rejected              what breaks a rule, unless --no-keep-rejects

What is counted stands in the definition (`window_aggregates`); with the built-in one, `flights`,
how late flights leave and arrive per airport (`flights.delays-by-airport`) and per weather at the
airport in the scheduled hour of departure (`flights.delays-by-weather`), by hour and by day.

A window is written each time that a batch changes it, under the same key, and its topic is
compacted: the last record of a key is the window. The table's rows have the same columns
(`--format`; any program that reads it sees each batch whole). Both are exact after any
interruption: a batch that was interrupted is counted again from the state before it and comes to
the same windows; in the topic they may then stand twice, with equal values.

Rejected records are left out before the watermark is taken, so that a nonsensical date cannot push
it on. The watermark trails the latest event time of the batches before; a valid record for a window
that ended before it is too late and left out of that window. How many were is told at the end and
in the metrics (`dropped_by_watermark`): counted are the late windows of a batch per group, after
its records were put together, so one may stand for several records. Batches must not let
partitions drift apart by more than the watermark: without `--max-offsets-per-trigger` a
catching-up batch takes in all there is, and nothing of it is too late.

Each aggregate is a query of its own with its own checkpoint; `--only NAME` runs some of them. The
job reads the source, not what another job made of it: Spark's state remembers exactly which
offsets it has counted. A checkpoint and its table are kept, or deleted, together.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from spark_jobs.definitions.rejects import rejects
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.errors import exit_code_of
from spark_jobs.kafka.topics import COMPACTED, open_topics
from spark_jobs.options import TOPIC_HINT, parse_options
from spark_jobs.spark.checkpoints import claim_checkpoint
from spark_jobs.spark.spark_session import spark_session
from spark_jobs.spark.streams import read_stream, run, start_query, write_batch
from spark_jobs.spark.window_queries import WindowOptions, made_with, start_windows, take_windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "aggregate"
REJECTS_QUERY = "aggregate-rejects"


class AggregateOptions(WindowOptions):
    """Options of the aggregating job."""

    keep_rejects: bool = True
    """send records that break a rule to the rejects topic; unnecessary if `route` does"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(AggregateOptions, argv, NAME, __doc__)
    options.aggregates()  # a mistake in the file is told before Spark starts
    with spark_session(options, NAME) as spark:
        rows = run(start(spark, options), options)
    for name, aggregate in options.aggregates().items():
        lengths = ", ".join(aggregate.granularities)
        print(f"{NAME}: {rows[query_name(name)]:,} records taken into windows of {lengths}: {name}")
    return 0


def query_name(name: str) -> str:
    """Return the name of an aggregate's query, and of its directory below `--checkpoint`."""
    return f"{NAME}-{name}"


def start(spark: SparkSession, options: AggregateOptions) -> list[StreamingQuery]:
    """Start a query for each aggregate, and one for rejects; create topics that are not there."""
    with open_topics(spark, options) as topics:
        topics.require(options.topic, TOPIC_HINT)
        for name, aggregate in options.aggregates().items():
            identity = topics.identity(query_name(name), options.topic)
            claim_checkpoint(options.checkpoint / query_name(name), identity | made_with(aggregate))
            topics.create_missing([aggregate.topic], options.partitions, COMPACTED)
        if options.keep_rejects:
            identity = topics.identity(REJECTS_QUERY, options.topic)
            claim_checkpoint(options.checkpoint / REJECTS_QUERY, identity)
            topics.create_missing([options.rejects()], options.partitions, {})
    queries = [
        start_windows(spark, _parsed_stream(spark, options), options, name, query_name(name))
        for name in options.aggregates()
    ]
    if options.keep_rejects:
        records = rejects(_parsed_stream(spark, options), NAME, options.rejects())
        queries.append(start_query(records, options, REJECTS_QUERY))
    return queries


def take(spark: SparkSession, records: DataFrame, options: AggregateOptions) -> None:
    """Put a batch of Kafka records into windows, which then hold what the batch does.

    The tables must be others than a stream's.
    """
    with open_topics(spark, options) as topics:
        wanted = [aggregate.topic for aggregate in options.aggregates().values()]
        topics.create_missing(wanted, options.partitions, COMPACTED)
        if options.keep_rejects:
            topics.create_missing([options.rejects()], options.partitions, {})
    rows = parsed(spark, records, options.load_definition())
    for name in options.aggregates():
        take_windows(spark, rows, options, name)
    if options.keep_rejects:
        write_batch(rejects(rows, NAME, options.rejects()), options)


def _parsed_stream(spark: SparkSession, options: AggregateOptions) -> DataFrame:
    return parsed(spark, read_stream(spark, options, options.topic), options.load_definition())


if __name__ == "__main__":
    sys.exit(main())
