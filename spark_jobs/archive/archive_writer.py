"""Taking a batch into an archive, so that each record is in it once, whatever happened before.

What makes it exactly-once is the record's own identity, its partition and offset, and not the
number of the batch. A batch whose offsets lie beyond all that were ever taken is new. One that
does not is compared with the rows that are there: what is archived already is left out. So a
batch that Spark repeats after a crash adds nothing, and neither does a new checkpoint, an old one
that was restored, a backfill, or a second job beside the first.

A row that is there with another content means that the topic is not the one that was archived:
then the job ends, and says which record it is.

Rejects are sent before the batch counts. They may be sent again with it, with an equal header
`source`, and are never lost.
"""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.archive.archive_directory import ArchiveDirectory, Pending
from spark_jobs.archive.archive_reader import read_rows
from spark_jobs.definitions.rejects import HEADERS_SQL
from spark_jobs.errors import JobError
from spark_jobs.spark.streams import write_batch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame

    from spark_jobs.options import SparkOptions

PARQUET = {"compression": "zstd"}
TIMESTAMPS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
"""The type that is in Parquet's specification; Spark's own default is not."""


class Brought(NamedTuple):
    """What a batch has of one partition."""

    first: int
    last: int
    records: int
    rejected: int


def archive_batch(
    rows: DataFrame, directory: ArchiveDirectory, options: SparkOptions, rejects: str | None
) -> None:
    """Take the rows (`archive_rows`) that the archive does not have yet; send rejects.

    Returns when they count and are in their places. `rejects` is the topic for rejects, if any.
    """
    cached = rows.persist()
    try:
        with directory.writing(), ExitStack() as reading:
            directory.finish_publishing()
            directory.sweep(directory.staged)
            brought = _brought(rows)
            if not brought:
                return
            if _may_be_there(brought, directory.ledger().taken):
                reading.enter_context(directory.reading())
                rows = _not_there(rows, directory, brought)
            if rejects is not None and any(part.rejected for part in brought.values()):
                write_batch(_rejects(rows, rejects), options)
            staged = _stage(rows, directory, options)
            ranges = {number: (part.first, part.last) for number, part in brought.items()}
            directory.publish(ranges, staged)
    finally:
        cached.unpersist()


def write_rows(rows: DataFrame, path: Path, tasks: int, rows_per_file: int = 0) -> None:
    """Write rows as files by date and hour: one per hour, or as many as `rows_per_file` makes."""
    for name, value in TIMESTAMPS.items():
        rows.sparkSession.conf.set(name, value)
    rows = rows.repartition(tasks, "event_date", "event_hour")
    rows = rows.sortWithinPartitions("event_date", "event_hour", "partition", "offset")
    writer = rows.write.partitionBy("event_date", "event_hour").options(**PARQUET)
    writer = writer.option("maxRecordsPerFile", rows_per_file)
    writer.parquet(str(path))


def _brought(rows: DataFrame) -> dict[int, Brought]:
    counts = rows.groupBy("partition").agg(
        F.min("offset"), F.max("offset"), F.count(F.lit(1)), F.count("reject")
    )
    return {row[0]: Brought(*row[1:]) for row in counts.collect()}


def _may_be_there(brought: Mapping[int, Brought], taken: Mapping[int, tuple[int, int]]) -> bool:
    return any(
        number in taken and part.first <= taken[number][1] and part.last >= taken[number][0]
        for number, part in brought.items()
    )


def _not_there(
    rows: DataFrame, directory: ArchiveDirectory, brought: Mapping[int, Brought]
) -> DataFrame:
    """Leave out rows that the archive has; raise `JobError` if it has others in their place."""
    ranges = " OR ".join(
        f"(partition = {number} AND offset BETWEEN {part.first} AND {part.last})"
        for number, part in brought.items()
    )
    there = read_rows(rows.sparkSession, directory).where(ranges)
    there = there.select("partition", "offset", "timestamp", "value_crc32").alias("there")
    both = rows.alias("here").join(there, ["partition", "offset"])
    other = both.where(
        "here.timestamp != there.timestamp OR NOT here.value_crc32 <=> there.value_crc32"
    ).first()
    if other is not None:
        raise JobError(
            f"{directory.path} holds another record for partition {other['partition']}, offset "
            f"{other['offset']}: the topic was deleted and made anew, or is another cluster's. "
            "Use another --directory"
        )
    return rows.join(there.select("partition", "offset"), ["partition", "offset"], "left_anti")


def _rejects(rows: DataFrame, topic: str) -> DataFrame:
    return rows.where("reject IS NOT NULL").select(
        F.col("reject_key").alias("key"),
        F.col("reject").cast("binary").alias("value"),
        F.expr(HEADERS_SQL).alias("headers"),
        F.lit(topic).alias("topic"),
    )


def _stage(rows: DataFrame, directory: ArchiveDirectory, options: SparkOptions) -> Pending:
    """Write files that do not count yet. A dead driver's tasks may live on: no name is reused."""
    name = secrets.token_hex(8)
    path = directory.staged / name
    valid = rows.where("reject IS NULL").drop("reject", "reject_key")
    write_rows(valid, path, options.shuffle_partitions)
    files = sorted(str(file.relative_to(path)) for file in path.glob("event_date=*/*/*.parquet"))
    return Pending(name, tuple(files))
