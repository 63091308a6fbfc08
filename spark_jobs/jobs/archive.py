"""Job: archive a topic as Parquet files, by date and hour of event time.

    TOPIC  ->  DIRECTORY/event_date=2013-03-01/event_hour=05/part-….parquet     valid records
           ->  TOPIC.rejected          what breaks a rule of the definition, with the reason

Hours are of UTC. A record lies in the hour of its event time, however late it comes. Each is in the
archive exactly once, through kills at any moment, lost checkpoints and backfills:
`archive_writer` says how, `archive_rows` what a row is, `archive_directory` what lies where.
Rejects are sent at least once, and copies have equal headers `source`.

    python -m spark_jobs archive --directory D              until stopped; with --once, to the end
    python -m spark_jobs archive --directory D --compact    small files of an hour become one
    python -m spark_jobs archive --directory D --read-from 2013-03-01 --read-to 2013-03-02T06:00

Compaction may run beside the job and beside readers, and be killed (`compaction`). Reading prints
rows as JSON, a line each, or writes them to `--output`. Neither needs a broker. Other programs read
the directory as what it is, partitioned Parquet; one that must not have compaction take a file
from under it is run by `flock -s DIRECTORY/_archive/reading.lock PROGRAM`.

When fields are added to the definition as optional ones, rows of before have NULL in them. A field
that the definition no longer has stays a column. A field cannot change its type.

When the topic is grown by partitions, those are archived from their first record on. When it is
deleted, or loses records before they were archived, the job ends and says so; `audit` tells
what is missing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from pydantic import PositiveInt, model_validator

from spark_jobs.archive.archive_directory import ArchiveDirectory
from spark_jobs.archive.archive_export import export
from spark_jobs.archive.archive_rows import archive_rows, field_columns
from spark_jobs.archive.archive_writer import archive_batch
from spark_jobs.archive.compaction import compact
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.errors import exit_code_of
from spark_jobs.jobs.backfill import Instant  # noqa: TC001 - pydantic looks it up when the job runs
from spark_jobs.kafka.topics import open_topics
from spark_jobs.options import TOPIC_HINT, DefinitionOptions, parse_options
from spark_jobs.spark.checkpoints import claim_checkpoint
from spark_jobs.spark.spark_session import spark_session, started_spark
from spark_jobs.spark.streams import read_stream, run, start_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "archive"


class ArchiveOptions(DefinitionOptions):
    """Options of the archiving job."""

    directory: Path = Path("data/spark_jobs/archive")
    """the archive; driver and executors reach it by this path"""

    send_rejects: bool = True
    """send records that break a rule to the rejects topic; unnecessary if another job does"""

    compact: bool = False
    """compact the archive instead of adding to it"""

    file_mb: PositiveInt = 128
    """file size that compaction aims at; an hour with more has several files"""

    reader_seconds: PositiveInt = 60
    """how long compaction waits for readers before it replaces files"""

    read_from: Instant = None
    """print the rows from this event time on (ISO, UTC by default)"""

    read_to: Instant = None
    """print the rows before this event time"""

    output: Path | None = None
    """file to write the rows to instead of printing them: .jsonl or .csv"""

    @model_validator(mode="after")
    def _one_thing(self) -> ArchiveOptions:
        if self.compact and self.is_reading():
            raise ValueError("--compact and --read-from, --read-to or --output exclude each other")
        if self.read_from and self.read_to and self.read_from >= self.read_to:
            raise ValueError("--read-from and --read-to: nothing lies between them")
        if self.output is not None and self.output.suffix not in {".jsonl", ".csv"}:
            raise ValueError(f"--output: expected a name in .jsonl or .csv, got '{self.output}'")
        return self

    def is_reading(self) -> bool:
        """Whether rows are to be read instead of added."""
        return any(given is not None for given in (self.read_from, self.read_to, self.output))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(ArchiveOptions, argv, NAME, __doc__)
    if options.compact or options.is_reading():
        return _without_broker(options, _compact if options.compact else _read)
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
    rows = _rows(spark, read_stream(spark, options, options.topic), options)
    take_batch = _taker(options)
    return [start_batches(rows, options, NAME, lambda batch, _number: take_batch(batch))]


def take(spark: SparkSession, records: DataFrame, options: ArchiveOptions) -> None:
    """Archive a batch of Kafka records: those that the archive does not have yet."""
    with open_topics(spark, options) as topics:
        if options.send_rejects:
            topics.create_missing([options.rejects()], options.partitions, {})
    _taker(options)(_rows(spark, records, options))


def _columns(options: ArchiveOptions) -> dict[str, str]:
    return field_columns(options.load_definition().record)


def _rows(spark: SparkSession, records: DataFrame, options: ArchiveOptions) -> DataFrame:
    """Return rows with all columns that the archive has, adding those of the definition to it."""
    ledger = ArchiveDirectory(options.directory).open_for(options.topic, _columns(options))
    return archive_rows(parsed(spark, records, options.load_definition()), ledger.columns, NAME)


def _taker(options: ArchiveOptions) -> Callable[[DataFrame], None]:
    directory = ArchiveDirectory(options.directory)
    rejects = options.rejects() if options.send_rejects else None
    return lambda batch: archive_batch(batch, directory, options, rejects)


def _without_broker(
    options: ArchiveOptions, work: Callable[[SparkSession, ArchiveOptions], int]
) -> int:
    ArchiveDirectory(options.directory).ledger()  # none is told before Spark starts
    with started_spark(options, NAME) as spark:
        return work(spark, options)


def _compact(spark: SparkSession, options: ArchiveOptions) -> int:
    directory = ArchiveDirectory(options.directory)
    outcome = compact(spark, directory, options.file_mb << 20, options.reader_seconds)
    print(f"{NAME}: {outcome}")
    return 0


def _read(spark: SparkSession, options: ArchiveOptions) -> int:
    rows = export(spark, options.directory, options.read_from, options.read_to, options.output)
    if options.output is not None:
        print(f"{NAME}: {rows:,} rows written to {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
