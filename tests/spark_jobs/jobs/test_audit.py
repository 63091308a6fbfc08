"""The audit tells what is planted: a gap, a double, a changed value; and what it cannot compare."""

from __future__ import annotations

import io
import json
import shutil
import zlib
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import TopicPartition
from rich.console import Console

from spark_jobs.archive.audit_findings import (
    Findings,
    Gap,
    KeyDifference,
    NotCompared,
    PartitionCounts,
)
from spark_jobs.errors import EXIT_BAD_OPTION, BadOptionError, JobError
from spark_jobs.jobs.audit import AuditOptions, as_json, audit, main, tell
from spark_jobs.tables.open_tables import open_table
from tests.spark_jobs.data import days
from tests.spark_jobs.data.archives import (
    archived,
    filled,
    options_for,
    places_of_flights,
    sources_of_rejects,
)
from tests.spark_jobs.kafka.consuming import read_topic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_jobs.jobs.archive import ArchiveOptions

LINES = slice(0, 300)


@pytest.fixture(scope="module")
def original(
    servers: str,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    new_name: Callable[[str], str],
) -> ArchiveOptions:
    """Archive some hours."""
    return filled(spark, servers, new_name("audited"), tmp_path_factory.mktemp("audit"), LINES)


@pytest.fixture
def archive(original: ArchiveOptions, tmp_path: Path) -> ArchiveOptions:
    """Return a copy of it."""
    shutil.copytree(original.directory, tmp_path / "archive")
    return original.model_copy(update={"directory": tmp_path / "archive"})


def _audited(spark: SparkSession, archive: ArchiveOptions, **more: object) -> Findings:
    return audit(spark, _audit_options(archive, **more))


def _audit_options(archive: ArchiveOptions, **more: object) -> AuditOptions:
    options = {
        "bootstrap_servers": archive.bootstrap_servers,
        "topic": archive.topic,
        "directory": archive.directory,
    }
    return AuditOptions.model_validate(options | more)


def _change(spark: SparkSession, archive: ArchiveOptions, statement: str) -> None:
    """Change the table's rows behind the job's back."""
    table = open_table(spark, "--directory", archive.directory)
    table.run(statement.format(table=table.name))


def _at(place: tuple[int, int]) -> str:
    return f"partition = {place[0]} AND offset = {place[1]}"


def test_an_exact_archive_is_told_to_be_exact(
    spark: SparkSession, original: ArchiveOptions
) -> None:
    found = _audited(spark, original)
    assert found.is_exact(behind_is_well=False)
    flights, rejected = places_of_flights(original), sources_of_rejects(original)
    for counts in found.partitions:
        wanted = [sum(place[0] == counts.partition for place in s) for s in (flights, rejected)]
        assert [counts.archived, counts.rejected] == wanted
        assert counts.records == counts.end_offset == sum(wanted)
    assert found.total("records") == 300
    assert found.keys == len({line.key for line in days.lines()[LINES]})
    assert (found.gaps, found.findings, found.key_differences, found.not_compared) == ([],) * 4
    assert found.changes == []


def test_a_gap_is_told_as_ranges(spark: SparkSession, archive: ArchiveOptions) -> None:
    flights = [offset for partition, offset in places_of_flights(archive) if partition == 1]
    gone = [*flights[10:15], flights[20]]
    listed = ", ".join(map(str, gone))
    _change(spark, archive, f"DELETE FROM {{table}} WHERE partition = 1 AND offset IN ({listed})")
    found = _audited(spark, archive)
    assert not found.is_exact(behind_is_well=True)
    assert found.total("missing") == 6
    assert [counts.missing for counts in found.partitions] == [0, 6, 0]
    # Rejects between missing records are no part of a gap, and end it.
    missing = [gap for gap in found.gaps if gap.partition == 1]
    assert missing == found.gaps
    assert sum(gap.records for gap in missing) == 6
    assert missing[-1] == Gap(1, gone[-1], gone[-1], 1)
    assert (missing[0].first_offset, missing[-2].last_offset) == (gone[0], gone[4])
    records = {
        (r.partition, r.offset): r for r in read_topic(archive.bootstrap_servers, archive.topic)
    }
    lost = Counter((records[1, offset].key or b"").decode() for offset in gone)
    assert {key.key: key.produced - key.archived for key in found.key_differences} == lost


def test_a_double_is_told(spark: SparkSession, archive: ArchiveOptions) -> None:
    doubled = [place for place in places_of_flights(archive) if place[1] % 3 == 0]
    again = "INSERT INTO {table} SELECT * FROM {table} WHERE offset % 3 = 0"
    _change(spark, archive, again)
    found = _audited(spark, archive, list_at_most=1000)
    assert found.total("doubled") == len(doubled) > 0
    assert [(f.partition, f.offset) for f in found.findings] == sorted(doubled)
    assert {f.what for f in found.findings} == {"archived 2 times"}
    assert found.total("missing") == found.total("differing") == found.total("damaged") == 0


