"""Typed columns out of raw records: fields, names, event time, and what is wrong with them.

Every job starts here, so that all agree on what a valid record is. To the columns of Spark's
Kafka source (key, value, topic, partition, offset, timestamp) are added:

    text                        the value as a string
    is_typed                    whether it has all fields, no others, and their types
    <field>                     its value; of no meaning in a record that is rejected
    <column>, <table's column>  as the definition makes them
    event_time                  an instant, NULL when there is none
    rejection                   struct (reason, detail); NULL for a valid record

All of it is Spark SQL: no Python runs on the executors.
"""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

from spark_jobs.avro.decoded_rows import UNDECODABLE, with_text
from spark_jobs.definitions.field_sql import quoted, value_sql
from spark_jobs.definitions.fields import key_of
from spark_jobs.definitions.rejection_rules import rejection_sql
from spark_jobs.errors import BadOptionError, JobError
from spark_jobs.record_formats.formats import format_of
from spark_jobs.spark.local_tables import local_table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from spark_jobs.definitions.definition import Definition, Record, Table
    from spark_jobs.record_formats.formats import RecordFormat

INNER_COLUMNS = (
    *("document", "record_fields"),
    *("record_envelope", "record_change", "record_place", "row_document"),
)
"""Columns of the formats, of use only to find what is wrong."""

CONDITIONS = frozenset({"boolean", "void"})
"""Types of what may stand after WHEN."""


def parsed(spark: SparkSession, records: DataFrame, definition: Definition) -> DataFrame:
    """Add to each record what the module's docstring lists.

    Raises `BadOptionError` that names the expression of the definition which Spark refuses.
    """
    record = definition.record
    reading = format_of(record)
    rows = _with_text(records, definition)
    for name, sql in reading.columns().items():
        rows = rows.withColumn(name, F.expr(sql))
    rows = rows.select("*", *_columns(reading)).withColumn("is_typed", F.expr(reading.is_typed()))
    for name, sql in record.columns.items():
        require_sql(rows, definition, f"record.columns.{name}", sql)
        rows = rows.withColumn(name, F.expr(sql))
    for table in record.tables:
        rows = rows.join(F.broadcast(_table(spark, table, definition)), table.column, "left")
    require_sql(rows, definition, "record.event_time", record.event_time)
    rows = rows.withColumn("event_time", F.expr(record.event_time).cast("timestamp"))
    _require_rules(rows, definition)
    rejection = rejection_sql(record, reading)
    if definition.values is not None:
        rejection = f"coalesce({UNDECODABLE}, {rejection})"
    rows = rows.withColumn("rejection", F.expr(rejection))
    return _behind_a_list(rows.drop(*INNER_COLUMNS, UNDECODABLE))


def _with_text(records: DataFrame, definition: Definition) -> DataFrame:
    if definition.values is None:
        return records.withColumn("text", F.col("value").cast("string"))
    return with_text(records, definition.values)


def _columns(reading: RecordFormat) -> list[Column]:
    """Return the columns of the fields.

    `from_json` takes text for a number, and a number for text, which a variant does not; but where
    all types are right it gives the same for a fifth of the processor time, and decimals exactly.
    """
    return [
        F.expr(value_sql(field, f"record_fields.{quoted(key_of(name, field))}")).alias(name)
        for name, field in reading.fields().items()
    ]


def _behind_a_list(rows: DataFrame) -> DataFrame:
    """Return the same rows, of whose `rejection` filters take what it is, not how it was made.

    Spark moves a filter down to the records, with the SQL of each column in the column's place:
    the JSON would be parsed anew for each rule, for five times the processor time in all. It
    moves none through `inline`; so the rejection passes that, as a list of one.
    """
    others = [name for name in rows.columns if name != "rejection"]
    return rows.select(*others, F.expr("inline(array(named_struct('rejection', rejection)))"))


def columns_made(record: Record) -> list[str]:
    """Return the columns beside the fields, in order: those of SQL, then those of tables."""
    return [*record.envelope_columns(), *record.columns, *(table.adds for table in record.tables)]


def require_sql(
    rows: DataFrame, definition: Definition, place: str, sql: str, *, is_condition: bool = False
) -> None:
    """Raise `BadOptionError` that names `place` in the file when Spark cannot take `sql`."""
    try:
        found = rows.select("*", F.expr(f"({sql})")).schema.fields[-1].dataType.simpleString()
    except PySparkException as error:
        words = str(error).strip().partition("\n")[0]
        raise BadOptionError(f"--definition: {definition.path}: {place}: {words}") from error
    if is_condition and found not in CONDITIONS:
        raise BadOptionError(
            f"--definition: {definition.path}: {place}: expected a condition, '{sql}' is {found}"
        )


def _require_rules(rows: DataFrame, definition: Definition) -> None:
    """Have Spark look at all rules at once; one by one, to name it, if one is wrong."""
    rules = definition.record.rules
    try:
        conditions = rows.select("*", *(F.expr(f"({rule.when})") for rule in rules)).schema.fields
        found = {field.dataType.simpleString() for field in conditions[len(rows.columns) :]}
        _ = rows.select("*", *(F.expr(f"({rule.detail})") for rule in rules)).schema
        is_right = found <= CONDITIONS
    except PySparkException:
        is_right = False
    if not is_right:
        for index, rule in enumerate(rules):
            place = f"record.rules.{index}"
            require_sql(rows, definition, f"{place}.when", rule.when, is_condition=True)
            require_sql(rows, definition, f"{place}.detail", rule.detail)


def _table(spark: SparkSession, table: Table, definition: Definition) -> DataFrame:
    path = table_file(table.file, definition)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            found = {row[table.key]: row[table.value] for row in csv.DictReader(file)}
    except OSError as error:
        raise JobError(f"{path}: {error.strerror}, wanted by {definition.path}") from error
    except KeyError as error:
        raise BadOptionError(f"--definition: {path} has no column {error}") from error
    rows = sorted((found | table.extra).items())
    return local_table(spark, rows, {table.column: "string", table.adds: "string"})


def table_file(name: str, definition: Definition) -> Path:
    """Return the path of a file that a definition names: beside it, or in a Python package."""
    package, colon, path = name.partition(":")
    if not colon:
        return definition.path.parent / name
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise JobError(f"the package {package} is missing: pip install {package}")
    return Path(found.origin).parent / path
