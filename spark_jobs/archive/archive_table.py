"""The archive's table: whose it is, which offsets it has taken, and its rows by event time.

Each batch is one commit of the writer `archive`, numbered one after the other whoever makes it: the
job, a backfill, a second job. Its notes say what has been taken when it is in:

    taken   {"0": [0, 899], "1": [12, 640]}     lowest and highest offset by partition, rejects
    batch   ["9f3c…", 4, {"0": [600, 899]}]     query, number, offsets of it, if it is a stream's
    lost    [[0, 900, 949]]                     partition and offsets gone before they were read

So a job knows from the table's history alone whether a batch is new. When the history no longer
goes back to a commit, the rows themselves tell it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.archive.archive_rows import EVENT_DATE, every_column
from spark_jobs.errors import BadOptionError
from spark_jobs.tables.lakehouse_table import Shape
from spark_jobs.tables.open_tables import open_or_create, open_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.tables.lakehouse_table import LakehouseTable
    from spark_jobs.tables.table_format import TableFormat

WRITER = "archive"
TAKEN, LOST = "taken", "lost"
FLAG = "--directory"
Ranges = dict[int, tuple[int, int]]
"""Lowest and highest offset by partition."""


def open_archive(
    spark: SparkSession,
    directory: Path,
    kind: TableFormat,
    topic: str,
    fields: Mapping[str, str],
) -> LakehouseTable:
    """Return the archive of a topic, made if it is not there, with columns for all fields.

    Raises `BadOptionError` when it is another topic's, or holds a column with another type.
    """
    if (directory / "_archive" / "archive.json").exists():
        raise BadOptionError(
            f"{FLAG}: {directory} is an archive of an earlier version, Parquet by hour: name "
            f"another directory, and take this one over with --take-over {directory}"
        )
    shape = Shape(every_column(fields), (EVENT_DATE,), {"topic": topic})
    table = open_or_create(spark, FLAG, directory, kind, shape)
    require_topic(table, topic)
    return table


def require_topic(table: LakehouseTable, topic: str) -> None:
    """Raise `BadOptionError` unless a table is the archive of a topic."""
    archived = table.properties().get("topic")
    if archived is None:
        raise BadOptionError(f"{FLAG}: {table.directory} is a table, but no archive of a topic")
    if archived != topic:
        raise BadOptionError(
            f"{FLAG}: {table.directory} is an archive of the topic '{archived}', and here it is "
            f"'{topic}': use another directory"
        )


def taken_offsets(table: LakehouseTable, notes: Mapping[str, Any]) -> Ranges:
    """Return what all batches have brought, rejected records too; `notes` are the newest."""
    if TAKEN in notes:
        return {int(p): (first, last) for p, (first, last) in notes[TAKEN].items()}
    found = table.read().groupBy("partition").agg(F.min("offset"), F.max("offset"))
    return {row[0]: (row[1], row[2]) for row in found.collect()}


def read_archive(
    spark: SparkSession, path: Path, begin: datetime | None = None, end: datetime | None = None
) -> DataFrame:
    """Return the archived rows with event times from `begin` to before `end`, in UTC by default."""
    rows = open_table(spark, FLAG, path).read()
    if begin is not None:
        begin = _utc(begin)
        rows = rows.where(F.col(EVENT_DATE) >= F.lit(begin.date()))
        rows = rows.where(F.col("event_time") >= F.lit(begin))
    if end is not None:
        end = _utc(end)
        rows = rows.where(F.col(EVENT_DATE) <= F.lit(end.date()))
        rows = rows.where(F.col("event_time") < F.lit(end))
    return rows


def _utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
