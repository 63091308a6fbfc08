"""Job: count and sum records in event-time windows of several lengths.

    TOPIC  ->  topic of the aggregate      one record per window and group, keyed by both
           ->  TABLE/NAME/latest/*.jsonl   the same windows as a table, one version of it
           ->  TOPIC.rejected              what breaks a rule, unless --no-keep-rejects

What is counted stands in the definition (`window_aggregates`); with the built-in one, `flights`,
how late flights leave and arrive per airport (`flights.delays-by-airport`) and per weather at the
airport in the scheduled hour of departure (`flights.delays-by-weather`), by hour and by day.

A window is written each time that a batch changes it, under the same key, and its topic is
compacted: the last record of a key is the window. The table has the same JSON objects as its rows
(`tables` says how it is read, and why each version of it is whole). Both are exact after any
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
from spark_jobs.definitions.window_aggregates import AggregateSection, window_rows
from spark_jobs.errors import BadOptionError, exit_code_of
from spark_jobs.kafka.topics import COMPACTED, open_topics
from spark_jobs.options import TOPIC_HINT, DefinitionOptions, parse_options
from spark_jobs.spark.checkpoints import claim_checkpoint
from spark_jobs.spark.spark_session import spark_session
from spark_jobs.spark.streams import (
    read_stream,
    records_of,
    run,
    start_batches,
    start_query,
    write_batch,
)
from spark_jobs.spark.table_ownership import BackfillTable, StreamTable, lines_of
from spark_jobs.spark.tables import Shape, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_jobs.definitions.window_aggregates import Aggregate
    from spark_jobs.spark.table_ownership import KeptTable

NAME = "aggregate"
REJECTS_QUERY = "aggregate-rejects"


class AggregateOptions(DefinitionOptions):
    """Options of the aggregating job."""

    only: tuple[str, ...] = ()
    """names of aggregates to run; all in the definition if not given"""

    table: Path = Path("data/spark_jobs/tables")
    """directory for the tables; each aggregate has a subdirectory"""

    keep_rejects: bool = True
    """send records that break a rule to the rejects topic; unnecessary if `route` does"""

    def aggregates(self) -> dict[str, Aggregate]:
        """Return the aggregates to run by name; raise `BadOptionError` for an unknown one."""
        known = self.load_definition().section("aggregate", AggregateSection).root
        unknown = sorted(set(self.only) - set(known))
        if unknown:
            raise BadOptionError(
                f"--only: there is no aggregate '{unknown[0]}', there are: {', '.join(known)}"
            )
        return {name: known[name] for name in self.only or known}

    def table_of(self, name: str) -> Table:
        """Return the table of an aggregate."""
        group_by = self.aggregates()[name].group_by
        return Table(self.table / name, Shape(("granularity", "start", *group_by), "start"))


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
            claim_checkpoint(options.checkpoint / query_name(name), identity | _sums(aggregate))
            topics.create_missing([aggregate.topic], options.partitions, COMPACTED)
        if options.keep_rejects:
            identity = topics.identity(REJECTS_QUERY, options.topic)
            claim_checkpoint(options.checkpoint / REJECTS_QUERY, identity)
            topics.create_missing([options.rejects()], options.partitions, {})
    queries = [_start(spark, options, name) for name in options.aggregates()]
    if options.keep_rejects:
        rows = parsed(spark, _stream(spark, options), options.load_definition())
        records = rejects(rows, NAME, options.rejects())
        queries.append(start_query(records, options, REJECTS_QUERY))
    return queries


def _start(spark: SparkSession, options: AggregateOptions, name: str) -> StreamingQuery:
    query = query_name(name)
    table = StreamTable(options.table_of(name), options.checkpoint / query)

    def take_windows(windows: DataFrame, batch: int) -> None:
        _take_windows(windows, batch, options, name, table)

    definition = options.load_definition()
    rows = parsed(spark, _stream(spark, options), definition)
    windows = window_rows(spark, rows, definition, name)
    return start_batches(windows, options, query, take_windows, output_mode="update")


def take(spark: SparkSession, records: DataFrame, options: AggregateOptions) -> None:
    """Put a batch of Kafka records into windows, which then hold what the batch does.

    The tables must be others than a stream's.
    """
    definition = options.load_definition()
    with open_topics(spark, options) as topics:
        wanted = [aggregate.topic for aggregate in options.aggregates().values()]
        topics.create_missing(wanted, options.partitions, COMPACTED)
        if options.keep_rejects:
            topics.create_missing([options.rejects()], options.partitions, {})
    rows = parsed(spark, records, definition)
    tables = {name: BackfillTable(options.table_of(name)) for name in options.aggregates()}
    for name, table in tables.items():
        _take_windows(window_rows(spark, rows, definition, name), 0, options, name, table)
    if options.keep_rejects:
        write_batch(rejects(rows, NAME, options.rejects()), options)


def _stream(spark: SparkSession, options: AggregateOptions) -> DataFrame:
    return read_stream(spark, options, options.topic)


def _take_windows(
    windows: DataFrame, batch: int, options: AggregateOptions, name: str, table: KeptTable
) -> None:
    """Write windows to their topic and table; the same batch may come twice."""
    topic = options.aggregates()[name].topic
    windows.persist()
    try:
        write_batch(records_of(windows, topic), options)
        table.commit(batch, lines_of(windows))
    finally:
        windows.unpersist()


def _sums(aggregate: Aggregate) -> dict[str, str]:
    """Return what a checkpoint's state was made with, and must not change."""
    return {
        "granularities": ", ".join(aggregate.granularities),
        "group_by": ", ".join(aggregate.group_by),
        "measures": "; ".join(f"{name} = {sql}" for name, sql in aggregate.measures.items()),
    }


if __name__ == "__main__":
    sys.exit(main())
