"""A table has each batch of its query once, and belongs to that query's checkpoint."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from spark_jobs.errors import BadOptionError
from spark_jobs.tables.kept_table import OF_BEFORE, KeptTable
from spark_jobs.tables.lakehouse_table import Merge
from tests.spark_jobs.data.outside_readers import rows_of
from tests.spark_jobs.data.table_params import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SUMS = Merge(("start", "name"), sums=("count",), instant="start")
Row = tuple[str, str | None, int]


@pytest.fixture(params=FORMATS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> KeptTable:
    """Return a table that a query has yet to make."""
    checkpoint = _checkpoint(tmp_path / "checkpoint", "7f3a")
    return KeptTable(tmp_path / "tables" / "sums", request.param, SUMS, checkpoint)


def _checkpoint(directory: Path, query: str) -> Path:
    directory.mkdir()
    (directory / "metadata").write_text(json.dumps({"id": query}))
    return directory


def _rows(spark: SparkSession, *rows: Row) -> DataFrame:
    frame = spark.createDataFrame([*rows], "start string, name string, count bigint")
    return frame.selectExpr("timestamp(start) AS start", "name", "count")


def _found(table: KeptTable) -> list[tuple[str, str | None, int]]:
    rows = [(row["start"][:10], row["name"], row["count"]) for row in rows_of(table.directory)]
    return sorted(rows, key=str)


def test_numbers_are_added_up_once_per_batch(spark: SparkSession, table: KeptTable) -> None:
    table.require_keeper(spark)
    table.take(_rows(spark, ("2013-03-01", "a", 1), ("2013-03-02", None, 7)), 0)
    batch = _rows(spark, ("2013-03-02", None, 2), ("2013-04-01", "b", 3))
    for _ in range(2):
        kept = table.take(batch, 1)
        matching = kept.matching(batch, SUMS).select("name", "count").collect()
        assert sorted(map(tuple, matching), key=str) == [("b", 3), (None, 9)]
    assert _found(table) == [
        ("2013-03-01", "a", 1),
        ("2013-03-02", None, 9),
        ("2013-04-01", "b", 3),
    ]
    table.require_keeper(spark)


def test_a_batch_without_rows_changes_nothing(spark: SparkSession, table: KeptTable) -> None:
    table.take(_rows(spark, ("2013-03-01", "a", 1)), 0)
    kept = table.take(_rows(spark), 1)
    assert kept.matching(_rows(spark), SUMS).count() == 0
    assert _found(table) == [("2013-03-01", "a", 1)]


def test_rows_with_new_keys_are_appended_once(spark: SparkSession, table: KeptTable) -> None:
    events = replace(table, how=Merge(SUMS.key, instant="start", has_new_keys=True))
    for number in (0, 1, 1):
        events.take(_rows(spark, ("2013-03-01", str(number), number)), number)
    assert _found(events) == [("2013-03-01", "0", 0), ("2013-03-01", "1", 1)]


def test_backfills_replace_rows_of_a_table_of_theirs(spark: SparkSession, table: KeptTable) -> None:
    filled = replace(table, checkpoint=None)
    for _ in range(2):
        filled.require_keeper(spark)
        filled.take(_rows(spark, ("2013-03-01", "a", 1), ("2013-03-01", "b", 2)), 0)
    assert _found(filled) == [("2013-03-01", "a", 1), ("2013-03-01", "b", 2)]
    with pytest.raises(BadOptionError, match="made from another checkpoint, or by a backfill"):
        table.require_keeper(spark)


def test_a_table_and_a_checkpoint_that_do_not_belong_together_are_told(
    spark: SparkSession, table: KeptTable, tmp_path: Path
) -> None:
    table.take(_rows(spark, ("2013-03-01", "a", 1)), 0)
    other = replace(table, checkpoint=_checkpoint(tmp_path / "other", "0000"))
    with pytest.raises(BadOptionError, match="made from another checkpoint"):
        other.require_keeper(spark)
    assert table.checkpoint is not None
    (table.checkpoint / "commits").mkdir()
    (table.checkpoint / "commits" / "0").touch()
    lost = replace(table, directory=tmp_path / "tables" / "lost")
    with pytest.raises(BadOptionError, match="lacks what the checkpoint has counted already"):
        lost.require_keeper(spark)


def test_a_table_that_is_deleted_under_its_query_is_not_made_anew(
    spark: SparkSession, table: KeptTable
) -> None:
    table.take(_rows(spark, ("2013-03-01", "a", 1)), 0)
    assert table.checkpoint is not None
    (table.checkpoint / "commits").mkdir()
    (table.checkpoint / "commits" / "0").touch()
    shutil.rmtree(table.directory)
    with pytest.raises(BadOptionError, match="lacks what the checkpoint has counted already"):
        table.take(_rows(spark, ("2013-03-01", "a", 1)), 1)


def test_a_table_of_an_earlier_version_is_told(spark: SparkSession, table: KeptTable) -> None:
    table.directory.mkdir(parents=True)
    (table.directory / OF_BEFORE).write_text("{}")
    with pytest.raises(BadOptionError, match="a table of an earlier version, lines of JSON"):
        table.require_keeper(spark)


def test_a_damaged_checkpoint_is_named(spark: SparkSession, table: KeptTable) -> None:
    assert table.checkpoint is not None
    table.take(_rows(spark, ("2013-03-01", "a", 1)), 0)
    (table.checkpoint / "metadata").write_text("{")
    with pytest.raises(BadOptionError, match=r"--checkpoint: .*metadata is damaged"):
        table.require_keeper(spark)
