"""Job: archive a topic as a table of Delta Lake or Iceberg, partitioned by date of event time.

    TOPIC  ->  DIRECTORY                valid records, a row each
           ->  TOPIC.rejected           what breaks a rule of the definition, with the reason

Dates are of UTC. A record lies in the date of its event time, however late it comes. Each is in the
archive exactly once, through kills at any moment, lost checkpoints and backfills: `archive_writer`
says how, `archive_rows` what a row is. Rejects are sent at least once, and copies have equal
headers `source`.

    python -m spark_jobs archive --directory D              until stopped; with --once, to the end
    python -m spark_jobs archive --directory D --compact    large files of small ones
    python -m spark_jobs archive --directory D --vacuum 168 delete files of versions older than this
    python -m spark_jobs archive --directory D --read-from 2013-03-01 --read-to 2013-03-02T06:00
    python -m spark_jobs archive --directory D --take-over OLD    an archive of before, into D

Compaction may run beside the job, whose batches wait meanwhile, and beside readers, who do not; it
may be killed. Reading prints rows as JSON, a line each; other programs read the table by its
format. None of these needs a broker.

When fields are added to the definition as optional ones, rows of before have NULL in them. A field
that the definition no longer has stays a column. A field cannot change its type.

When the topic is grown by partitions, those are archived from their first record on. When it is
deleted, or loses records before they were archived, the job ends and says so. It goes on without
what was lost with `--on-data-loss record`: the offsets are in the table's history, and `audit`
tells them.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from pydantic import NonNegativeInt, PositiveInt, model_validator
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.archive.archive_rows import archive_rows, field_columns
from spark_jobs.archive.archive_table import FLAG, open_archive, read_archive
from spark_jobs.archive.archive_writer import ArchiveWriter
from spark_jobs.archive.take_over import ledger_of, take_over
from spark_jobs.definitions.rejects import KEEP_NULLS
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.errors import exit_code_of
from spark_jobs.jobs.backfill import Instant  # noqa: TC001 - pydantic looks it up when the job runs
from spark_jobs.kafka.topics import open_topics
from spark_jobs.options import TOPIC_HINT, DefinitionOptions, parse_options
from spark_jobs.spark.checkpoints import claim_checkpoint
from spark_jobs.spark.spark_session import spark_session, started_spark
from spark_jobs.spark.streams import read_stream, run, start_batches
from spark_jobs.tables.open_tables import open_table, require_table
from spark_jobs.tables.table_format import TableFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "archive"


class ArchiveOptions(DefinitionOptions):
    """Options of the archiving job."""

    directory: Path = Path("data/spark_jobs/archive")
    """the archive; driver and executors reach it by this path"""

    send_rejects: bool = True
    """send records that break a rule to the rejects topic; unnecessary if another job does"""

    format: TableFormat = TableFormat.DELTA
    """format of the table: delta or iceberg"""

    compact: bool = False
    """compact the archive instead of adding to it"""

    file_mb: PositiveInt = 128
    """file size that compaction aims at"""

    vacuum: NonNegativeInt | None = None
    """delete files that no version of so many hours needs; --compact comes first, if given too"""

    take_over: Path | None = None
    """archive of an earlier version, Parquet by hour, to make the table of"""

    read_from: Instant = None
    """print the rows from this event time on (ISO, UTC by default)"""

    read_to: Instant = None
    """print the rows before this event time"""

    @model_validator(mode="after")
    def _one_thing(self) -> ArchiveOptions:
        tidies = self.compact or self.vacuum is not None
        if (tidies, self.is_reading(), self.take_over is not None).count(True) > 1:
            raise ValueError(
                "--compact and --vacuum, --take-over, --read-from and --read-to exclude each other"
            )
        if self.read_from and self.read_to and self.read_from >= self.read_to:
            raise ValueError("--read-from and --read-to: nothing lies between them")
        return self

    def is_reading(self) -> bool:
        """Whether rows are to be read instead of added."""
        return self.read_from is not None or self.read_to is not None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(ArchiveOptions, argv, NAME, __doc__)
    work = _work_without_broker(options)
    if work is not None:
        with started_spark(options, NAME) as spark:
            # Rows may go where words do.
            print(f"{NAME}: {work(spark, options)}", file=sys.stderr if work is _read else None)
        return 0
    _columns(options)  # a mistake in the file is told before Spark starts
    with spark_session(options, NAME) as spark:
        rows = run(start(spark, options), options)
    print(f"{NAME}: {rows[NAME]:,} records taken into {options.directory}")
    return 0


def start(spark: SparkSession, options: ArchiveOptions) -> list[StreamingQuery]:
    """Start the query, making the archive or adding columns to it."""
    with open_topics(spark, options) as topics:
        topics.require(options.topic, TOPIC_HINT)
        claim_checkpoint(options.checkpoint / NAME, topics.identity(NAME, options.topic))
        if options.send_rejects:
            topics.create_missing([options.rejects()], options.partitions, {})
    writer = _writer(spark, options)
    rows = _rows(spark, read_stream(spark, options, options.topic), options)
    metadata = options.checkpoint / NAME / "metadata"

    def take_batch(batch: DataFrame, number: int) -> None:
        query: str = json.loads(metadata.read_text(encoding="utf-8"))["id"]
        writer.take(batch, (query, number))

    return [start_batches(rows, options, NAME, take_batch)]


def take(spark: SparkSession, records: DataFrame, options: ArchiveOptions) -> None:
    """Archive a batch of Kafka records: those that the archive does not have yet."""
    with open_topics(spark, options) as topics:
        if options.send_rejects:
            topics.create_missing([options.rejects()], options.partitions, {})
    writer = _writer(spark, options)
    writer.take(_rows(spark, records, options))


def _columns(options: ArchiveOptions) -> dict[str, str]:
    return field_columns(options.load_definition().record)


def _writer(spark: SparkSession, options: ArchiveOptions) -> ArchiveWriter:
    """Return a writer to the archive, with all columns of the definition added to it."""
    columns = _columns(options)
    table = open_archive(spark, options.directory, options.format, options.topic, columns)
    return ArchiveWriter(table, options, options.rejects() if options.send_rejects else None)


def _rows(spark: SparkSession, records: DataFrame, options: ArchiveOptions) -> DataFrame:
    return archive_rows(parsed(spark, records, options.load_definition()), _columns(options), NAME)


def _work_without_broker(
    options: ArchiveOptions,
) -> Callable[[SparkSession, ArchiveOptions], str] | None:
    """Return what is to be done instead of archiving; mistakes are told before Spark starts."""
    if options.take_over is not None:
        ledger_of(options.take_over)
        return _take_over
    if options.is_reading():
        require_table(FLAG, options.directory)
        return _read
    if options.compact or options.vacuum is not None:
        require_table(FLAG, options.directory)
        return _tidy
    return None


def _take_over(spark: SparkSession, options: ArchiveOptions) -> str:
    assert options.take_over is not None
    rows = take_over(spark, options.take_over, options.directory, options.format)
    return f"{rows:,} rows of {options.take_over} taken over into {options.directory}"


def _tidy(spark: SparkSession, options: ArchiveOptions) -> str:
    table = open_table(spark, FLAG, options.directory)
    done = []
    if options.compact:
        outcome = table.optimize(options.file_mb << 20)
        done.append(f"{outcome.files_before:,} files are now {outcome.files_after:,}")
    if options.vacuum is not None:
        table.vacuum(options.vacuum)
        done.append(f"versions of the last {options.vacuum:,} hours can be read")
    return "; ".join(done)


def _read(spark: SparkSession, options: ArchiveOptions) -> str:
    rows = read_archive(spark, options.directory, options.read_from, options.read_to)
    lines, count = _lines(rows), 0
    try:
        for count, line in enumerate(lines, 1):  # noqa: B007 - the last number is the count
            print(line)
        sys.stdout.flush()
    except BrokenPipeError:  # who reads has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return f"{count:,} rows"


def _lines(rows: DataFrame) -> Iterator[str]:
    """Yield rows as JSON in order of event time; a key that is no text is given in base64."""
    key = "CASE WHEN is_valid_utf8(cast(key AS string)) THEN cast(key AS string) "
    rows = rows.withColumn("key", F.expr(f"{key} ELSE base64(key) END"))
    rows = rows.orderBy("event_time", "partition", "offset")
    for row in rows.select(F.expr(f"to_json(struct(*), {KEEP_NULLS})")).toLocalIterator():
        yield row[0]


if __name__ == "__main__":
    sys.exit(main())
