"""A compacted topic as a table: the latest record of each key, in versions that batches see.

A batch that was interrupted comes again and must see the table that it saw. Reading the topic
up to the same offsets again is not enough: meanwhile compaction may have removed a record that
was the latest of its key then. So the version itself is kept, as Parquet, until the batch is done:

    batch 7     the topic ends at 100. version-7 = records before 100. pin 7 -> version-7. join.
    batch 8     still 100.             pin 8 -> version-7. join.
    batch 9     ends at 130.           version-9 = version-7 with records 100 to 129. pin 9. kill -9
    batch 9     pin 9 is there: version-9, whatever the topic holds by now. join.
    batch 10    first one of this process: version-10 = all records before the end. pin 10. join.

A process begins with the whole topic, and so does whoever has not looked for `RELOAD_SECONDS`:
among the changes alone, the deletion of a key (a record without value) may have been compacted
away. The same goes for a topic that was deleted and made anew.

The record of a key that counts is the last of its partition; if the key has records in several
partitions, because the topic was grown, the one with the latest timestamp. A record that breaks a
rule of the table's definition is rejected, and its key is not in the table from then on: keeping
the earlier value would depend on whether compaction has removed it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.rejects import rejects
from spark_jobs.definitions.typed_records import columns_made, parsed
from spark_jobs.kafka.offsets import open_offsets
from spark_jobs.kafka.topics import open_topics
from spark_jobs.spark.local_tables import no_rows
from spark_jobs.spark.lookup_pins import Pin, Pins
from spark_jobs.spark.streams import persisted, read_batch, write_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.definitions.definition import Definition
    from spark_jobs.options import SparkOptions

RELOAD_SECONDS = 3600.0
"""Much less than `delete.retention.ms`, by default a day, for which deletions stay readable."""

EARLIEST = -2
"""What Spark takes for the first offset that is there."""

NO_KEY = "no-key"


@dataclass(frozen=True, slots=True)
class LookupSource:
    """Where a table comes from."""

    topic: str
    definition: Definition
    """What the table's records are."""

    job: str
    rejects_topic: str
    """Where records of the table go that break a rule, as rejects of `job`."""


