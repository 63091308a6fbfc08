"""What becomes of a failed record: tried again later, passed on, or kept as a dead letter.

A record that waits for its next attempt is in a retry topic as it was at first, key and value. The
headers say the rest, as text:

    source     topic/partition/offset that it came from at the very first
    attempts   how often it was tried again
    first      when it was rejected, and
    last       when it was last looked at, both in milliseconds since 1970
    due        when it may be tried, earliest
    reason     why it was rejected the last time, and
    detail     about that for a person
    job        who rejected it at first

A dead letter has them too, but `due`, and is a JSON object of the same with `source` as an object,
times as text, and the value as rejects have it (`raw`, `raw_base64`, `raw_bytes`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.fields import Reason, Section
from spark_jobs.definitions.rejects import RAW_BASE64_SQL, RAW_CHARACTERS, SOURCE_HEADER
from spark_jobs.definitions.typed_records import parsed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.definitions.definition import Definition

NOT_A_REJECT, NOT_WHOLE = "not-a-reject", "not-whole"
_REJECT = (
    "reason string, detail string, job string, "
    "source struct<topic: string, partition: int, offset: bigint>, "
    "raw string, raw_base64 string, raw_bytes bigint"
)


class RetrySection(Section):
    """The section [retry]."""

    reasons: tuple[Reason, ...]
    """for these a record is tried again; rejected for another it is a dead letter at once"""


class Ways:
    """The topics between which records go, and how long they wait in each."""

    def __init__(self, rejects: str, tiers: Sequence[tuple[str, int]], target: str, dead: str):
        self.rejects = rejects
        self.tiers = tuple(tiers)
        """Retry topics in order, with the milliseconds that a record waits in each."""
        self.target = target
        self.dead = dead

    @property
    def outputs(self) -> tuple[str, ...]:
        """All topics that are written to."""
        return (*(topic for topic, _ in self.tiers), self.target, self.dead)

    @property
    def inputs(self) -> tuple[str, ...]:
        """All topics that are read."""
        return (self.rejects, *(topic for topic, _ in self.tiers))


def decided(
    spark: SparkSession, records: DataFrame, definition: Definition, ways: Ways, now_ms: int
) -> DataFrame:
    """Return what to write of records that are due: key, value, topic, headers, and `source`.

    `records` are of the topic of rejects and of retry topics, with their headers. Nothing is
    shuffled: records of a partition stay in order.
    """
    reasons = definition.section("retry", RetrySection).reasons
    tried = parsed(spark, _as_at_first(records, ways), definition)
    rows = tried.withColumn("retry_cause", F.expr(_CAUSE)).withColumn(
        "retry_topic", F.expr(_destination_sql(reasons, ways))
    )
    return rows.select(
        "key",
        F.expr(
            f"CASE WHEN retry_topic = '{ways.dead}' "
            f"THEN cast({_dead_json_sql(now_ms)} AS binary) ELSE value END"
        ).alias("value"),
        F.col("retry_topic").alias("topic"),
        F.expr(_headers_sql(ways, now_ms)).alias("headers"),
        F.expr(_SOURCE_TEXT).alias("source"),
    )


def source_of(records: DataFrame) -> DataFrame:
    """Return the header `source` of each record, as the only column."""
    return records.select(F.expr(f"cast({_header(SOURCE_HEADER)} AS string)").alias("source"))


def _as_at_first(records: DataFrame, ways: Ways) -> DataFrame:
    """Have key, value, topic, partition and offset as they were at the record's origin.

    `retrying` has the rest: tier (0 for rejects), attempts, first, reason, detail, job, is_whole.
    """
    tier = F.lit(0)
    for number, (topic, _) in enumerate(ways.tiers, start=1):
        tier = F.when(F.col("topic") == topic, F.lit(number)).otherwise(tier)
    rows = (
        records.withColumn("tier", tier)
        .withColumn("reject", F.expr(f"from_json(cast(value AS string), '{_REJECT}')"))
        .withColumn("is_reject", F.expr("tier = 0 AND reject.source.offset IS NOT NULL"))
        .withColumn("place", F.expr(f"split(cast({_header(SOURCE_HEADER)} AS string), '/')"))
        .withColumn("value_then", F.expr(_VALUE_THEN))
        .withColumn("retrying", F.expr(_RETRYING))
    )
    return rows.select(
        "key",
        F.col("value_then").alias("value"),
        F.expr(_place("topic", "place[0]")).alias("topic"),
        F.expr(_place("partition", "try_cast(place[1] AS int)")).alias("partition"),
        F.expr(_place("offset", "try_cast(place[2] AS bigint)")).alias("offset"),
        "timestamp",
        "retrying",
    )


def _header(name: str) -> str:
    return f"element_at(filter(headers, header -> header.key = '{name}'), -1).value"


def _text(name: str) -> str:
    return f"cast({_header(name)} AS string)"


def _place(field: str, header: str) -> str:
    """Return SQL for a part of the origin; what never had one is its own."""
    return (
        f"CASE WHEN is_reject THEN reject.source.{field} "
        f"WHEN tier > 0 AND size(place) = 3 THEN {header} ELSE {field} END"
    )


_VALUE_THEN = (
    "CASE WHEN NOT is_reject THEN value "
    "WHEN reject.raw_base64 IS NOT NULL THEN unbase64(reject.raw_base64) "
    "ELSE cast(reject.raw AS binary) END"
)
_RETRYING = (
    "named_struct('tier', tier, "
    f"'attempts', CASE WHEN tier = 0 THEN 0 ELSE coalesce(try_cast({_text('attempts')} AS int), 0) "
    "+ 1 END, "
    f"'first', coalesce(try_cast({_text('first')} AS bigint), unix_millis(timestamp)), "
    f"'job', CASE WHEN tier = 0 THEN reject.job ELSE {_text('job')} END, "
    f"'reason', CASE WHEN is_reject THEN reject.reason WHEN tier = 0 THEN '{NOT_A_REJECT}' END, "
    "'detail', CASE WHEN is_reject THEN reject.detail END, "
    "'is_whole', NOT is_reject OR length(value_then) <=> reject.raw_bytes)"
)
_CAUSE = (
    f"CASE WHEN NOT retrying.is_whole THEN named_struct('reason', '{NOT_WHOLE}', "
    "'detail', concat('the reject lacks a part of the value; ', retrying.reason)) "
    "WHEN retrying.tier = 0 THEN named_struct('reason', retrying.reason, 'detail', retrying.detail)"
    " ELSE rejection END"
)
_SOURCE_TEXT = "concat_ws('/', topic, partition, offset)"


def _destination_sql(reasons: Sequence[str], ways: Ways) -> str:
    listed = ", ".join(f"'{reason}'" for reason in reasons) or "NULL"
    next_tier = " ".join(
        f"WHEN retrying.tier = {number} AND retry_cause.reason IN ({listed}) THEN '{topic}'"
        for number, (topic, _) in enumerate(ways.tiers)
    )
    return f"CASE WHEN retry_cause IS NULL THEN '{ways.target}' {next_tier} ELSE '{ways.dead}' END"


def _headers_sql(ways: Ways, now_ms: int) -> str:
    due = " ".join(
        f"WHEN retry_topic = '{topic}' THEN {now_ms + wait_ms}" for topic, wait_ms in ways.tiers
    )
    headers = {
        SOURCE_HEADER: _SOURCE_TEXT,
        "attempts": "retrying.attempts",
        "first": "retrying.first",
        "last": str(now_ms),
        "due": f"CASE {due} END" if due else "NULL",
        "reason": "retry_cause.reason",
        "detail": "retry_cause.detail",
        "job": "retrying.job",
    }
    structs = ", ".join(
        f"named_struct('key', '{name}', 'value', cast(cast({sql} AS string) AS binary))"
        for name, sql in headers.items()
    )
    return f"filter(array({structs}), header -> header.value IS NOT NULL)"


def _dead_json_sql(now_ms: int) -> str:
    return (
        "to_json(named_struct('reason', retry_cause.reason, 'detail', retry_cause.detail, "
        "'attempts', retrying.attempts, "
        "'first', timestamp_millis(retrying.first), "
        f"'last', timestamp_millis({now_ms}), 'job', retrying.job, "
        "'source', named_struct('topic', topic, 'partition', partition, 'offset', offset), "
        f"'raw', left(make_valid_utf8(text), {RAW_CHARACTERS}), "
        f"'raw_base64', {RAW_BASE64_SQL}, 'raw_bytes', length(value)), "
        "map('ignoreNullFields', 'false', 'timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSX\"))"
    )
