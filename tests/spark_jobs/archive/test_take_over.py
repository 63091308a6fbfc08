"""An archive of before there were tables becomes one, with its offsets, and its topic is not read.

`data/archive_of_before` was written by the job of 2026-11-26, killed while it put its last batch in
place: the first 60 lines of two days, with partitions and offsets made of their keys.
"""

from __future__ import annotations

import shutil
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark_jobs.archive.archive_rows import row_hash_sql
from spark_jobs.archive.archive_table import read_archive, taken_offsets
from spark_jobs.archive.take_over import take_over
from spark_jobs.errors import EXIT_BAD_OPTION, BadOptionError, JobError
from spark_jobs.jobs.archive import main
from spark_jobs.locks import locked
from spark_jobs.tables.open_tables import open_table
from spark_jobs.tables.table_format import TableFormat
from tests.spark_jobs.data import days
from tests.spark_jobs.data.outside_readers import arrow_table
from tests.spark_jobs.data.table_params import FORMATS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEFORE = Path(__file__).parents[1] / "data" / "archive_of_before"
TAKEN = {0: (0, 15), 1: (100, 114), 2: (200, 228)}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a copy of the archive."""
    return Path(shutil.copytree(BEFORE, tmp_path / "old"))


def _records() -> Counter[tuple[int, int, int]]:
    """Return partition, offset and checksum of each record that was no reject."""
    found: list[tuple[int, int, int]] = []
    offsets = Counter({partition: first for partition, (first, _) in TAKEN.items()})
    for line in days.lines()[:60]:
        partition = sum(line.key or b"x") % 3
        if line.damage is None:
            found.append((partition, offsets[partition], zlib.crc32(line.value or b"")))
        offsets[partition] += 1
    return Counter(found)


@pytest.mark.parametrize("kind", FORMATS)
def test_an_archive_of_before_is_the_first_commit_of_a_table(
    kind: TableFormat, spark: SparkSession, old: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "archive"
    assert take_over(spark, old, directory, kind) == sum(_records().values())
    rows = arrow_table(directory).to_pylist()
    assert Counter((r["partition"], r["offset"], r["value_crc32"]) for r in rows) == _records()
    flights = days.flights().sort_values("event_time", kind="stable").head(len(rows))
    assert Counter(r["distance"] for r in rows) == Counter(flights.distance)
    table = open_table(spark, "--directory", directory)
    assert taken_offsets(table, table.newest_notes()) == TAKEN
    found = read_archive(spark, directory)
    assert found.where(f"NOT row_hash <=> {row_hash_sql(found.columns)}").count() == 0
    with pytest.raises(JobError, match="has been written to already"):
        take_over(spark, old, directory, kind)


def test_a_row_that_changed_in_the_old_archive_is_still_told(
    spark: SparkSession, old: Path, tmp_path: Path
) -> None:
    file = next(old.glob("event_date=*/event_hour=10/*.parquet"))
    changed = spark.read.parquet(str(file)).selectExpr("* EXCEPT (distance)", "1L AS distance")
    rows = changed.count()
    changed.coalesce(1).write.parquet(str(tmp_path / "changed"))
    shutil.copy(next((tmp_path / "changed").glob("*.parquet")), file)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    take_over(spark, old, tmp_path / "archive", TableFormat.DELTA)
    assert arrow_table(tmp_path / "archive")["row_hash"].null_count == rows > 0


def test_an_archive_that_is_written_to_is_not_taken_over(
    spark: SparkSession, old: Path, tmp_path: Path
) -> None:
    with (
        locked(old / "_archive" / "writing.lock"),
        pytest.raises(JobError, match="waited 0 s for its writer to end"),
    ):
        take_over(spark, old, tmp_path / "archive", TableFormat.DELTA)


def test_a_job_over_an_archive_of_before_says_how_to_take_it_over(
    spark: SparkSession, old: Path
) -> None:
    with pytest.raises(BadOptionError, match=f"take this one over with --take-over {old}"):
        take_over(spark, old, old, TableFormat.DELTA)


@pytest.mark.parametrize(
    ("text", "words"), [("{", "is damaged"), ('{"version": 2}', "is of version 2")]
)
def test_a_ledger_that_is_not_understood_is_one_line(
    text: str, words: str, old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (old / "_archive" / "archive.json").write_text(text)
    assert main(["--take-over", str(old)]) == EXIT_BAD_OPTION
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
