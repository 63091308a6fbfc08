"""Small files of an hour become one, while the archive is added to and read.

The unit is an hour's directory. For a group of hours Spark writes the rows of their small files
anew, beside the archive; what was written is compared with what was read. Then, one hour after
the other, the new directory gets hard links to the hour's other files (those that are large
already, or came meanwhile) and changes places with the old one, in one step of the file system:

    1  rows of small files  ->  _archive/compacted/TOKEN/event_date=…/event_hour=…/part-….parquet
    2  links to the other files of the hour are added there
    3  _archive/compacted/TOKEN/…/event_hour=05   <->   event_date=…/event_hour=05
    4  _archive/compacted/TOKEN, which holds what was replaced, is removed

Only step 3 changes the archive. Whoever dies before it has changed nothing, and after it
everything; what is left over the next compaction removes. So a listing of the directory finds each
record once before step 3 and after it, by whatever program. One that is under way meanwhile may
miss an hour, or name files that are gone: step 3 waits for readers who hold
`ArchiveDirectory.reading`. Steps 2 and 3 keep out batches that are being published.
"""

from __future__ import annotations

import secrets
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.archive.archive_directory import files_of, require_archive
from spark_jobs.archive.archive_rows import ORIGIN, ROW_CRC32, schema_sql
from spark_jobs.archive.archive_writer import write_rows
from spark_jobs.archive.directory_exchange import exchange, require_exchange
from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.archive.archive_directory import ArchiveDirectory

GROUP_BYTES = 1 << 30
GROUP_HOURS = 500
"""How much one run of Spark compacts: as many hours as stay below these, or a single larger one."""

FEWEST_FILES = 2

SMALL_PART = 0.5
"""A file is small below this part of the wanted size."""


@dataclass(slots=True)
class Compacted:
    """What a compaction came to."""

    hours: int = 0
    files_before: int = 0
    files_after: int = 0
    rows: int = 0

    def __str__(self) -> str:
        """Return it as a sentence."""
        return (
            f"{self.files_before:,} files of {self.hours:,} hours are now {self.files_after:,}; "
            f"they hold {self.rows:,} rows"
        )


@dataclass(frozen=True, slots=True)
class _Hour:
    path: Path
    small: tuple[Path, ...]
    bytes: int
    """Of the small files."""


class _Content(NamedTuple):
    """What tells whether two sets of files hold the same rows of an hour."""

    rows: int
    checksum: int


def compact(
    spark: SparkSession,
    directory: ArchiveDirectory,
    file_bytes: int,
    reader_seconds: float,
    before: Callable[[str], None] = lambda _step: None,
) -> Compacted:
    """Compact every hour that has two small files or more, towards files of `file_bytes`.

    Waits for readers `reader_seconds` at most each time; `before` is told each step that changes
    files before it is done.
    """
    require_archive(directory)
    outcome = Compacted()
    with directory.compacting():
        directory.sweep(directory.compacted)
        require_exchange(directory.compacted)
        for group in [*_groups(directory, file_bytes)]:
            made = directory.compacted / secrets.token_hex(8)
            before("write")
            outcome.rows += _write(spark, directory, group, made, file_bytes)
            for hour in group:
                new = made / hour.path.relative_to(directory.path)
                outcome.files_after += len(files_of(new))
                _put_in_place(directory, hour, new, reader_seconds, before)
                outcome.hours += 1
                outcome.files_before += len(hour.small)
            before("remove")
            shutil.rmtree(made)
    return outcome


def _groups(directory: ArchiveDirectory, file_bytes: int) -> Iterator[list[_Hour]]:
    group: list[_Hour] = []
    for path in directory.hours():
        sizes = {file: file.stat().st_size for file in files_of(path)}
        small = {file: size for file, size in sizes.items() if size < file_bytes * SMALL_PART}
        if len(small) < FEWEST_FILES:
            continue
        hour = _Hour(path, tuple(small), sum(small.values()))
        if len(group) == GROUP_HOURS or sum(h.bytes for h in (*group, hour)) > GROUP_BYTES:
            yield group
            group = []
        group.append(hour)
    if group:
        yield group


def _write(
    spark: SparkSession,
    directory: ArchiveDirectory,
    group: Sequence[_Hour],
    made: Path,
    file_bytes: int,
) -> int:
    """Write the rows of small files anew, make sure that they are the same; return how many."""
    columns = directory.ledger().columns
    schema = schema_sql(columns)
    files = [str(file) for hour in group for file in hour.small]
    old = spark.read.schema(schema).option("basePath", str(directory.path)).parquet(*files)
    expected = _contents(old, columns)
    rows = sum(content.rows for content in expected.values())
    rows_per_file = max(1, rows * file_bytes // max(1, sum(hour.bytes for hour in group)))
    tasks = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    hour = F.lpad(F.col("event_hour").cast("string"), 2, "0")
    write_rows(old.withColumn("event_hour", hour), made, tasks, rows_per_file)
    for checksum in made.rglob(".*.crc"):  # the archive's other files have none
        checksum.unlink()
    found = _contents(spark.read.schema(schema).parquet(str(made)), columns)
    if found != expected:
        raise JobError(f"{made} does not hold what it was made of; {directory.path} is as it was")
    return rows


def _contents(rows: DataFrame, columns: Mapping[str, str]) -> dict[tuple[object, int], _Content]:
    names = [*ORIGIN, *columns, ROW_CRC32]
    found = rows.groupBy("event_date", "event_hour").agg(
        F.count(F.lit(1)), F.sum(F.xxhash64(*names).cast("decimal(38,0)"))
    )
    return {(date, hour): _Content(*content) for date, hour, *content in found.collect()}


def _put_in_place(
    directory: ArchiveDirectory,
    hour: _Hour,
    new: Path,
    reader_seconds: float,
    before: Callable[[str], None],
) -> None:
    before("place")
    with directory.replacing(reader_seconds), directory.changing():
        now = set(files_of(hour.path))
        if not now.issuperset(hour.small):
            raise JobError(f"{hour.path}: files were removed while they were compacted")
        before("link")
        for other in sorted(now.difference(hour.small)):
            (new / other.name).hardlink_to(other)
        before("exchange")
        exchange(new, hour.path)
