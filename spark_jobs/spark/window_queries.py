"""Windows of an aggregate, to its topic and its table: what the jobs that count share.

A window is written each time that a batch changes it, under the same key; the topic is compacted,
and the table replaces the row. So both are exact after any interruption: a batch that comes again
comes to the same windows, which the topic may then have twice, with equal values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.definitions.window_aggregates import AggregateSection, window_rows
from spark_jobs.errors import BadOptionError
from spark_jobs.options import TableOptions
from spark_jobs.spark.streams import persisted, records_of, start_batches, write_batch
from spark_jobs.tables.kept_table import KeptTable
from spark_jobs.tables.lakehouse_table import Merge

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_jobs.definitions.window_aggregates import Aggregate


class WindowOptions(TableOptions):
    """Options of a job that counts by the definition's aggregates."""

    only: tuple[str, ...] = ()
    """names of aggregates to run; all in the definition if not given"""

    def aggregates(self) -> dict[str, Aggregate]:
        """Return the aggregates to run by name; raise `BadOptionError` for an unknown one."""
        known = self.load_definition().section("aggregate", AggregateSection).root
        unknown = sorted(set(self.only) - set(known))
        if unknown:
            raise BadOptionError(
                f"--only: there is no aggregate '{unknown[0]}', there are: {', '.join(known)}"
            )
        return {name: known[name] for name in self.only or known}

    def kept_table(self, name: str, checkpoint: Path | None) -> KeptTable:
        """Return the table of an aggregate, kept by the query of a checkpoint or by backfills."""
        how = Merge(self.aggregates()[name].key(), instant="start")
        return KeptTable(self.table / name, self.format, how, checkpoint)


def start_windows(
    spark: SparkSession, rows: DataFrame, options: WindowOptions, name: str, query: str
) -> StreamingQuery:
    """Start counting parsed records by an aggregate."""
    table = options.kept_table(name, options.checkpoint / query)
    table.require_keeper(spark)
    windows = window_rows(spark, rows, options.load_definition(), name)

    def take_batch(windows: DataFrame, batch: int) -> None:
        _take(windows, batch, options, name, table)

    return start_batches(windows, options, query, take_batch, output_mode="update")


def take_windows(spark: SparkSession, rows: DataFrame, options: WindowOptions, name: str) -> None:
    """Count a batch of parsed records: windows then hold what it does.

    The table must be another than a stream's.
    """
    table = options.kept_table(name, None)
    table.require_keeper(spark)
    windows = window_rows(spark, rows, options.load_definition(), name)
    _take(windows, 0, options, name, table)


def made_with(aggregate: Aggregate) -> dict[str, str]:
    """Return what a checkpoint's state was made with, and must not change."""
    return {
        "granularities": ", ".join(aggregate.granularities),
        "group_by": ", ".join(aggregate.group_by),
        "measures": "; ".join(f"{name} = {sql}" for name, sql in aggregate.measures.items()),
    }


def _take(
    windows: DataFrame, batch: int, options: WindowOptions, name: str, table: KeptTable
) -> None:
    topic = options.aggregates()[name].topic
    with persisted(windows):
        write_batch(records_of(windows, table.how.key, topic), options)
        table.take(windows, batch)
