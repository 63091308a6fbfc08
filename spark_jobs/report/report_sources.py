"""Where the report's numbers come from: topics, an archive, consumer groups, files of metrics.

Records are counted by Spark, second by second, and come to the driver when they are few.
"""

from __future__ import annotations

import json
from datetime import datetime  # noqa: TC003 - pydantic reads the annotation
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.fields import ColumnName, Section
from spark_jobs.definitions.rejects import SOURCE_HEADER
from spark_jobs.errors import BadOptionError
from spark_jobs.options import Duration, TopicName  # noqa: TC001 - pydantic reads them
from spark_jobs.report.report_numbers import (
    Bucket,
    GroupLag,
    JobBatch,
    JobNumbers,
    Throughput,
    TopicNumbers,
    WindowNumbers,
    WindowShare,
    as_time,
)
from spark_jobs.spark.streams import persisted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import Column, DataFrame

    from spark_jobs.kafka.offsets import Offsets


class ReportSection(Section):
    """Table `[report]` of a definition: what is drawn of windows, which are JSON objects."""

    windows_topic: TopicName
    """the topic of the windows, in which the last record of a key is the window"""

    granularity: Duration
    """which of the windows: those whose key `granularity` says so"""

    group: ColumnName
    """key of the JSON object: what the windows are by, beside their time"""

    above: ColumnName
    """key whose sum is divided"""

    below: ColumnName
    """key whose sum it is divided by"""

    label: str
    """what the measure is"""

    group_label: str
    """what a group is"""

    is_share: bool = True
    """whether to show it in percent"""

    zone: str = "UTC"
    """time zone of the hours of the day"""


def event_times(times: DataFrame, name: str) -> tuple[Throughput | None, int, int]:
    """Return valid records by event time, how many they are, and how many are rejected.

    `times` has the columns `event_time` and `is_rejected`.
    """
    counts = times.groupBy("is_rejected", F.unix_seconds("event_time").alias("second")).count()
    with persisted(counts):
        sums = {row["is_rejected"]: row["records"] for row in _sums(counts, "is_rejected")}
        valid = counts.where("NOT is_rejected").select(F.lit(name).alias("name"), "second", "count")
        throughputs = _throughputs(valid)
    return (throughputs[0] if throughputs else None, sums.get(False, 0), sums.get(True, 0))


def _sums(counts: DataFrame, *columns: str) -> Iterable[dict[str, int]]:
    grouped = counts.groupBy(*columns).agg(F.sum("count").alias("records"))
    return [row.asDict() for row in grouped.collect()]


def topic_numbers(
    records: DataFrame, offsets: Offsets
) -> tuple[list[TopicNumbers], list[Throughput]]:
    """Return what topics hold, and their records by timestamp; those without any are left out."""
    counts = records.groupBy(
        F.col("topic").alias("name"), F.unix_seconds("timestamp").alias("second")
    ).agg(F.count(F.lit(1)).alias("count"), F.sum(F.length("value")).alias("bytes"))
    with persisted(counts):
        rows = (
            counts.groupBy("name")
            .agg(
                F.sum("count").alias("records"),
                F.coalesce(F.sum("bytes"), F.lit(0)).alias("bytes"),
                F.min("second").alias("first"),
                F.max("second").alias("last"),
            )
            .orderBy("name")
            .collect()
        )
        throughputs = _throughputs(counts)
    topics = [
        TopicNumbers(
            topic=row["name"],
            partitions=len(offsets.latest(row["name"])),
            records=row["records"],
            value_bytes=row["bytes"],
            first=as_time(row["first"]),
            last=as_time(row["last"]),
        )
        for row in rows
    ]
    return topics, throughputs


def _throughputs(counts: DataFrame) -> list[Throughput]:
    """Return the counts (name, second, count) in the bucket that suits the span of each name."""
    made = []
    spans = counts.groupBy("name").agg(F.min("second").alias("a"), F.max("second").alias("b"))
    for span in spans.orderBy("name").collect():
        bucket = Bucket.for_span(span["a"], span["b"])
        start = F.floor((F.col("second") - bucket.begin) / bucket.seconds) * bucket.seconds
        rows = (
            counts.where(F.col("name") == span["name"])
            .groupBy((start + bucket.begin).alias("start"))
            .agg(F.sum("count").alias("count"))
            .collect()
        )
        made.append(
            Throughput.of(span["name"], bucket, {row["start"]: row["count"] for row in rows})
        )
    return made


