"""A row of the archive: where its record came from, what it was, and how to tell that it is whole.

    topic, partition, offset, timestamp, key      as in the topic
    value_bytes, value_crc32                      length of the record's value, and its CRC-32
    event_time                                    as the definition makes it
    <field>                                       each field of the record
    row_crc32                                     CRC-32 of all these, see `row_crc32_sql`
    event_date, event_hour                        of `event_time`, UTC; they name the directory

Columns that a definition makes of the fields are not archived: whoever reads can make them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.field_sql import column_type
from spark_jobs.definitions.rejects import reject_json_sql, reject_key_sql
from spark_jobs.errors import BadOptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from spark_jobs.definitions.definition import Record

ORIGIN = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "key": "binary",
    "value_bytes": "int",
    "value_crc32": "bigint",
    "event_time": "timestamp",
}
"""Columns of every row, before the fields."""

ROW_CRC32 = "row_crc32"
PLACE = {"event_date": "date", "event_hour": "int"}
"""Columns that are directories."""


def field_columns(record: Record) -> dict[str, str]:
    """Return the columns of the record's fields, and their types in SQL.

    Raises `BadOptionError` for a field that has the name of another column of the archive.
    """
    reserved = {*ORIGIN, ROW_CRC32, *PLACE}
    for name in record.fields:
        if name in reserved:
            raise BadOptionError(
                f"--definition: record.fields.{name}: the archive has a column of this name"
            )
    fields = {name: column_type(field) for name, field in record.fields.items()}
    return fields | record.envelope_columns()


def schema_sql(columns: Mapping[str, str]) -> str:
    """Return the schema of an archive with these field columns."""
    every = {**ORIGIN, **columns, ROW_CRC32: "bigint", **PLACE}
    return ", ".join(f"`{name}` {kind}" for name, kind in every.items())


def row_crc32_sql(columns: Mapping[str, str]) -> str:
    """Return SQL for the checksum of a row.

    It is taken of JSON with the columns by name and without those that are NULL, so that it stays
    the same when columns are added.
    """
    names = ", ".join(f"`{name}`" for name in sorted({**ORIGIN, **columns}))
    how = "map('timeZone', 'UTC', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
    return f"crc32(cast(to_json(struct({names}), {how}) AS binary))"


def archive_rows(parsed: DataFrame, columns: Mapping[str, str], job: str) -> DataFrame:
    """Return a row for each parsed record; rejected ones have their reject as `reject`.

    Of `columns`, which are the archive's, those that the records do not have are NULL.
    """
    known = set(parsed.columns)
    rows = parsed.withColumns(
        {
            "value_bytes": F.length("value"),
            "value_crc32": F.crc32("value"),
            "reject": F.expr(f"CASE WHEN rejection IS NOT NULL THEN {reject_json_sql(job)} END"),
            "reject_key": F.expr(f"CASE WHEN rejection IS NOT NULL THEN {reject_key_sql()} END"),
            **{n: F.lit(None).cast(kind) for n, kind in columns.items() if n not in known},
        }
    )
    return rows.select(
        *ORIGIN,
        *columns,
        F.expr(row_crc32_sql(columns)).alias(ROW_CRC32),
        F.expr("cast(event_time AS date)").alias("event_date"),
        F.date_format("event_time", "HH").alias("event_hour"),
        "reject",
        "reject_key",
    )
