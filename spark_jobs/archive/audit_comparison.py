"""A topic beside its archive, record by record: what each offset has here and there.

    partition, offset, key     of the record, in the topic's words if it is there
    in_topic                   1 if the topic has the record
    rejected                   1 if a reject names it as its source
    copies                     how many rows the archive has of it
    damaged                    how many of those are no longer what was written (`row_hash`)
    differs                    what is not the same in topic and archive: key, timestamp, …
    topic_crc32, archive_crc32 sums of the values' checksums, as the two sides have them
    state                      one of `STATES`

Only records that can be read count, so control records and those of aborted transactions are no
gaps; nor is what compaction took out of the topic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.archive.archive_rows import ROW_HASH, row_hash_sql
from spark_jobs.definitions.rejects import SOURCE_HEADER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

STATES = {
    "archived": "in the topic and in the archive",
    "rejected": "in the topic and among the rejects",
    "missing": "in the topic, not in the archive although the job came past it",
    "behind": "in the topic, not in the archive, and beyond all that the job has taken",
    "stray": "in the archive, not in the topic although the topic has offsets around it",
    "compacted": "in the archive, no longer in the topic, which is a compacted one",
    "gone": "in the archive, before the begin of the topic: nothing to compare with",
    "ignored": "a reject of a record that is no longer in the topic",
}

_COMPARED = ("key", "timestamp", "value_bytes", "value_crc32")


@dataclass(frozen=True, slots=True)
class Extent:
    """Which offsets of a topic are compared, by partition."""

    starting: Mapping[int, int]
    ending: Mapping[int, int]
    """Offset that the next record would have, as far as transactions are complete."""

    taken: Mapping[int, tuple[int, int]]
    """Lowest and highest offset that the archive's job has taken."""

    is_compacted: bool


def topic_side(records: DataFrame) -> DataFrame:
    """Return what is compared of Kafka records."""
    checksums = {"value_bytes": F.length("value"), "value_crc32": F.crc32("value")}
    return _side("topic", records.withColumns(checksums), "0")


def archive_side(rows: DataFrame) -> DataFrame:
    """Return what is compared of the archive's rows."""
    return _side("archive", rows, f"int(NOT {ROW_HASH} <=> {row_hash_sql(rows.columns)})")


def rejects_side(rejects: DataFrame, topic: str, jobs: Sequence[str]) -> DataFrame:
    """Return the places of `topic` that rejects of these jobs name."""
    header = F.filter("headers", lambda header: header["key"] == SOURCE_HEADER)[0]
    job = F.get_json_object(F.col("value").cast("string"), "$.job")
    source = F.split(header["value"].cast("string"), "/")
    places = rejects.where(job.isin(*jobs)).select(source.alias("source"))
    return places.where(F.expr("source[0]") == topic).select(
        F.lit("rejects").alias("side"),
        F.expr("int(source[1])").alias("partition"),
        F.expr("bigint(source[2])").alias("offset"),
        *(F.lit(None).alias(name) for name in _COMPARED),
        F.lit(0).alias("is_damaged"),
    )


def compare(sides: Sequence[DataFrame], extent: Extent) -> DataFrame:
    """Return a row for each offset that any side has, as the module's docstring lists them."""
    rows = sides[0]
    for side in sides[1:]:
        rows = rows.unionByName(side)
    places = rows.groupBy("partition", "offset").agg(
        F.expr("max(int(side = 'topic'))").alias("in_topic"),
        F.expr("max(int(side = 'rejects'))").alias("rejected"),
        F.expr("count_if(side = 'archive')").alias("copies"),
        F.sum("is_damaged").alias("damaged"),
        F.expr("max(key) FILTER (WHERE side = 'topic')").alias("key_in_topic"),
        F.expr("max(key)").alias("any_key"),
        *(_crc32_of(side) for side in ("topic", "archive")),
        *(_is_different(name).alias(f"other_{name}") for name in _COMPARED),
    )
    differs = ", ".join(f"CASE WHEN other_{name} THEN '{name}' END" for name in _COMPARED)
    places = places.withColumn("state", F.expr(_state_sql(extent)))
    return places.select(
        "partition",
        "offset",
        F.expr("CASE WHEN in_topic = 1 THEN key_in_topic ELSE any_key END").alias("key"),
        "in_topic",
        "rejected",
        "copies",
        "damaged",
        F.expr(f"CASE WHEN state = 'archived' THEN concat_ws(', ', {differs}) ELSE '' END").alias(
            "differs"
        ),
        "topic_crc32",
        "archive_crc32",
        "state",
    )


def _side(name: str, rows: DataFrame, is_damaged: str) -> DataFrame:
    return rows.select(
        F.lit(name).alias("side"),
        "partition",
        "offset",
        *_COMPARED,
        F.expr(is_damaged).alias("is_damaged"),
    )


def _crc32_of(side: str) -> Column:
    return F.expr(f"sum(value_crc32) FILTER (WHERE side = '{side}')").alias(f"{side}_crc32")


def _is_different(name: str) -> Column:
    """Hashes are compared, as NULL has one too."""
    both = f"(xxhash64({name})) FILTER (WHERE side != 'rejects')"
    return F.expr(f"min{both} != max{both}")


def _state_sql(extent: Extent) -> str:
    started = _by_partition(extent.starting)
    last = _by_partition({number: last for number, (_, last) in extent.taken.items()})
    absent = "compacted" if extent.is_compacted else "stray"
    return (
        "CASE WHEN in_topic = 1 AND copies > 0 THEN 'archived' "
        "WHEN in_topic = 1 AND rejected = 1 THEN 'rejected' "
        f"WHEN in_topic = 1 AND offset <= {last} THEN 'missing' "
        "WHEN in_topic = 1 THEN 'behind' "
        "WHEN copies = 0 THEN 'ignored' "
        f"WHEN offset < {started} THEN 'gone' "
        f"WHEN offset < {_by_partition(extent.ending)} THEN '{absent}' ELSE 'stray' END"
    )


def _by_partition(offsets: Mapping[int, int]) -> str:
    """Return SQL for the offset of the row's partition; -1 when it has none."""
    cases = " ".join(f"WHEN {number} THEN {offset}L" for number, offset in offsets.items())
    return f"CASE partition {cases} ELSE -1L END" if cases else "-1L"
