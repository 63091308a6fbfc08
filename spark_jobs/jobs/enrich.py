"""Job: join a stream with a slowly changing table, kept in a compacted topic.

    TOPIC        ->  TOPIC.enriched     each valid record, with the table's row of its key
    table topic  ->                     (built in: flights, with the plane of the tail number)
                 ->  TOPIC.rejected     records of both that break a rule, with the reason

Which topics, what their records are and how they are joined stand in the definition:

    [enrich]
    table = "planes"           definition of the table's records, as of the stream's
    on = "tailnum"             SQL: the key in the table's topic, as text
    into = "plane"             where the row is put, as an object; NULL when there is none
    also.age = "year - plane.year"     and all else that `outputs` lists

A record without a row goes on with NULL for it or, with `--unmatched reject`, is rejected as
`unmatched`. So is one whose key is NULL.

Each batch of the stream sees the table as it is when the batch begins, all of it, whatever the
times of its records: the latest value of each key in the table's topic; a key whose latest
record has no value is not in it. A batch that was interrupted comes again and sees what it saw
(`lookup_table`); so its records, if they are written twice, are written with the same values, and
carry the same header `source`. The row changes with the table from batch to batch: a record that
is to be joined with what came later must come later.

A table's topic that is deleted ends the job; when it is made anew, the table is what it then
holds. When the stream's topic is grown by partitions, those are read from their first record on.
When it is deleted, or loses records before they were read, the job ends and says so. A topic of
the same name made anew needs another `--checkpoint`, as does another broker. The directory of
checkpoints must be one that executors and driver share.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if not __package__:  # given to spark-submit as a file: let the imports below find the package
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import spark_jobs.dependency_check  # noqa: F401 - first of all: it says what is not installed

# isort: split
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.definition import OWN_COLUMNS, Definition, load_definition
from spark_jobs.definitions.fields import ColumnName  # noqa: TC001 - pydantic evaluates it
from spark_jobs.definitions.outputs import (
    OutputSection,
    json_sql,
    key_sql,
    rejection_sql,
    require_output,
    written,
)
from spark_jobs.definitions.typed_records import parsed, require_sql
from spark_jobs.errors import BadOptionError, exit_code_of
from spark_jobs.kafka.topics import open_topics
from spark_jobs.options import TOPIC_HINT, DefinitionOptions, TopicName, parse_options
from spark_jobs.spark.checkpoints import claim_checkpoint
from spark_jobs.spark.lookup_pins import Pins
from spark_jobs.spark.lookup_table import LookupSource, LookupTable, empty_table, table_of_now
from spark_jobs.spark.spark_session import spark_session
from spark_jobs.spark.streams import read_stream, run, start_batches, write_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "enrich"


class EnrichSection(OutputSection):
    """The section [enrich]."""

    table: str
    """definition of the table's records: a file beside this one, or the name of a built-in one"""

    on: str
    """SQL of the key in the table's topic, as text"""

    into: ColumnName
    """column that the row is put into"""


