"""A table of either format takes each batch once, and reads outside Spark find its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from spark_jobs.errors import BadOptionError
from spark_jobs.tables.lakehouse_table import NO_COMMIT, Commit, Merge, Shape
from spark_jobs.tables.open_tables import format_of, open_or_create, open_table
from spark_jobs.tables.table_format import TableFormat
from tests.spark_jobs.data.outside_readers import arrow_table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.tables.lakehouse_table import LakehouseTable

SHAPE = Shape(
    {"origin": "string", "flights": "bigint", "latest": "int", "day": "date"},
    partition_by=("day",),
    properties={"topic": "flights"},
)


@pytest.fixture(params=[*TableFormat])
def table(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> LakehouseTable:
    """Return an empty table."""
    return open_or_create(spark, "--directory", tmp_path / "a table", request.param, SHAPE)


def _rows(spark: SparkSession, *rows: tuple[str, int, int]) -> DataFrame:
    values = ", ".join(f"('{o}', {f}L, {n}, DATE '2013-03-0{n}')" for o, f, n in rows)
    return spark.sql(f"SELECT * FROM VALUES {values} AS t(origin, flights, latest, day)")


def _found(table: LakehouseTable) -> list[tuple[Any, ...]]:
    """Return the rows as DuckDB has them."""
    rows = arrow_table(table.directory)  # noqa: F841 - DuckDB takes it by its name
    found = duckdb.execute("SELECT origin, flights, latest FROM rows ORDER BY ALL")
    return found.fetchall()


def test_a_batch_is_appended_once(spark: SparkSession, table: LakehouseTable) -> None:
    first, second = _rows(spark, ("EWR", 1, 1)), _rows(spark, ("JFK", 2, 2))
    assert table.last_number("job") == NO_COMMIT
    assert table.append(first, Commit("job", 0, {"taken": [0, 5]}))
    assert not table.append(first, Commit("job", 0))
    assert table.append(second, Commit("another", 0))
    assert table.last_number("job") == 0
    assert _found(table) == [("EWR", 1, 1), ("JFK", 2, 2)]
    assert table.newest_notes() == {"taken": [0, 5]}
    assert table.properties() == SHAPE.properties


def test_rows_are_merged_by_key_and_sums_are_added_once(
    spark: SparkSession, table: LakehouseTable
) -> None:
    how = Merge(("origin",), sums=("flights",))
    table.merge(_rows(spark, ("EWR", 10, 1), ("JFK", 1, 1)), how, Commit("job", 3))
    batch = _rows(spark, ("EWR", 5, 2), ("LGA", 7, 2))
    assert table.merge(batch, how, Commit("job", 4))
    assert not table.merge(batch, how, Commit("job", 4))
    assert _found(table) == [("EWR", 15, 2), ("JFK", 1, 1), ("LGA", 7, 2)]
    assert table.merge(batch, Merge(("origin",)), Commit("job", 5))
    assert _found(table) == [("EWR", 5, 2), ("JFK", 1, 1), ("LGA", 7, 2)]


def test_a_compacted_table_has_the_same_rows_and_its_commits_are_known(
    spark: SparkSession, table: LakehouseTable
) -> None:
    for number in range(3):
        table.append(_rows(spark, ("EWR", number, 1)), Commit("job", number, {"at": number}))
    before = _found(table)
    outcome = table.optimize(1 << 20)
    assert (outcome.files_before, outcome.files_after) == (3, 1)
    table.vacuum(0)
    assert _found(table) == before
    assert len([*table.directory.rglob("day=*/*.parquet")]) == 1
    assert table.last_number("job") == 2
    assert table.newest_notes() == {"at": 2}
    assert all(change.is_ours for change in table.history())
    assert not table.append(_rows(spark, ("EWR", 2, 1)), Commit("job", 2))


def test_an_older_version_is_read_and_a_change_by_others_is_told(
    spark: SparkSession, table: LakehouseTable
) -> None:
    table.append(_rows(spark, ("EWR", 1, 1), ("JFK", 2, 1)), Commit("job", 0))
    version = table.history()[0].version
    table.run(f"DELETE FROM {table.name} WHERE origin = 'JFK'")
    assert [change.is_ours for change in table.history()][:2] == [False, True]
    assert _found(table) == [("EWR", 1, 1)]
    assert table.read(version).count() == 2


def test_a_column_that_is_added_is_null_in_rows_of_before(
    spark: SparkSession, table: LakehouseTable
) -> None:
    table.append(_rows(spark, ("EWR", 1, 1)), Commit("job", 0))
    kind = format_of(table.directory)
    assert kind is not None
    grown = Shape({**SHAPE.columns, "gate": "string"})
    table = open_or_create(spark, "--directory", table.directory, kind, grown)
    table.append(_rows(spark, ("JFK", 2, 2)).selectExpr("*", "'B7' AS gate"), Commit("job", 1))
    assert arrow_table(table.directory).sort_by("origin")["gate"].to_pylist() == [None, "B7"]
    with pytest.raises(BadOptionError, match="'gate' is string, and the definition makes it int"):
        open_or_create(spark, "--directory", table.directory, kind, Shape({"gate": "int"}))


def test_a_table_of_the_other_format_is_refused(spark: SparkSession, table: LakehouseTable) -> None:
    [other] = {*TableFormat} - {format_of(table.directory)}
    with pytest.raises(BadOptionError, match=r"is a table of (delta|iceberg), and here"):
        open_or_create(spark, "--directory", table.directory, other, SHAPE)
    with pytest.raises(BadOptionError, match="holds no table, neither of Delta nor of Iceberg"):
        open_table(spark, "--directory", table.directory.parent)
