"""What is kept of a record that a job cannot use: the reject, the same for all jobs.

A reject is a JSON object:

    reason      short and stable: what to count and select by
    detail      for a person: which key, which value
    job         the job that rejected it
    source      topic, partition and offset it came from
    raw         its value as text, at most `RAW_CHARACTERS` of it
    raw_base64  the bytes, exact, where `raw` is not them (no UTF-8, or Avro) and they are not too
                many; else NULL
    raw_bytes   how long the value was; NULL for a record without one

and has the record's key, unless that is longer than `KEY_BYTES`, and the header `source`
(`flights/0/123`): Spark's sink is at-least-once, and equal copies have equal sources.

Whatever the record was, its reject is shorter than the megabyte that topics take by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCE_HEADER = "source"
RAW_CHARACTERS = 100_000
"""As JSON at worst six times as many bytes: a control character is `\\u0000`."""

RAW_BASE64_BYTES = 150_000
"""As base64 a third more."""

KEY_BYTES = 10_000
DETAIL_CHARACTERS = 1_000

RAW_BASE64_SQL = (
    "CASE WHEN NOT (is_valid_utf8(text) AND cast(text AS binary) = value) "
    f"AND length(value) <= {RAW_BASE64_BYTES} THEN base64(value) END"
)

SOURCE_SQL = "named_struct('topic', topic, 'partition', partition, 'offset', offset)"

HEADERS_SQL = (
    f"array(named_struct('key', '{SOURCE_HEADER}', "
    "'value', cast(concat_ws('/', topic, partition, offset) AS binary)))"
)
"""The header `source`, from the columns topic, partition and offset."""

KEEP_NULLS = "map('ignoreNullFields', 'false', 'timestampFormat', \"yyyy-MM-dd'T'HH:mm:ssX\")"
"""Options of `to_json` for records: all keys, and instants in seconds of UTC."""

KEEP_MICROSECONDS = (
    "map('ignoreNullFields', 'false', 'timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSX\", "
    "'timestampNTZFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\")"
)
"""The same for records with timestamps among their fields."""


def reject_json_sql(job: str) -> str:
    """Return SQL for the reject of a parsed record (`typed_records`) that has a `rejection`."""
    return (
        "to_json(named_struct('reason', rejection.reason, "
        f"'detail', left(rejection.detail, {DETAIL_CHARACTERS}), "
        f"'job', '{job}', 'source', {SOURCE_SQL}, "
        f"'raw', left(make_valid_utf8(text), {RAW_CHARACTERS}), "
        f"'raw_base64', {RAW_BASE64_SQL}, "
        f"'raw_bytes', length(value)), {KEEP_NULLS})"
    )


def reject_key_sql() -> str:
    """Return SQL for the key of a record's reject."""
    return f"CASE WHEN length(key) <= {KEY_BYTES} THEN key END"


def reject_sql(job: str) -> str:
    """Return SQL for a parsed record's reject as a struct; NULL for a valid record."""
    return (
        "CASE WHEN rejection IS NOT NULL THEN named_struct('partition', partition, "
        f"'offset', offset, 'key', {reject_key_sql()}, "
        f"'value', cast({reject_json_sql(job)} AS binary), 'headers', {HEADERS_SQL}) END"
    )


def rejects(parsed: DataFrame, job: str, topic: str) -> DataFrame:
    """Return the rejected ones of parsed records as records to write to `topic`."""
    structs = parsed.where("rejection IS NOT NULL").select(F.expr(reject_sql(job)).alias("reject"))
    return _records(structs, topic)


def collected_rejects(rows: DataFrame, topic: str) -> DataFrame:
    """Return the rejects of a batch (column `reject`) as records to write to `topic`.

    Whatever order the rows are in, rejects of a partition are written in the order they had in it.
    """
    structs = rows.where("reject IS NOT NULL").select("reject")
    in_order = structs.repartition("reject.partition").sortWithinPartitions("reject.offset")
    return _records(in_order, topic)


def _records(structs: DataFrame, topic: str) -> DataFrame:
    return structs.select(
        "reject.key", "reject.value", F.lit(topic).alias("topic"), "reject.headers"
    )
