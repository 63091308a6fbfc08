"""What an audit found: counts by partition, gaps as ranges, doubles, other contents, keys."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql.window import Window

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from spark_jobs.archive.audit_comparison import Extent


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """One partition, counted."""

    partition: int
    first_offset: int
    """Where the topic begins now."""

    end_offset: int
    records: int
    """In the topic."""

    archived: int
    """Of these, each counted once."""

    rejected: int
    """Of these, not archived."""

    missing: int
    behind: int
    doubled: int
    """Records that the archive has more than once."""

    differing: int
    """Records that are not the same in topic and archive."""

    damaged: int
    """Rows of the archive that are not what was written."""

    stray: int
    """Rows of records that the topic does not have."""

    compacted: int
    """Archived, and taken out of the topic by compaction since."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Records of one partition, one after the other, that the archive lacks."""

    partition: int
    first_offset: int
    last_offset: int
    records: int
    state: str = "missing"
    """Or `behind`, when the job has not come so far yet."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One offset at which topic and archive are not the same."""

    partition: int
    offset: int
    key: str | None
    what: str


@dataclass(frozen=True, slots=True)
class KeyDifference:
    """One key whose records are not the same in topic and archive."""

    key: str | None
    produced: int
    """Records in the topic that must be in the archive by now."""

    archived: int
    produced_crc32: int
    """Sum of the checksums of these."""

    archived_crc32: int


@dataclass(frozen=True, slots=True)
class NotCompared:
    """Offsets of one partition that were left out, and why."""

    partition: int
    first_offset: int
    last_offset: int
    archived: int
    """Rows that the archive has of them."""

    why: str


@dataclass(frozen=True, slots=True)
class TableChange:
    """One version of the table that no job of ours made, and that may have changed rows."""

    version: int
    operation: str


@dataclass(frozen=True, slots=True)
class Findings:
    """All that an audit found; lists are cut at a limit, counts are not."""

    partitions: list[PartitionCounts]
    keys: int
    """How many keys the topic's records have."""

    differing_keys: int
    gaps: list[Gap] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    key_differences: list[KeyDifference] = field(default_factory=list)
    not_compared: list[NotCompared] = field(default_factory=list)
    changes: list[TableChange] = field(default_factory=list)

    def total(self, name: str) -> int:
        """Return the sum of a count over all partitions."""
        return sum(getattr(counts, name) for counts in self.partitions)

    def is_exact(self, *, behind_is_well: bool) -> bool:
        """Say whether every record that could be compared is archived once, as it was."""
        wrong = ["missing", "doubled", "differing", "damaged", "stray"]
        if not behind_is_well:
            wrong.append("behind")
        return not self.changes and not any(self.total(name) for name in wrong)


def find(places: DataFrame, extent: Extent, limit: int) -> Findings:
    """Boil the comparison (`compare`) down; at most `limit` of each kind are listed."""
    partitions = _partitions(places, extent)
    by_key = _by_key(places)
    other_keys = by_key.where(
        "produced != archived OR produced_crc32 != archived_crc32 OR differing > 0"
    )
    keys = by_key.count()
    findings = Findings(partitions, keys, differing_keys=0, not_compared=_gone(places, extent))
    if findings.is_exact(behind_is_well=False):
        return findings
    listed = other_keys.orderBy("key").limit(limit).collect()
    return Findings(
        partitions,
        keys,
        differing_keys=other_keys.count(),
        gaps=_gaps(places, limit),
        findings=_findings(places, limit),
        key_differences=[KeyDifference(_text(row[0]), *map(int, row[1:5])) for row in listed],
        not_compared=findings.not_compared,
    )


