"""Reading an archive back, by range of event time.

    with ArchiveDirectory(path).reading():
        rows = read_archive(spark, path, begin, end)
        ...

What is read is what counted at the moment of `read_archive`, whatever is added later; within
`reading` no compaction moves the files away before they are read. Rows of files that were written
before a column was added have NULL in it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.archive.archive_directory import ArchiveDirectory, require_archive
from spark_jobs.archive.archive_rows import schema_sql
from spark_jobs.spark.local_tables import no_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def read_archive(
    spark: SparkSession, path: Path, begin: datetime | None = None, end: datetime | None = None
) -> DataFrame:
    """Return the archived rows with event times from `begin` to before `end`."""
    begin, end = _utc(begin), _utc(end)
    rows = read_rows(spark, ArchiveDirectory(path), begin, end)
    hours = "make_timestamp(year(event_date), month(event_date), day(event_date), event_hour, 0, 0)"
    if begin is not None:
        rows = rows.where(F.expr(hours) >= F.lit(_hour(begin)))
        rows = rows.where(F.col("event_time") >= F.lit(begin))
    if end is not None:
        rows = rows.where(F.expr(hours) <= F.lit(_hour(end)))
        rows = rows.where(F.col("event_time") < F.lit(end))
    return rows


def read_rows(
    spark: SparkSession,
    directory: ArchiveDirectory,
    begin: datetime | None = None,
    end: datetime | None = None,
) -> DataFrame:
    """Return all rows that count now, of the dates from that of `begin` to that of `end`."""
    schema = schema_sql(require_archive(directory).columns)
    with directory.changing():  # Spark lists the files here, and once
        dates = [str(path) for path in directory.dates() if _may_hold(path, begin, end)]
        if not dates:
            return no_rows(spark, schema)
        reader = spark.read.schema(schema).option("basePath", str(directory.path))
        return reader.parquet(*dates)


def _may_hold(path: Path, begin: datetime | None, end: datetime | None) -> bool:
    date = path.name.partition("=")[2]
    if len(date) != len("2013-03-01"):  # of a year beyond 9999
        return True
    after_begin = begin is None or date >= begin.date().isoformat()
    return after_begin and (end is None or date <= end.date().isoformat())


def _utc(time: datetime | None) -> datetime | None:
    if time is None:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _hour(time: datetime) -> datetime:
    return time.replace(minute=0, second=0, microsecond=0)
