"""Rows of an archive for people and other programs: JSON lines or CSV, in order of event time."""

from __future__ import annotations

import csv
import json
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.archive.archive_directory import ArchiveDirectory
from spark_jobs.archive.archive_reader import read_archive
from spark_jobs.definitions.rejects import KEEP_NULLS
from spark_jobs.paths import require_file, writing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def export(
    spark: SparkSession,
    path: Path,
    begin: datetime | None,
    end: datetime | None,
    output: Path | None,
) -> int:
    """Write the rows of a time range to a file by its ending, or print them; return how many.

    Times are ISO, in UTC. A key that is text is given as text, and others in base64. The file is
    there when it is whole.
    """
    if output is not None:
        require_file("--output", output)
    with ArchiveDirectory(path).reading():
        rows = _readable(read_archive(spark, path, begin, end))
        if output is None:
            return _print(rows)
        unfinished = output.with_name(f".{output.name}.unfinished")
        with writing("--output", output):
            with unfinished.open("w", encoding="utf-8", newline="") as file:
                write = _write_csv if output.suffix == ".csv" else _write_lines
                count = write(rows, file)
            unfinished.replace(output)
        return count


def _readable(rows: DataFrame) -> DataFrame:
    key = "CASE WHEN is_valid_utf8(cast(key AS string)) THEN cast(key AS string) "
    rows = rows.withColumn("key", F.expr(f"{key} ELSE base64(key) END"))
    rows = rows.orderBy("event_time", "partition", "offset")
    return rows.select(F.expr(f"to_json(struct(*), {KEEP_NULLS})").alias("row"))


def _lines(rows: DataFrame) -> Iterator[str]:
    for row in rows.toLocalIterator():
        yield row["row"]


def _print(rows: DataFrame) -> int:
    try:
        with _own_stdout() as file:
            return _write_lines(rows, file)
    except BrokenPipeError:  # who reads has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


@contextmanager
def _own_stdout() -> Iterator[TextIO]:
    yield sys.stdout
    sys.stdout.flush()


def _write_lines(rows: DataFrame, file: TextIO) -> int:
    count = 0
    for count, line in enumerate(_lines(rows), 1):  # noqa: B007 - the last number is the count
        file.write(line + "\n")
    return count


def _write_csv(rows: DataFrame, file: TextIO) -> int:
    writer = None
    count = 0
    for count, line in enumerate(_lines(rows), 1):  # noqa: B007 - the last number is the count
        row = json.loads(line)
        if writer is None:
            writer = csv.DictWriter(file, list(row))
            writer.writeheader()
        writer.writerow(row)
    return count
