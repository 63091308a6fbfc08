"""What is kept of a record that a job cannot use: the reject, the same for all jobs.

A reject is a JSON object:

    reason      short and stable: what to count and select by
    detail      for a person: which key, which value
    job         the job that rejected it
    source      topic, partition and offset it came from
    raw         its value as text, at most `RAW_CHARACTERS` of it
    raw_base64  the bytes, exact, where they are not UTF-8 and not too many; else NULL
    raw_bytes   how long the value was; NULL for a record without one

and has the record's key, and the header `source` (`flights/0/123`): Spark's sink is
at-least-once, and equal copies have equal sources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SOURCE_HEADER = "source"
RAW_CHARACTERS = 200_000
"""As JSON at worst six times as many bytes; with the usual `max.message.bytes` of 1 MB it fits
for all but texts of control characters."""

SOURCE_SQL = "named_struct('topic', topic, 'partition', partition, 'offset', offset)"

HEADERS_SQL = (
    f"array(named_struct('key', '{SOURCE_HEADER}', "
    "'value', cast(concat_ws('/', topic, partition, offset) AS binary)))"
)
"""The header `source`, from the columns topic, partition and offset."""

KEEP_NULLS = "map('ignoreNullFields', 'false', 'timestampFormat', \"yyyy-MM-dd'T'HH:mm:ssX\")"
"""Options of `to_json` for records: all keys, and instants in seconds of UTC."""


def reject_json_sql(job: str) -> str:
    """Return SQL for the reject of a parsed record (`parsed`) that has a `rejection`."""
    return (
        "to_json(named_struct('reason', rejection.reason, 'detail', rejection.detail, "
        f"'job', '{job}', 'source', {SOURCE_SQL}, "
        f"'raw', left(make_valid_utf8(text), {RAW_CHARACTERS}), "
        f"'raw_base64', CASE WHEN NOT is_valid_utf8(text) AND length(value) <= {RAW_CHARACTERS} "
        "THEN base64(value) END, "
        f"'raw_bytes', length(value)), {KEEP_NULLS})"
    )


def rejects(parsed: DataFrame, job: str, topic: str) -> DataFrame:
    """Return the rejected ones of parsed records as records to write to `topic`."""
    return parsed.where("rejection IS NOT NULL").select(
        "key",
        F.expr(reject_json_sql(job)).cast("binary").alias("value"),
        F.lit(topic).alias("topic"),
        F.expr(HEADERS_SQL).alias("headers"),
    )