@pytest.mark.slow
def test_a_changed_value_is_told_though_its_checksum_stayed(
    spark: SparkSession, archive: ArchiveOptions
) -> None:
    partition, offset = places_of_flights(archive)[7]
    here = _at((partition, offset))
    _change(spark, archive, f"UPDATE {{table}} SET distance = distance + 1 WHERE {here}")
    found = _audited(spark, archive)
    assert found.total("damaged") == 1
    assert found.total("differing") == found.total("missing") == 0
    assert [(f.partition, f.offset, f.what) for f in found.findings] == [
        (partition, offset, "changed after it was archived")
    ]


@pytest.mark.slow
def test_another_value_is_told_with_its_key_and_checksums(
    spark: SparkSession, archive: ArchiveOptions
) -> None:
    partition, offset = places_of_flights(archive)[7]
    here = _at((partition, offset))
    _change(spark, archive, f"UPDATE {{table}} SET value_crc32 = 5 WHERE {here}")
    found = _audited(spark, archive)
    assert (found.total("differing"), found.total("damaged")) == (1, 1)
    records = read_topic(archive.bootstrap_servers, archive.topic)
    record = next(r for r in records if (r.partition, r.offset) == (partition, offset))
    key = (record.key or b"").decode()
    assert [(f.partition, f.offset, f.key, f.what) for f in found.findings] == [
        (partition, offset, key, "other value_crc32; changed after it was archived")
    ]
    damaged = {line.value for line in days.damaged()}
    values = [r.value or b"" for r in records if r.key == record.key and r.value not in damaged]
    right = sum(map(zlib.crc32, values))
    wrong = right - zlib.crc32(record.value or b"") + 5
    assert found.key_differences == [KeyDifference(key, len(values), len(values), right, wrong)]


@pytest.mark.slow
def test_a_row_of_no_record_is_told(spark: SparkSession, archive: ArchiveOptions) -> None:
    partition, offset = places_of_flights(archive)[7]
    here = _at((partition, offset))
    _change(spark, archive, f"UPDATE {{table}} SET offset = 100000 WHERE {here}")
    found = _audited(spark, archive)
    assert (found.total("stray"), found.total("missing"), found.total("damaged")) == (1, 1, 1)
    assert found.gaps == [Gap(partition, offset, offset, 1)]


