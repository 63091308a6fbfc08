"""Finding out which format a directory has, before Spark runs, and opening it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.errors import BadOptionError
from spark_jobs.paths import require_directory
from spark_jobs.tables.delta_table import DeltaTable
from spark_jobs.tables.iceberg_table import IcebergTable
from spark_jobs.tables.table_format import TableFormat

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_jobs.tables.lakehouse_table import LakehouseTable, Shape


_TABLES: dict[TableFormat, type[LakehouseTable]] = {
    TableFormat.DELTA: DeltaTable,
    TableFormat.ICEBERG: IcebergTable,
}
_MARKS = {TableFormat.DELTA: "_delta_log", TableFormat.ICEBERG: "metadata/version-hint.text"}


def format_of(directory: Path) -> TableFormat | None:
    """Return the format of the table in a directory, if there is one."""
    return next((kind for kind, mark in _MARKS.items() if (directory / mark).exists()), None)


def require_table(flag: str, directory: Path) -> TableFormat:
    """Return the format of the table in a directory; raise `BadOptionError` if there is none."""
    found = format_of(directory)
    if found is None:
        raise BadOptionError(f"{flag}: {directory} holds no table, neither of Delta nor of Iceberg")
    return found


def open_table(spark: SparkSession, flag: str, directory: Path) -> LakehouseTable:
    """Return the table in a directory; raise `BadOptionError` if there is none."""
    return _TABLES[require_table(flag, directory)](spark, directory)


def open_or_create(
    spark: SparkSession, flag: str, directory: Path, kind: TableFormat, shape: Shape
) -> LakehouseTable:
    """Return the table in a directory, made if it is not there, with all columns of `shape`.

    Raises `BadOptionError` when it has another format, or a column of another type.
    """
    require_directory(flag, directory)
    found = format_of(directory)
    if found not in {None, kind}:
        raise BadOptionError(
            f"{flag}: {directory} is a table of {found}, and here it is {kind}: say --format "
            f"{found}, or use another directory"
        )
    table = _TABLES[kind](spark, directory)
    if found is None:
        table.create(shape)
    known = table.columns()
    for name, sql_type in shape.columns.items():
        if known.get(name, sql_type) != sql_type:
            raise BadOptionError(
                f"{flag}: in {directory} the column '{name}' is {known[name]}, and the definition "
                f"makes it {sql_type}: give the field another name, or use another directory"
            )
    table.add_columns({n: t for n, t in shape.columns.items() if n not in known})
    return table
