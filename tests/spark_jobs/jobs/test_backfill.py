"""Ranges of a month, taken by jobs as batches: what is in them is what pandas finds there."""

from __future__ import annotations

import functools
import json
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from spark_jobs.archive.archive_table import read_archive
from spark_jobs.errors import BadOptionError, JobError
from spark_jobs.jobs import archive, backfill, retry, route
from spark_jobs.jobs.backfill import (
    TAKERS,
    RangeOptions,
    options_model,
    read_range,
    resolve,
    topic_of,
)
from spark_jobs.jobs.catalogue import JOBS, job_module
from spark_jobs.options import parse_options
from tests.spark_jobs.conftest import TOPIC
from tests.spark_jobs.data.month import month_of_flights
from tests.spark_jobs.kafka.consuming import read_topic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from pyspark.sql import SparkSession

    from spark_jobs.jobs.backfill import TakingOptions
    from spark_jobs.jobs.produce_flights import Outcome

FROM, TO = datetime(2013, 3, 9, 17, 30, tzinfo=UTC), datetime(2013, 3, 11, 4, tzinfo=UTC)


def _options(job: ModuleType, servers: str, *flags: str) -> TakingOptions:
    words = ("--bootstrap-servers", servers, "--topic", TOPIC, *flags)
    return parse_options(options_model(job), words, "backfill job", "")


def _take(spark: SparkSession, job: ModuleType, options: TakingOptions) -> int:
    chosen = resolve(spark, options, TOPIC)
    job.take(spark, read_range(spark, options, chosen), options)
    return chosen.offsets


def _flights_between() -> pd.DataFrame:
    flights = month_of_flights()
    minutes = pd.to_timedelta(flights.minute, unit="min")
    departure = pd.to_datetime(flights.time_hour) + minutes
    return flights[(departure >= FROM) & (departure < TO)]


@pytest.mark.slow
def test_a_range_of_times_is_routed_as_pandas_counts(
    servers: str, spark: SparkSession, produced: Outcome, new_name: Callable[[str], str]
) -> None:
    prefix = new_name("backfilled")
    options = _options(
        route,
        servers,
        *("--set", f"prefix={prefix}", "--rejects-topic", f"{prefix}.rejected"),
        *("--from-time", FROM.isoformat(), "--to-time", TO.isoformat()),
    )
    assert _take(spark, route, options) < produced.lines
    expected = _flights_between().route.value_counts().to_dict()
    found = {name: read_topic(servers, f"{prefix}.{name}") for name in expected}
    assert {name: len(records) for name, records in found.items()} == expected

    assert _take(spark, route, options) > 0
    again = {name: read_topic(servers, f"{prefix}.{name}") for name in expected}
    for name, records in again.items():
        copies = Counter((r.headers["source"], r.value) for r in records)
        assert set(copies.values()) == {2}
        assert len(copies) == expected[name]


@pytest.mark.slow
def test_ranges_of_offsets_fill_an_archive_once(
    servers: str, spark: SparkSession, produced: Outcome, tmp_path: Path
) -> None:
    assert produced.lines
    place = ("--directory", str(tmp_path / "archive"), "--no-send-rejects")
    from_offsets = '{"0": 10, "2": 5}'
    first = _options(archive, servers, *place, "--from-offset", from_offsets, "--to-offset", "300")
    assert _take(spark, archive, first) == (300 - 10) + 300 + (300 - 5)
    overlapping = _options(archive, servers, *place, "--from-offset", "200", "--to-offset", "400")
    assert _take(spark, archive, overlapping) == 3 * 200
    assert _take(spark, archive, first) == 885

    starts = {0: 10, 1: 0, 2: 5}
    expected = {
        (record.partition, record.offset)
        for record in read_topic(servers, TOPIC)
        if starts[record.partition] <= record.offset < 400 and _is_a_flight(record.value)
    }
    rows = read_archive(spark, tmp_path / "archive").select("partition", "offset").collect()
    assert Counter((row[0], row[1]) for row in rows) == Counter(expected)


def _is_a_flight(value: bytes | None) -> bool:
    """Say whether it is one of the package's, by its key columns."""
    return value in _package_values()


@functools.cache
def _package_values() -> frozenset[bytes]:
    flights = month_of_flights().drop(columns="route").astype(object)
    records = flights.where(flights.notna(), None).to_dict("records")
    return frozenset(_as_produced(record) for record in records)


