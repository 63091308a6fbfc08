"""A batch that comes again, whole or in parts, is in the archive once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_jobs.archive.archive_rows import archive_rows
from spark_jobs.archive.archive_table import open_archive, taken_offsets
from spark_jobs.archive.archive_writer import ArchiveWriter
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.errors import JobError
from spark_jobs.jobs.archive import NAME, ArchiveOptions
from spark_jobs.options import DefinitionOptions
from spark_jobs.spark.streams import read_batch
from tests.spark_jobs.data import days
from tests.spark_jobs.data.archives import options_for, places, places_of_flights
from tests.spark_jobs.data.table_params import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.tables.lakehouse_table import Commit, LakehouseTable

LINES = slice(0, 200)
COLUMNS = {"distance": "bigint", "flight": "bigint"}
QUERY = "9f3c"


class Died(BaseException):
    """The process is gone."""


@pytest.fixture(scope="module")
def topic(servers: str, new_name: Callable[[str], str]) -> str:
    """Produce some lines to a topic."""
    topic = new_name("dying")
    days.make_topic(servers, topic)
    days.produce_lines(servers, topic, days.lines()[LINES])
    return topic


@pytest.fixture(params=FORMATS)
def options(
    request: pytest.FixtureRequest, servers: str, topic: str, tmp_path: Path
) -> ArchiveOptions:
    """Return options for an archive in each format."""
    return options_for(servers, topic, tmp_path, format=request.param)


@pytest.fixture
def batch(spark: SparkSession, options: ArchiveOptions) -> DataFrame:
    """Return the lines as one batch."""
    records = read_batch(spark, options, [options.topic])
    definition = DefinitionOptions().load_definition()
    return archive_rows(parsed(spark, records, definition), COLUMNS, NAME)


def _table(spark: SparkSession, options: ArchiveOptions) -> LakehouseTable:
    return open_archive(spark, options.directory, options.format, options.topic, COLUMNS)


def _dying(table: LakehouseTable) -> LakehouseTable:
    """Return the table for a process that dies when it has committed."""

    class Dying(type(table)):  # type: ignore[misc]
        def append(self, rows: DataFrame, commit: Commit) -> bool:
            super().append(rows, commit)
            raise Died

    return Dying(table.spark, table.directory)


def _unread(table: LakehouseTable) -> LakehouseTable:
    """Return the table for a process that must not read its rows."""

    class Unread(type(table)):  # type: ignore[misc]
        def read(self, version: int | None = None) -> DataFrame:
            raise AssertionError(version)

    return Unread(table.spark, table.directory)


def test_a_batch_whose_process_died_is_recognized_by_the_tables_history(
    spark: SparkSession, options: ArchiveOptions, batch: DataFrame
) -> None:
    table = _table(spark, options)
    first, second = batch.where("offset < 20"), batch.where("offset >= 20")
    with pytest.raises(Died):
        ArchiveWriter(_dying(table), options, None).take(first, (QUERY, 0))
    again = ArchiveWriter(_unread(table), options, None)
    again.take(first, (QUERY, 0))
    again.take(second, (QUERY, 1))
    assert places(options) == places_of_flights(options)
    last = batch.selectExpr("max(offset)").collect()[0][0]
    assert max(offset for _, offset in taken_offsets(table, table.newest_notes()).values()) == last


@pytest.mark.slow
def test_batches_that_overlap_are_archived_once(
    spark: SparkSession, options: ArchiveOptions, batch: DataFrame
) -> None:
    for chosen in ("offset BETWEEN 10 AND 30", "offset % 3 = 0", "true"):
        # Each time another process, and a number that says nothing.
        writer = ArchiveWriter(_table(spark, options), options, None)
        writer.take(batch.where(chosen), (QUERY, 7))
    assert places(options) == places_of_flights(options)


def test_another_record_in_the_place_of_one_ends_the_job(
    spark: SparkSession, options: ArchiveOptions, batch: DataFrame
) -> None:
    writer = ArchiveWriter(_table(spark, options), options, None)
    writer.take(batch.where("offset < 20"))
    other = batch.where("offset = 11").selectExpr(
        *(f"5L AS {name}" if name == "value_crc32" else name for name in batch.columns)
    )
    with pytest.raises(JobError, match=r"another record for partition \d, offset 11: the topic"):
        writer.take(other)


@pytest.mark.slow
def test_what_is_taken_is_told_by_the_rows_when_the_history_is_gone(
    spark: SparkSession, options: ArchiveOptions, batch: DataFrame
) -> None:
    table = _table(spark, options)
    ArchiveWriter(table, options, None).take(batch)

    class Forgetful(type(table)):  # type: ignore[misc]
        def history(self) -> list[object]:
            return []

    table = Forgetful(spark, table.directory)
    flights = places_of_flights(options)
    assert taken_offsets(table, table.newest_notes()) == {
        partition: (min(offsets), max(offsets))
        for partition in range(days.PARTITIONS)
        if (offsets := [offset for number, offset in flights if number == partition])
    }
    ArchiveWriter(table, options, None).take(batch)
    assert places(options) == flights
