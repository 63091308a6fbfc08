"""A batch that dies at any of its steps is in the archive once when it has come again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_jobs.archive.archive_directory import ArchiveDirectory, Ledger, files_of
from spark_jobs.archive.archive_reader import read_archive
from spark_jobs.archive.archive_rows import archive_rows
from spark_jobs.archive.archive_writer import archive_batch
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.jobs.archive import NAME, ArchiveOptions
from spark_jobs.options import DefinitionOptions
from spark_jobs.spark.streams import read_batch
from tests.spark_jobs.data import days
from tests.spark_jobs.data.archives import listed, options_for, places, places_of_flights

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.archive.archive_directory import Pending

LINES = slice(0, 200)
COLUMNS = {"distance": "bigint", "flight": "bigint"}


class Died(BaseException):
    """The process is gone."""


class Dying(ArchiveDirectory):
    """An archive whose process dies at a step."""

    def __init__(self, path: Path, step: str) -> None:
        super().__init__(path)
        self.step = step

    def publish(self, ranges: Mapping[int, tuple[int, int]], pending: Pending) -> None:
        if self.step == "files are staged":
            raise Died
        super().publish(ranges, pending)
        if self.step == "all is in place":
            raise Died

    def _write(self, ledger: Ledger) -> None:
        if self.step == "files are in place" and ledger.pending is None:
            raise Died
        super()._write(ledger)
        if self.step == "the batch counts" and ledger.pending is not None:
            raise Died
        if self.step == "half of the files are in place" and ledger.pending is not None:
            for name in ledger.pending.files[::2]:
                (self.path / name).parent.mkdir(parents=True, exist_ok=True)
                (self.staged / ledger.pending.staged / name).replace(self.path / name)
            raise Died


BEFORE_IT_COUNTS = ("files are staged",)
STEPS = (
    *BEFORE_IT_COUNTS,
    "the batch counts",
    "half of the files are in place",
    "files are in place",
    "all is in place",
)


@pytest.fixture(scope="module")
def options(
    servers: str, tmp_path_factory: pytest.TempPathFactory, new_name: Callable[[str], str]
) -> ArchiveOptions:
    """Produce some lines to a topic."""
    topic = new_name("dying")
    days.make_topic(servers, topic)
    days.produce_lines(servers, topic, days.lines()[LINES])
    return options_for(servers, topic, tmp_path_factory.mktemp("dying"))


@pytest.fixture
def batch(spark: SparkSession, options: ArchiveOptions) -> DataFrame:
    """Return the lines as one batch."""
    records = read_batch(spark, options, [options.topic])
    definition = DefinitionOptions().load_definition()
    return archive_rows(parsed(spark, records, definition), COLUMNS, NAME)


@pytest.mark.parametrize(
    "step", [STEPS[0], *(pytest.param(step, marks=pytest.mark.slow) for step in STEPS[1:])]
)
def test_a_batch_that_dies_is_archived_once(
    step: str, spark: SparkSession, options: ArchiveOptions, batch: DataFrame, tmp_path: Path
) -> None:
    archive = options.model_copy(update={"directory": tmp_path})
    dying = Dying(tmp_path, step)
    ArchiveDirectory(tmp_path).open_for(options.topic, COLUMNS)
    flights = places_of_flights(options)
    with pytest.raises(Died):
        archive_batch(batch, dying, options, None)

    # Whoever reads meanwhile sees the batch whole, or nothing of it.
    expected = [] if step in BEFORE_IT_COUNTS else flights
    assert places(read_archive(spark, tmp_path)) == expected

    directory = ArchiveDirectory(tmp_path)
    archive_batch(batch, directory, options, None)
    assert places(read_archive(spark, tmp_path)) == flights
    assert places(listed(spark, archive)) == flights
    assert directory.ledger().pending is None
    assert [*directory.staged.iterdir()] == []
    for hour in directory.hours():
        assert len(files_of(hour)) == 1


def test_half_of_a_batch_is_left_to_the_next_batch(
    spark: SparkSession, options: ArchiveOptions, batch: DataFrame, tmp_path: Path
) -> None:
    """Given a batch that counts but is not in place, when another comes, then both are."""
    archive = options.model_copy(update={"directory": tmp_path})
    dying = Dying(tmp_path, "half of the files are in place")
    ArchiveDirectory(tmp_path).open_for(options.topic, COLUMNS)
    with pytest.raises(Died):
        archive_batch(batch.where("partition != 0"), dying, options, None)
    archive_batch(batch.where("partition = 0"), ArchiveDirectory(tmp_path), options, None)
    assert places(listed(spark, archive)) == places_of_flights(options)


@pytest.mark.slow
def test_batches_that_overlap_are_archived_once(
    spark: SparkSession, options: ArchiveOptions, batch: DataFrame, tmp_path: Path
) -> None:
    archive = options.model_copy(update={"directory": tmp_path})
    directory = ArchiveDirectory(tmp_path)
    directory.open_for(options.topic, COLUMNS)
    for chosen in ("offset BETWEEN 10 AND 30", "offset % 3 = 0", "offset < 20", "true"):
        archive_batch(batch.where(chosen), directory, options, None)
    assert places(listed(spark, archive)) == places_of_flights(options)