class LookupTable:
    """One table, for the batches of one query."""

    def __init__(
        self,
        spark: SparkSession,
        options: SparkOptions,
        source: LookupSource,
        pins: Pins,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spark = spark
        self._options = options
        self._source = source
        self._pins = pins
        self._clock = clock
        self._looked_at: float | None = None

    def as_of(self, batch: int) -> DataFrame:
        """Return what `batch` sees: as `key` (bytes) and `row` (fields and made columns).

        The first time it is asked for, that is the table as it is now; then it stays so.
        """
        pin = self._pins.find(batch) or self._new_pin(batch)
        return self._version(pin.version).select("key", "row")

    def _new_pin(self, batch: int) -> Pin:
        topic = self._source.topic
        with open_offsets(self._spark, self._options) as offsets:
            end = offsets.latest(topic)
        with open_topics(self._spark, self._options) as topics:
            topic_id = topics.topic_id(topic)
        last = self._pins.last_before(batch)
        if last is not None and last.topic_id != topic_id:
            last = None
        pin = Pin(batch, batch, topic_id, end)
        if last is not None and self._looked_lately():
            if last.offsets == end:
                pin = replace(pin, version=last.version)
            else:
                self._build(pin, last, last)
        else:
            self._build(pin, None, last)
        self._pins.add(pin)
        self._looked_at = self._clock()
        return pin

    def _looked_lately(self) -> bool:
        return self._looked_at is not None and self._clock() - self._looked_at < RELOAD_SECONDS

    def _build(self, pin: Pin, base: Pin | None, told: Pin | None) -> None:
        """Make the version of `pin` out of that of `base`; without one, of the whole topic.

        What is wrong with records that no pin up to `told` covers is written first, so that a
        version that is there has had its rejects written.
        """
        begin = {} if base is None else base.offsets
        records = read_range(self._spark, self._options, self._source.topic, begin, pin.offsets)
        with persisted(checked_records(self._spark, records, self._source.definition)) as checked:
            self._write_rejects(checked, {} if told is None else told.offsets)
            rows = latest_rows(checked, self._source.definition)
            if base is not None:
                rows = changed_rows(self._version(base.version), rows)
            rows = rows.where("row IS NOT NULL")
            rows.write.mode("overwrite").parquet(self._path(pin.version))

    def _write_rejects(self, checked: DataFrame, told: Mapping[int, int]) -> None:
        cases = " ".join(f"WHEN {partition} THEN {end}" for partition, end in told.items())
        is_new = f"offset >= CASE partition {cases} ELSE 0 END" if cases else "true"
        source = self._source
        records = rejects(checked.where(is_new), source.job, source.rejects_topic)
        write_batch(records, self._options)

    def _version(self, version: int) -> DataFrame:
        # With its schema given, a column that the definition has since gained is NULL.
        schema = self._empty().schema
        return self._spark.read.schema(schema).parquet(self._path(version))

    def _empty(self) -> DataFrame:
        return empty_table(self._spark, self._source.definition)

    def _path(self, version: int) -> str:
        return str(self._pins.version_directory(version).absolute())


def table_of_now(spark: SparkSession, options: SparkOptions, source: LookupSource) -> DataFrame:
    """Return the table as it is now, columns `key` and `row`, and write its rejects."""
    with open_offsets(spark, options) as offsets:
        end = offsets.latest(source.topic)
    records = read_range(spark, options, source.topic, {}, end)
    checked = checked_records(spark, records, source.definition).persist()
    write_batch(rejects(checked, source.job, source.rejects_topic), options)
    return latest_rows(checked, source.definition).where("row IS NOT NULL").select("key", "row")


def empty_table(spark: SparkSession, definition: Definition) -> DataFrame:
    """Return the table without rows, which knows its columns."""
    records = no_rows(spark, KAFKA_SCHEMA)
    return latest_rows(checked_records(spark, records, definition), definition)


def read_range(
    spark: SparkSession,
    options: SparkOptions,
    topic: str,
    begin: Mapping[int, int],
    end: Mapping[int, int],
) -> DataFrame:
    """Return the records of all partitions of `end`; from the earliest where `begin` has none."""
    starting = {partition: begin.get(partition, EARLIEST) for partition in end}
    return read_batch(spark, options, [topic], {topic: starting}, {topic: end})


def checked_records(spark: SparkSession, records: DataFrame, definition: Definition) -> DataFrame:
    """Return parsed records of a table; one without a value is a deletion, not a reject."""
    return parsed(spark, records, definition).withColumn("rejection", F.expr(_REJECTION))


def latest_rows(checked: DataFrame, definition: Definition) -> DataFrame:
    """Return for each key its latest record; `row` is NULL if it was deleted or rejected."""
    columns = ", ".join((*definition.record.fields, *columns_made(definition.record)))
    row = f"CASE WHEN rejection IS NULL AND value IS NOT NULL THEN struct({columns}) END"
    rows = checked.where("key IS NOT NULL").select(
        "key", "partition", "offset", "timestamp", F.expr(row).alias("row")
    )
    in_partition = F.max_by(F.struct("offset", "timestamp", "row"), "offset").alias("last")
    last = rows.groupBy("key", "partition").agg(in_partition).select("key", "partition", "last.*")
    return _newest(last)


def changed_rows(table: DataFrame, changes: DataFrame) -> DataFrame:
    """Return a table with the latest rows of some keys in place of what it had for them."""
    return table.join(changes.select("key"), "key", "left_anti").unionByName(changes)


def _newest(rows: DataFrame) -> DataFrame:
    columns = F.struct("partition", "offset", "timestamp", "row")
    newest = F.max_by(columns, F.struct("timestamp", "partition")).alias("newest")
    return rows.groupBy("key").agg(newest).select("key", "newest.*")


KAFKA_SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int"
)
_REJECTION = (
    f"CASE WHEN key IS NULL THEN named_struct('reason', '{NO_KEY}', "
    "'detail', 'a record of a table has a key') WHEN value IS NOT NULL THEN rejection END"
)