@pytest.mark.slow
def test_what_is_not_taken_yet_is_behind_and_no_gap(
    servers: str, spark: SparkSession, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    options = filled(spark, servers, new_name("behind"), tmp_path, slice(0, 100))
    days.produce_lines(servers, options.topic, days.lines()[100:150])
    found = _audited(spark, options)
    assert (found.total("behind"), found.total("missing")) == (50, 0)
    assert not found.is_exact(behind_is_well=False)
    assert found.is_exact(behind_is_well=True)
    assert {gap.state for gap in found.gaps} == {"behind"}
    assert sum(gap.records for gap in found.gaps) == 50
    assert found.key_differences == []
    assert archived(spark, options) == 50
    assert _audited(spark, options).is_exact(behind_is_well=False)


@pytest.mark.slow
def test_after_retention_the_rest_is_compared_and_the_head_is_named(
    servers: str, spark: SparkSession, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    options = filled(spark, servers, new_name("expired"), tmp_path, slice(0, 100))
    flights = places_of_flights(options)
    start = 10
    until = [TopicPartition(options.topic, 0, start)]
    admin = AdminClient({"bootstrap.servers": servers})
    for deleted in admin.delete_records(until).values():
        deleted.result(days.TIMEOUT_SECONDS)
    found = _audited(spark, options)
    assert found.is_exact(behind_is_well=False)
    gone = sum(partition == 0 and offset < start for partition, offset in flights)
    assert found.not_compared == [NotCompared(0, 0, 9, gone, "the topic begins at 10")]
    assert found.partitions[0].first_offset == start
    assert found.total("archived") == len(flights) - gone


def test_what_went_before_it_was_archived_ends_the_job_or_is_told_by_the_audit(
    servers: str,
    spark: SparkSession,
    tmp_path: Path,
    new_name: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = filled(spark, servers, new_name("lost"), tmp_path, slice(0, 100))
    begins = _ends(servers, options.topic)
    days.produce_lines(servers, options.topic, days.lines()[100:150])
    ends = _ends(servers, options.topic)
    gone = {partition: (begin, ends[partition] - 1) for partition, begin in begins.items()}
    admin = AdminClient({"bootstrap.servers": servers})
    until = [TopicPartition(options.topic, *place) for place in ends.items()]
    for deleted in admin.delete_records(until).values():
        deleted.result(days.TIMEOUT_SECONDS)
    days.produce_lines(servers, options.topic, days.lines()[150:250])
    with pytest.raises(JobError, match="--on-data-loss record"):
        archived(spark, options)
    archived(spark, options.model_copy(update={"on_data_loss": "record"}))
    told = capsys.readouterr().err
    assert all(f"at offsets {first:,} to {last:,} went" in told for first, last in gone.values())
    found = _audited(spark, options)
    assert found.is_exact(behind_is_well=False)
    lost = [one for one in found.not_compared if one.why == "they went before they were archived"]
    assert {one.partition: (one.first_offset, one.last_offset) for one in lost} == gone


def _ends(servers: str, topic: str) -> dict[int, int]:
    """Return the offset that the next record of each partition will have."""
    reader = Consumer({"bootstrap.servers": servers, "group.id": "ends"})
    try:
        partitions = reader.list_topics(topic).topics[topic].partitions
        places = [TopicPartition(topic, partition) for partition in partitions]
        return {place.partition: reader.get_watermark_offsets(place, 60)[1] for place in places}
    finally:
        reader.close()


@pytest.mark.slow
def test_markers_and_aborted_records_are_no_gaps(
    servers: str, spark: SparkSession, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    topic = new_name("transactions")
    days.make_topic(servers, topic)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
    producer.init_transactions(days.TIMEOUT_SECONDS)
    chosen = [line for line in days.lines()[:60] if line.damage is None]
    for number, line in enumerate(chosen):
        producer.begin_transaction()
        producer.produce(topic, key=line.key, value=line.value, timestamp=line.timestamp_ms)
        assert producer.flush(days.TIMEOUT_SECONDS) == 0  # what is not sent leaves no trace
        if number % 3 == 0:
            producer.abort_transaction(days.TIMEOUT_SECONDS)
        else:
            producer.commit_transaction(days.TIMEOUT_SECONDS)
    committed = sum(number % 3 != 0 for number in range(len(chosen)))
    options = options_for(servers, topic, tmp_path)
    archived(spark, options)
    found = _audited(spark, options)
    assert found.is_exact(behind_is_well=False)
    assert found.total("archived") == found.total("records") == committed
    assert sum(counts.end_offset for counts in found.partitions) == 2 * len(chosen)

    # What an open transaction holds up is not compared, and told.
    producer.begin_transaction()
    producer.produce(topic, key=b"open", value=b"{}", partition=0)
    assert producer.flush(days.TIMEOUT_SECONDS) == 0
    end = found.partitions[0].end_offset
    found = _audited(spark, options)
    assert found.is_exact(behind_is_well=False)
    assert found.not_compared == [NotCompared(0, end, end, 0, "a transaction is open")]
    producer.abort_transaction(days.TIMEOUT_SECONDS)


def test_what_is_found_is_told_to_people_and_programs(
    spark: SparkSession, archive: ArchiveOptions
) -> None:
    partition, offset = places_of_flights(archive)[0]
    _change(spark, archive, f"DELETE FROM {{table}} WHERE {_at((partition, offset))}")
    options = _audit_options(archive)
    found = audit(spark, options)
    text = io.StringIO()
    tell(found, options, Console(file=text, width=200))
    assert (
        f"missing: partition {partition}, offsets {offset} to {offset}, 1 records"
        in text.getvalue()
    )
    assert "changed by another program: version " in text.getvalue()
    assert "differences: 1 missing, 1 changes by other programs, at 1 keys" in text.getvalue()
    told = json.loads(json.dumps(as_json(found, options)))
    assert told["exact"] is False
    assert told["gaps"] == [
        {
            "partition": partition,
            "first_offset": offset,
            "last_offset": offset,
            "records": 1,
            "state": "missing",
        }
    ]
    assert sum(counts["records"] for counts in told["partitions"]) == 300


def test_the_table_is_whole_where_lines_are_short() -> None:
    counts = PartitionCounts(0, 1_234_567, 7_654_321, 7_654, 6_543, 1_111, 0, 0, 0, 0, 0, 0, 0)
    text = io.StringIO()
    tell(Findings([counts], keys=7, differing_keys=0), AuditOptions(), Console(file=text, width=80))
    for word in ("first offset", "compacted", "1,234,567", "7,654,321", "6,543", "1,111"):
        assert word in text.getvalue()
    assert "\u2026" not in text.getvalue()


def test_an_archive_of_another_topic_is_refused(
    spark: SparkSession, original: ArchiveOptions
) -> None:
    options = _audit_options(original, topic="other")
    with pytest.raises(BadOptionError, match="is an archive of the topic"):
        audit(spark, options)


def test_no_archive_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--directory", str(tmp_path), "--json", str(tmp_path / "a.json")]) == (
        EXIT_BAD_OPTION
    )
    said = capsys.readouterr().err
    assert said.startswith(
        f"error: --directory: {tmp_path} holds no table, neither of Delta nor of Iceberg"
    )
    assert said.count("\n") == 1