def _as_produced(flight: dict[Any, Any]) -> bytes:
    whole = {k: int(v) if isinstance(v, float) else v for k, v in flight.items()}
    return json.dumps(whole, separators=(",", ":")).encode()


def test_bounds_that_are_not_given_are_the_begin_and_the_end_of_now(
    servers: str, spark: SparkSession, produced: Outcome
) -> None:
    chosen = resolve(spark, _options(route, servers), TOPIC)
    assert chosen.offsets == produced.lines
    assert set(chosen.starting.values()) == {0}
    late = resolve(spark, _options(route, servers, "--from-time", "2099-01-01"), TOPIC)
    assert late.starting == late.ending == chosen.ending
    beyond = resolve(spark, _options(route, servers, "--to-offset", "99999999"), TOPIC)
    assert beyond == chosen


def test_what_is_gone_is_told(
    servers: str, spark: SparkSession, new_name: Callable[[str], str]
) -> None:
    topic = new_name("cut")
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result()
    producer = Producer({"bootstrap.servers": servers})
    for number in range(20):
        producer.produce(topic, value=str(number))
    assert producer.flush(120) == 0
    for deleted in admin.delete_records([TopicPartition(topic, 0, 8)]).values():
        deleted.result()
    flags = ("--bootstrap-servers", servers, "--topic", topic)
    model = options_model(route)
    for offset, words in (("7", "begins at offset 8: 7 to 7 are gone"), ("8", "")):
        options = parse_options(model, (*flags, "--from-offset", offset), "backfill route", "")
        if words:
            with pytest.raises(JobError, match=words):
                resolve(spark, options, topic)
        else:
            assert resolve(spark, options, topic).offsets == 12
    crossed = parse_options(
        model, (*flags, "--from-offset", "12", "--to-offset", "9"), "backfill route", ""
    )
    with pytest.raises(JobError, match="would begin at offset 12 and stop before 9"):
        resolve(spark, crossed, topic)
    unknown = parse_options(model, (*flags, "--to-offset", '{"3": 9}'), "backfill route", "")
    with pytest.raises(JobError, match="partitions 0 to 0, and no 3"):
        resolve(spark, unknown, topic)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--from-offset", "many"), "expected an offset, or JSON of partitions and offsets"),
        (("--to-offset", '{"0": -1}'), "expected an offset, or JSON"),
        (("--from-offset", '{"a": 1}'), "--from-offset: "),
        (("--from-time", "yesterday"), "expected a time as 2013-03-01"),
        (("--from-time", "2013-03-01", "--from-offset", "3"), "exclude each other"),
    ],
)
def test_a_bound_that_is_none_is_told(flags: tuple[str, ...], words: str) -> None:
    with pytest.raises(BadOptionError, match=words):
        parse_options(RangeOptions, flags, "backfill route", "")


def test_a_time_without_a_zone_is_in_utc() -> None:
    options = parse_options(RangeOptions, ("--to-time", "2013-03-01"), "backfill route", "")
    assert options.to_time == datetime(2013, 3, 1, tzinfo=UTC)


def test_the_jobs_own_table_of_the_options_file_counts(tmp_path: Path) -> None:
    file = tmp_path / "options.toml"
    file.write_text('[route]\nfrom_offset = 7\ntopic = "here"\n[archive]\ntopic = "there"\n')
    words = ("--options-file", str(file), "--to-offset", "9")
    options = parse_options(options_model(route), words, "backfill route", "")
    assert (options.topic, options.from_offset, options.to_offset) == ("here", 7, 9)


@pytest.mark.parametrize("argv", [["nonsense"], ["report"]])
def test_a_job_without_batches_is_told(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert backfill.main(argv) == BadOptionError.exit_code
    assert "is none of route" in capsys.readouterr().err


def test_every_job_with_batches_can_be_run_over_a_range() -> None:
    found = {name for name in JOBS if hasattr(job_module(name), "take")}
    assert found == set(TAKERS)
    for name in TAKERS:
        model = options_model(job_module(name))
        assert {"from_time", "topic", "bootstrap_servers"} <= set(model.model_fields)


def test_what_is_tried_again_is_read_from_the_rejects() -> None:
    options = parse_options(options_model(retry), ["--topic", "t"], "backfill retry", "")
    assert (topic_of("retry", options), topic_of("route", options)) == ("t.rejected", "t")


def test_help_names_the_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert backfill.main([]) == 0
    assert ",".join(TAKERS) in capsys.readouterr().out