def reject_reasons(rejected: DataFrame) -> dict[str, int]:
    """Return how many records were rejected for which reason, copies of one counted once."""
    reason = F.get_json_object(F.col("value").cast("string"), "$.reason")
    rows = (
        rejected.groupBy(_header(SOURCE_HEADER).alias("source"))
        .agg(F.any_value(F.coalesce(reason, F.lit("without a reason"))).alias("reason"))
        .groupBy("reason")
        .count()
        .collect()
    )
    return {row["reason"]: row["count"] for row in rows}


def _header(name: str) -> Column:
    found = F.filter("headers", lambda header: header["key"] == name)
    # A record without it is its own source.
    return F.coalesce(
        F.try_element_at(found, F.lit(1))["value"].cast("string"),
        F.concat_ws("/", "topic", "partition", "offset"),
    )


def window_numbers(windows: DataFrame, section: ReportSection) -> WindowNumbers:
    """Sum up windows by group and hour of the day; `windows` are records of a compacted topic."""
    last = windows.groupBy("key").agg(F.max_by("value", F.struct("partition", "offset")).alias("v"))
    columns = (
        f"granularity string, start timestamp, `{section.group}` string, "
        f"`{section.above}` double, `{section.below}` double"
    )
    rows = (
        last.where("v IS NOT NULL")
        .select(F.from_json(F.col("v").cast("string"), columns).alias("w"))
        .select("w.*")
        .where(F.col("granularity") == section.granularity)
        .groupBy(
            F.col(section.group).alias("group"),
            F.hour(F.from_utc_timestamp("start", section.zone)).alias("hour"),
        )
        .agg(
            F.count(F.lit(1)).alias("windows"),
            F.coalesce(F.sum(section.above), F.lit(0.0)).alias("above"),
            F.coalesce(F.sum(section.below), F.lit(0.0)).alias("below"),
        )
        .collect()
    )
    return WindowNumbers(
        topic=section.windows_topic,
        granularity=section.granularity,
        label=section.label,
        is_share=section.is_share,
        group_label=section.group_label,
        zone=section.zone,
        windows=sum(row["windows"] for row in rows),
        shares=[
            WindowShare(row["group"], row["hour"], row["above"], row["below"])
            for row in rows
            if row["below"] > 0 and row["group"] is not None
        ],
    )


def group_lags(offsets: Offsets, groups: Iterable[str]) -> list[GroupLag]:
    """Return how far groups are behind; a topic that is gone is left out."""
    ends: dict[str, dict[int, int]] = {}
    topics = offsets.topics()
    lags = []
    for group in groups:
        for (topic, partition), committed in sorted(offsets.committed(group).items()):
            if topic not in topics:
                continue
            if topic not in ends:
                ends[topic] = offsets.latest(topic)
            lags.append(GroupLag(group, topic, partition, committed, ends[topic][partition]))
    return lags


class _MetricsLine(BaseModel):
    """What is read of a line that `--metrics` wrote."""

    query: str
    at: datetime
    rows: int
    processed_rows_per_second: float
    lag: dict[str, int]
    dropped_by_watermark: int


def job_numbers(files: Iterable[Path]) -> list[JobNumbers]:
    """Read files of metrics; raise `BadOptionError` that names a line which is none."""
    batches: dict[str, list[JobBatch]] = {}
    dropped: dict[str, int] = {}
    for file in files:
        for number, text in enumerate(_lines(file), 1):
            try:
                line = _MetricsLine.model_validate(json.loads(text))
            except (ValueError, ValidationError) as error:
                raise BadOptionError(
                    f"--metrics: {file}: line {number} is no line of metrics"
                ) from error
            batch = JobBatch(
                line.at, line.rows, line.processed_rows_per_second, sum(line.lag.values())
            )
            batches.setdefault(line.query, []).append(batch)
            dropped[line.query] = dropped.get(line.query, 0) + line.dropped_by_watermark
    return [JobNumbers(query, found, dropped[query]) for query, found in batches.items()]


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadOptionError(f"--metrics: {file} cannot be read: {error}") from error
