"""What a valid record goes on as, from a section of a definition, and how it is written.

    leave_out = ["hour_time"]          fields and made columns that the output lacks
    columns = ["carrier", "flight"]    or the ones to take, in order
    key = "tailnum"                    SQL for the record's key, instead of the one it came with
    max_bytes = 1_000_000              longer outputs are rejected as `too-large-output`
    [SECTION.also]
    kmh = "distance / air_time * 97"   SQL; more keys

An output is a JSON object: the fields and made columns, what the job adds, the keys of `also`, and
last `source`: topic, partition and offset it came from, which the header `source` has too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, PositiveInt
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.definitions.fields import ColumnName, Section
from spark_jobs.definitions.rejects import (
    HEADERS_SQL,
    KEEP_MICROSECONDS,
    KEEP_NULLS,
    SOURCE_SQL,
    reject_json_sql,
    reject_key_sql,
)
from spark_jobs.definitions.typed_records import columns_made, require_sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from spark_jobs.definitions.definition import Definition, Record

TOO_LARGE = "too-large-output"


class Output(Section):
    """What a record goes on as."""

    columns: tuple[ColumnName, ...] | None = None
    """fields and made columns to take, in order; all when not given"""

    leave_out: tuple[ColumnName, ...] = ()
    """columns not to take"""

    also: dict[ColumnName, str] = Field(default={})
    """SQL of further keys"""

    key: str | None = None
    """SQL of the record's key, written as text; the key it came with when not given"""


class OutputSection(Output):
    """A section whose outputs are written to topics."""

    max_bytes: PositiveInt = 1_000_000
    """longer outputs, key included, are rejected: topics take about 1 MB by default"""


def json_sql(output: Output, record: Record, made: Sequence[str]) -> str:
    """Return SQL for an output as text; `made` are the columns that the job adds."""
    every = (*record.fields, *columns_made(record))
    columns = every if output.columns is None else output.columns
    pairs = {name: name for name in (*columns, *made) if name not in output.leave_out}
    pairs |= output.also | {"source": SOURCE_SQL}
    listed = ", ".join(f"'{name}', {sql}" for name, sql in pairs.items())
    has_times = any("timestamp" in field.kinds() for field in record.fields.values())
    return f"to_json(named_struct({listed}), {KEEP_MICROSECONDS if has_times else KEEP_NULLS})"


def key_sql(output: Output) -> str:
    """Return SQL for an output's key, as bytes."""
    return "key" if output.key is None else f"cast(cast({output.key} AS string) AS binary)"


def require_output(rows: DataFrame, definition: Definition, place: str, output: Output) -> None:
    """Raise `BadOptionError` that names the expression of `output` which Spark refuses."""
    for name in output.columns or ():
        require_sql(rows, definition, f"{place}.columns", name)
    for name in output.leave_out:
        require_sql(rows, definition, f"{place}.leave_out", name)
    for name, sql in output.also.items():
        require_sql(rows, definition, f"{place}.also.{name}", sql)
    if output.key is not None:
        require_sql(rows, definition, f"{place}.key", output.key)


def rejection_sql(max_bytes: int, reasons: str = "") -> str:
    """Return SQL for the `rejection` of a record with `output` and `output_key`.

    `reasons` are WHEN clauses for what the job itself finds wrong with a valid record.
    """
    size = "octet_length(output) + coalesce(length(output_key), 0)"
    return (
        f"CASE WHEN rejection IS NOT NULL THEN rejection {reasons} "
        f"WHEN {size} > {max_bytes} THEN named_struct('reason', '{TOO_LARGE}', "
        f"'detail', concat({size}, ' bytes, at most {max_bytes}')) END"
    )


def written(rows: DataFrame, job: str, topic_sql: str, rejects_topic: str) -> DataFrame:
    """Return what to write of records with `rejection`, `output` and `output_key`."""
    return rows.select(
        _unless_rejected("output_key", reject_key_sql()).alias("key"),
        _unless_rejected("output", reject_json_sql(job)).cast("binary").alias("value"),
        _unless_rejected(topic_sql, f"'{rejects_topic}'").alias("topic"),
        F.expr(HEADERS_SQL).alias("headers"),
    )


def _unless_rejected(sql: str, reject_sql: str) -> Column:
    return F.expr(f"CASE WHEN rejection IS NULL THEN {sql} ELSE {reject_sql} END")
