"""Compaction changes files and no rows, at whatever step it dies and whoever is there beside it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from spark_jobs.archive.archive_directory import ArchiveDirectory, files_of
from spark_jobs.archive.archive_reader import read_archive
from spark_jobs.archive.compaction import compact
from spark_jobs.archive.directory_exchange import exchange
from spark_jobs.errors import JobError
from spark_jobs.locks import locked
from tests.spark_jobs.data import days
from tests.spark_jobs.data.archives import archived, filled, listed, places, places_of_flights

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_jobs.jobs.archive import ArchiveOptions

LARGE = 1 << 27


class Died(BaseException):
    """The process is gone."""


@pytest.fixture(scope="module")
def original(
    servers: str,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    new_name: Callable[[str], str],
) -> ArchiveOptions:
    """Archive some hours in two batches that overlap in their hours."""
    place = tmp_path_factory.mktemp("compaction")
    options = filled(spark, servers, new_name("small"), place, slice(0, 120, 2))
    days.produce_lines(servers, options.topic, days.lines()[1:120:2])
    archived(spark, options)
    return options


@pytest.fixture
def archive(original: ArchiveOptions, tmp_path: Path) -> ArchiveOptions:
    """Return a copy of it."""
    shutil.copytree(original.directory, tmp_path / "archive")
    shutil.copytree(original.checkpoint, tmp_path / "checkpoint")
    update = {"directory": tmp_path / "archive", "checkpoint": tmp_path / "checkpoint"}
    return original.model_copy(update=update)


def _files(archive: ArchiveOptions) -> list[int]:
    return [len(files_of(hour)) for hour in ArchiveDirectory(archive.directory).hours()]


def test_each_hour_becomes_one_file_with_the_same_rows(
    spark: SparkSession, archive: ArchiveOptions
) -> None:
    before = read_archive(spark, archive.directory).orderBy("partition", "offset").collect()
    files = _files(archive)
    assert max(files) > 1
    outcome = compact(spark, ArchiveDirectory(archive.directory), LARGE, 1)
    assert read_archive(spark, archive.directory).orderBy("partition", "offset").collect() == before
    assert set(_files(archive)) == {1}
    several = [number for number in files if number > 1]
    assert (outcome.hours, outcome.files_before) == (len(several), sum(several))
    assert outcome.files_after == len(several)
    again = compact(spark, ArchiveDirectory(archive.directory), LARGE, 1)
    assert (again.hours, again.rows) == (0, 0)


def test_hours_beyond_the_wanted_size_become_several_files(
    spark: SparkSession, archive: ArchiveOptions
) -> None:
    directory = ArchiveDirectory(archive.directory)
    largest = max(file.stat().st_size for hour in directory.hours() for file in files_of(hour))
    compact(spark, directory, 2 * largest + 2, 1)
    assert places(listed(spark, archive)) == places_of_flights(archive)
    assert sum(_files(archive)) >= len(_files(archive))


@pytest.mark.parametrize("step", ["write", "place", "link", "exchange", "remove"])
def test_a_compaction_that_dies_leaves_every_row_there_once(
    step: str, spark: SparkSession, archive: ArchiveOptions
) -> None:
    flights = places_of_flights(archive)
    passed: list[str] = []

    def die(before: str) -> None:
        passed.append(before)
        if passed.count(step) == (1 if step in {"write", "remove"} else 2):
            raise Died

    directory = ArchiveDirectory(archive.directory)
    with pytest.raises(Died):
        compact(spark, directory, LARGE, 1, die)
    assert places(listed(spark, archive)) == flights
    assert places(read_archive(spark, archive.directory)) == flights
    compact(spark, directory, LARGE, 1)
    assert places(listed(spark, archive)) == flights
    assert set(_files(archive)) == {1}
    assert [*directory.compacted.iterdir()] == []


@pytest.mark.slow
def test_batches_that_come_while_an_hour_is_compacted_stay(
    servers: str, spark: SparkSession, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    options = filled(spark, servers, new_name("beside"), tmp_path, slice(0, 40))
    days.produce_lines(servers, options.topic, days.lines()[40:80])
    archived(spark, options)
    days.produce_lines(servers, options.topic, days.lines()[80:120])
    came: list[str] = []

    def take_a_batch(before: str) -> None:
        """The rows have been read when the first directories are about to change places."""
        if before == "place" and not came:
            came.append(before)
            assert archived(spark, options) == 40
        rows = places(listed(spark, options))
        assert len(rows) == len(set(rows))

    compact(spark, ArchiveDirectory(options.directory), LARGE, 1, take_a_batch)
    assert came
    assert places(listed(spark, options)) == places_of_flights(options)


def test_compaction_waits_for_readers_and_gives_up_in_words(
    spark: SparkSession, archive: ArchiveOptions
) -> None:
    directory = ArchiveDirectory(archive.directory)
    with directory.reading():
        rows = read_archive(spark, archive.directory)
        with pytest.raises(JobError, match=r"reading\.lock is held .* until readers let go"):
            compact(spark, directory, LARGE, 0.1)
        assert places(rows) == places_of_flights(archive)
    compact(spark, directory, LARGE, 1)
    assert places(listed(spark, archive)) == places_of_flights(archive)


@pytest.mark.slow
def test_two_compactions_exclude_each_other(spark: SparkSession, archive: ArchiveOptions) -> None:
    directory = ArchiveDirectory(archive.directory)
    with (
        directory.compacting(),
        pytest.raises(JobError, match=r"compacting\.lock is held by another process"),
    ):
        compact(spark, directory, LARGE, 1)


def test_directories_change_places(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    exchange(tmp_path / "one", tmp_path / "other")
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["other"]
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["one"]
    with pytest.raises(OSError, match="No such file or directory"):
        exchange(tmp_path / "one", tmp_path / "none")


def test_locks_are_shared_by_readers_only(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    shared = (locked(path, shared=True), locked(path, shared=True, seconds=0.0))
    with shared[0], shared[1], pytest.raises(JobError, match="held"), locked(path, seconds=0.0):
        pass
    with locked(path, seconds=0.0), pytest.raises(JobError), locked(path, shared=True, seconds=0):
        pass