def _partitions(places: DataFrame, extent: Extent) -> list[PartitionCounts]:
    counts: dict[str, Column] = {
        "records": F.sum("in_topic"),
        **{s: F.count_if(F.col("state") == s) for s in ("archived", "rejected")},
        **{s: F.count_if(F.col("state") == s) for s in ("missing", "behind")},
        "doubled": F.count_if(F.col("copies") > 1),
        "differing": F.count_if(F.col("differs") != ""),
        "damaged": F.sum("damaged"),
        **{s: F.count_if(F.col("state") == s) for s in ("stray", "compacted")},
    }
    rows = places.groupBy("partition").agg(*(count.alias(name) for name, count in counts.items()))
    found = {row["partition"]: row for row in rows.collect()}
    return [
        PartitionCounts(
            partition=number,
            first_offset=extent.starting.get(number, 0),
            end_offset=extent.ending.get(number, 0),
            **{name: int(found[number][name] or 0) if number in found else 0 for name in counts},
        )
        for number in sorted({*extent.starting, *found})
    ]


def _gaps(places: DataFrame, limit: int) -> list[Gap]:
    """Return missing records as ranges.

    Offsets that the topic does not have are passed over: two missing records are neighbours when
    the topic has none between them.
    """
    in_order = Window.partitionBy("partition").orderBy("offset")
    numbered = places.where("in_topic = 1").select(
        "partition", "offset", "state", F.row_number().over(in_order).alias("number")
    )
    missing = numbered.where("state IN ('missing', 'behind')")
    runs = missing.withColumn("run", F.col("number") - F.row_number().over(in_order))
    gaps = runs.groupBy("partition", "run", "state").agg(
        F.min("offset").alias("first"), F.max("offset").alias("last"), F.count(F.lit(1)).alias("n")
    )
    gaps = gaps.select("partition", "first", "last", "n", "state").orderBy("partition", "first")
    return [Gap(*row) for row in gaps.limit(limit).collect()]


def _findings(places: DataFrame, limit: int) -> list[Finding]:
    what = F.concat_ws(
        "; ",
        F.expr("CASE WHEN copies > 1 THEN concat('archived ', copies, ' times') END"),
        F.expr("CASE WHEN differs != '' THEN concat('other ', differs) END"),
        F.expr("CASE WHEN damaged > 0 THEN 'changed after it was archived' END"),
        F.expr("CASE WHEN state = 'stray' THEN 'not in the topic' END"),
    )
    rows = places.select("partition", "offset", "key", what.alias("what")).where("what != ''")
    listed = rows.orderBy("partition", "offset").limit(limit).collect()
    return [Finding(row[0], row[1], _text(row[2]), row[3]) for row in listed]


def _by_key(places: DataFrame) -> DataFrame:
    wanted = "state IN ('archived', 'missing')"
    there = "state IN ('archived', 'stray')"
    return (
        places.where("in_topic = 1 OR state = 'stray'")
        .groupBy("key")
        .agg(
            F.expr(f"count_if({wanted})").alias("produced"),
            F.expr(f"coalesce(sum(copies) FILTER (WHERE {there}), 0)").alias("archived"),
            F.expr(f"coalesce(sum(topic_crc32) FILTER (WHERE {wanted}), 0)").alias(
                "produced_crc32"
            ),
            F.expr(f"coalesce(sum(archive_crc32) FILTER (WHERE {there}), 0)").alias(
                "archived_crc32"
            ),
            F.expr("count_if(differs != '' OR damaged > 0)").alias("differing"),
        )
    )


def _gone(places: DataFrame, extent: Extent) -> list[NotCompared]:
    rows = places.where("state = 'gone'").groupBy("partition").agg(F.sum("copies")).collect()
    archived: Mapping[int, Any] = {row[0]: row[1] for row in rows}
    return [
        NotCompared(
            partition, 0, start - 1, archived.get(partition, 0), f"the topic begins at {start}"
        )
        for partition, start in extent.starting.items()
        if start > 0
    ]


def _text(key: bytes | None) -> str | None:
    """Return a key for people: as text, or in base64 where it is none."""
    if key is None:
        return None
    try:
        return bytes(key).decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(bytes(key)).decode()