class EnrichOptions(DefinitionOptions):
    """Options of the enriching job."""

    table_topic: TopicName = "planes"
    """topic that holds the table: the latest record of a key is its row"""

    target_topic: TopicName | None = None
    """topic for enriched records; TOPIC.enriched if not given"""

    unmatched: Literal["pass", "reject"] = "pass"
    """what happens to records whose key is not in the table"""

    def target(self) -> str:
        """Return the topic for enriched records."""
        return self.target_topic or f"{self.topic}.enriched"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; return the process's exit code."""
    return exit_code_of(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    options = parse_options(EnrichOptions, argv, NAME, __doc__)
    table_definition(options.load_definition())  # a mistake in a file is told before Spark starts
    with spark_session(options, NAME) as spark:
        rows = run(start(spark, options), options)
    print(f"{NAME}: {rows[NAME]:,} records joined with {options.table_topic}")
    return 0


def start(spark: SparkSession, options: EnrichOptions) -> list[StreamingQuery]:
    """Start the query, creating the target topics that are not there."""
    definition = options.load_definition()
    checkpoint = options.checkpoint / NAME
    with open_topics(spark, options) as topics:
        topics.require(options.topic, TOPIC_HINT)
        topics.require(options.table_topic, "produce the table to it, or name another")
        identity = topics.identity(NAME, options.topic) | {"table topic": options.table_topic}
        claim_checkpoint(checkpoint, identity)
        topics.create_missing([options.target(), options.rejects()], options.partitions, {})
    rows = parsed(spark, read_stream(spark, options, options.topic), definition)
    require_enrichment(rows, empty_table(spark, table_definition(definition)), definition)
    table = LookupTable(spark, options, _source(options, definition), Pins(checkpoint / "table"))

    def take_batch(batch: DataFrame, number: int) -> None:
        write_batch(enriched(batch, table.as_of(number), definition, options), options)

    return [start_batches(rows, options, NAME, take_batch)]


def take(spark: SparkSession, records: DataFrame, options: EnrichOptions) -> None:
    """Join a batch of Kafka records with the table as it is now."""
    definition = options.load_definition()
    with open_topics(spark, options) as topics:
        topics.require(options.table_topic, "produce the table to it, or name another")
        topics.create_missing([options.target(), options.rejects()], options.partitions, {})
    rows = parsed(spark, records, definition)
    require_enrichment(rows, empty_table(spark, table_definition(definition)), definition)
    table = table_of_now(spark, options, _source(options, definition))
    write_batch(enriched(rows, table, definition, options), options)


def table_definition(definition: Definition) -> Definition:
    """Return the definition of the table's records that [enrich] names."""
    name = definition.section("enrich", EnrichSection).table
    return load_definition(name if name.isidentifier() else str(definition.path.parent / name))


def require_enrichment(rows: DataFrame, table: DataFrame, definition: Definition) -> None:
    """Raise `BadOptionError` that names what is wrong in the section [enrich]."""
    section = definition.section("enrich", EnrichSection)
    if section.into.lower() in {*OWN_COLUMNS, *(name.lower() for name in rows.columns)}:
        raise BadOptionError(
            f"--definition: {definition.path}: enrich.into: there is a column '{section.into}'"
        )
    require_sql(rows, definition, "enrich.on", section.on)
    require_output(_joined(rows, table, section), definition, "enrich", section)


def enriched(
    rows: DataFrame, table: DataFrame, definition: Definition, options: EnrichOptions
) -> DataFrame:
    """Return what becomes of parsed records: key, value, topic and headers to write.

    `table` has `key` (bytes), each once, and `row`.
    """
    section = definition.section("enrich", EnrichSection)
    unmatched = (
        f"WHEN {section.into} IS NULL THEN named_struct('reason', 'unmatched', 'detail', "
        f"concat(coalesce(cast(lookup_key AS string), 'NULL'), ' is not in {options.table_topic}'))"
    )
    made = ("event_time", section.into)
    rows = (
        _joined(rows, table, section)
        .withColumn("output", F.expr(json_sql(section, definition.record, made)))
        .withColumn("output_key", F.expr(key_sql(section)))
    )
    reasons = unmatched if options.unmatched == "reject" else ""
    rows = rows.withColumn("rejection", F.expr(rejection_sql(section.max_bytes, reasons)))
    return written(rows, NAME, f"'{options.target()}'", options.rejects())


def _joined(rows: DataFrame, table: DataFrame, section: EnrichSection) -> DataFrame:
    lookup_key = (
        f"CASE WHEN rejection IS NULL THEN cast(cast({section.on} AS string) AS binary) END"
    )
    keyed = rows.withColumn("lookup_key", F.expr(lookup_key))
    named = table.select(F.col("key").alias("lookup_key"), F.col("row").alias(section.into))
    return keyed.join(named, "lookup_key", "left")


def _source(options: EnrichOptions, definition: Definition) -> LookupSource:
    return LookupSource(
        topic=options.table_topic,
        definition=table_definition(definition),
        job=NAME,
        rejects_topic=options.rejects(),
    )


if __name__ == "__main__":
    sys.exit(main())
