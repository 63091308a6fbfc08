"""A row of the archive: where its record came from, what it was, and how to tell that it is whole.

    topic, partition, offset, timestamp, key      as in the topic
    value_bytes, value_crc32                      length of the record's value, and its CRC-32
    event_time                                    as the definition makes it
    <field>                                       each field of the record
    row_hash                                      xxHash64 of all these, see `row_hash_sql`
    event_date                                    of `event_time`, UTC; the table's partition

Columns that a definition makes of the fields are not archived: whoever reads can make them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.field_sql import column_type
from spark_jobs.definitions.rejects import reject_sql
from spark_jobs.errors import BadOptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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

ROW_HASH = "row_hash"
EVENT_DATE = "event_date"


def field_columns(record: Record) -> dict[str, str]:
    """Return the columns of the record's fields, and their types in SQL.

    Raises `BadOptionError` for a field that has the name of another column of the archive.
    """
    for name in record.fields:
        if name in every_column({}):
            raise BadOptionError(
                f"--definition: record.fields.{name}: the archive has a column of this name"
            )
    fields = {name: column_type(field) for name, field in record.fields.items()}
    return fields | record.envelope_columns()


def every_column(fields: Mapping[str, str]) -> dict[str, str]:
    """Return all columns of an archive with these fields, and their types in SQL."""
    return {**ORIGIN, **fields, ROW_HASH: "bigint", EVENT_DATE: "date"}


def row_hash_sql(columns: Iterable[str]) -> str:
    """Return SQL for the hash of a row with these columns.

    It is taken of the columns by name; one that is NULL adds nothing to it, so it stays the same
    when columns are added.
    """
    hashed = sorted({*columns} - {ROW_HASH, EVENT_DATE})
    return f"xxhash64({', '.join(f'`{name}`' for name in hashed)})"


def archive_rows(parsed: DataFrame, fields: Iterable[str], job: str) -> DataFrame:
    """Return a row for each parsed record; rejected ones have their reject as `reject`."""
    rows = parsed.withColumns(
        {
            "value_bytes": F.length("value"),
            "value_crc32": F.crc32("value"),
            "reject": F.expr(reject_sql(job)),
        }
    )
    columns = [*ORIGIN, *fields]
    return rows.select(
        *columns,
        F.expr(row_hash_sql(columns)).alias(ROW_HASH),
        F.expr("cast(event_time AS date)").alias(EVENT_DATE),
        "reject",
    )
