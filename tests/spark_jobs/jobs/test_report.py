"""The page of a month: it is whole and loads nothing, and its numbers are pandas'."""

from __future__ import annotations

import base64
import json
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pandas as pd
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from spark_jobs.definitions.definition import BUILT_IN
from spark_jobs.errors import BadOptionError, JobError
from spark_jobs.jobs import archive
from spark_jobs.jobs.backfill import options_model, read_range, resolve
from spark_jobs.jobs.report import ReportOptions, write
from spark_jobs.jobs.route import RouteOptions, start
from spark_jobs.options import parse_options
from spark_jobs.report.report_sources import job_numbers
from spark_jobs.spark.streams import run_to_end
from tests.spark_jobs.conftest import TOPIC
from tests.spark_jobs.data.month import (
    DAMAGED,
    damaged_lines,
    flights_by_route,
    month_of_flights,
)
from tests.spark_jobs.page_reading import Page

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_jobs.jobs.produce_flights import Outcome

COMMITTED = 123
WINDOWS = "reported.windows"
SECTION = f"""
[report]
windows_topic = "{WINDOWS}"
granularity = "1 hour"
group = "origin"
group_label = "airport"
above = "delayed"
below = "flights"
label = "Delayed <15 & more>"
zone = "America/New_York"
"""


@pytest.fixture(scope="module")
def report(
    servers: str, spark: SparkSession, produced: Outcome, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Page, RouteOptions]:
    """Route the month, put windows beside, commit for a group, and write a page of it all."""
    assert produced.acknowledged == produced.lines
    place = tmp_path_factory.mktemp("report")
    route = RouteOptions(
        bootstrap_servers=servers,
        topic=TOPIC,
        set={"prefix": "reported"},
        rejects_topic="reported.rejected",
        once=True,
        max_offsets_per_trigger=10_000,
        checkpoint=place / "checkpoint",
    )
    run_to_end(start(spark, route), place / "route.jsonl")
    _produce_windows(servers)
    _commit(servers)
    definition = place / "flights.toml"
    built_in = (BUILT_IN / "flights.toml").read_text(encoding="utf-8").partition("\n[report]")[0]
    definition.write_text(built_in + SECTION, encoding="utf-8")
    options = ReportOptions(
        bootstrap_servers=servers,
        topic=TOPIC,
        topics=tuple(route.targets().values()),
        definition=str(definition),
        rejects_topic=route.rejects(),
        metrics=(place / "route.jsonl",),
        groups=("reported-readers",),
        title="March <2013> & more",
        output=place / "new" / "report.html",
    )
    write(spark, options)
    return Page.of(options.output.read_text(encoding="utf-8")), route


def _produce_windows(servers: str) -> None:
    """Write a window per airport and hour, each first in a wrong version, and one of a day."""
    topic = NewTopic(WINDOWS, num_partitions=2, config={"cleanup.policy": "compact"})
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([topic])[WINDOWS].result()
    producer = Producer({"bootstrap.servers": servers})
    flights = month_of_flights()
    for (origin, hour), group in flights.groupby(["origin", "time_hour"]):
        counts = {"flights": len(group), "delayed": int((group.route == "delayed").sum())}
        window = {"granularity": "1 hour", "start": hour, "origin": origin}
        for version in ({"flights": 1_000_000, "delayed": 1_000_000}, counts):
            producer.produce(WINDOWS, key=f"{origin}{hour}", value=json.dumps(window | version))
    day: dict[str, object] = {"granularity": "1 day", "origin": "EWR"}
    day |= {"start": "2013-03-01T05:00:00Z", "flights": 5_000_000, "delayed": 1}
    producer.produce(WINDOWS, key="day", value=json.dumps(day))
    assert producer.flush(120) == 0


def _commit(servers: str) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reported-readers"})
    consumer.commit(offsets=[TopicPartition(TOPIC, 1, COMMITTED)], asynchronous=False)
    consumer.close()


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def test_the_page_is_whole_and_loads_nothing(report: tuple[Page, RouteOptions]) -> None:
    page, _ = report
    assert page.texts["title"] == "March <2013> & more"
    assert ("html", {"lang": "en"}) in page.tags
    assert all(link.startswith(("#", "data:image/svg+xml;base64,")) for link in page.links)
    inside = {link[1:] for link in page.links if link.startswith("#")}
    assert inside <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert {"h1", "h2", "main", "nav"} <= {tag for tag, _ in page.tags}


def test_every_picture_has_words_and_is_drawn_for_light_and_dark(
    report: tuple[Page, RouteOptions],
) -> None:
    page, _ = report
    assert len(page.pictures) == 8
    assert all(len(picture["alt"]) > 30 for picture in page.pictures)
    dark = [values for tag, values in page.tags if tag == "source"]
    assert len(dark) == len(page.pictures)
    for picture, other in zip(page.pictures, dark, strict=True):
        assert other["media"] == "(prefers-color-scheme: dark)"
        assert other["srcset"] != picture["src"]
        for uri in (picture["src"], other["srcset"]):
            svg = ET.fromstring(base64.b64decode(uri.partition(",")[2]))
            assert svg.tag == "{http://www.w3.org/2000/svg}svg"


def test_flights_by_event_time_are_pandas(report: tuple[Page, RouteOptions]) -> None:
    page, _ = report
    head, *rows, total = page.tables["Valid records per 6 hours"]
    assert head == ["begin, UTC", TOPIC]
    flights = month_of_flights()
    times = pd.to_datetime(flights.time_hour) + pd.to_timedelta(flights.minute, unit="min")
    expected = times.dt.floor("6h").dt.strftime("%Y-%m-%d %H:%M:%S").value_counts()
    found = {begin: _number(count) for begin, count in rows}
    assert {b: n for b, n in found.items() if n} == {begin: int(n) for begin, n in expected.items()}
    assert total == ["sum", f"{len(flights):,}"]


def test_topics_hold_what_was_routed(report: tuple[Page, RouteOptions]) -> None:
    page, route = report
    rows = {row[0]: row for row in page.tables["Topics"][1:]}
    wanted = {route.targets()[name]: n for name, n in flights_by_route().items()}
    wanted[TOPIC] = len(month_of_flights()) + DAMAGED
    assert {topic: _number(row[2]) for topic, row in rows.items()} == wanted
    assert rows[TOPIC][1] == "3"


def test_rejects_are_counted_by_reason(report: tuple[Page, RouteOptions]) -> None:
    page, _ = report
    _, *rows, total = page.tables["Rejects by reason"]
    damages = [line.damage for line in damaged_lines().values()]
    expected = Counter(damage.reason for damage in damages if damage is not None)
    assert {reason: _number(count) for reason, count in rows} == expected
    assert total == ["sum", str(DAMAGED)]


def test_windows_are_summed_up_by_airport_and_local_hour(
    report: tuple[Page, RouteOptions],
) -> None:
    page, _ = report
    _, *rows = page.tables["Delayed <15 & more>"]
    expected = {
        (str(origin), str(hour)): (int((group.route == "delayed").sum()), len(group))
        for (origin, hour), group in month_of_flights().groupby(["origin", "hour"])
    }
    found = {(row[0], row[1]): (_number(row[2]), _number(row[3])) for row in rows}
    assert found == expected
    share = expected["EWR", "17"][0] / expected["EWR", "17"][1]
    assert next(row[4] for row in rows if row[:2] == ["EWR", "17"]) == f"{share:.1%}"


def test_lag_of_groups_and_queries_is_told(report: tuple[Page, RouteOptions]) -> None:
    page, _ = report
    (_, group) = page.tables["Consumer groups"]
    assert group[:4] == ["reported-readers", TOPIC, "1", str(COMMITTED)]
    assert _number(group[5]) == _number(group[4]) - COMMITTED > 0
    (_, query) = page.tables["Queries"]
    lines = len(month_of_flights()) + DAMAGED
    assert query[0] == "route"
    assert int(query[1]) > 1
    assert _number(query[2]) == lines
    assert 0 < _number(query[4]) < lines
    assert query[5] == "0"


@pytest.mark.slow
def test_an_archive_is_counted_in_place_of_its_topic(
    servers: str, spark: SparkSession, produced: Outcome, tmp_path: Path
) -> None:
    end = datetime(2013, 3, 2, 5, tzinfo=UTC)
    place = ("--directory", str(tmp_path / "archive"), "--no-send-rejects")
    words = ("--bootstrap-servers", servers, "--topic", TOPIC, *place, "--to-time", str(end))
    archived: Any = parse_options(options_model(archive), words, "backfill archive", "")
    chosen = resolve(spark, archived, TOPIC)
    assert 0 < chosen.offsets < produced.lines
    archive.take(spark, read_range(spark, archived, chosen), archived)
    options = ReportOptions(
        bootstrap_servers=servers,
        topic="gone",
        archive=tmp_path / "archive",
        output=tmp_path / "page.html",
    )
    write(spark, options)
    page = Page.of(options.output.read_text(encoding="utf-8"))
    flights = month_of_flights()
    times = pd.to_datetime(flights.time_hour) + pd.to_timedelta(flights.minute, unit="min")
    begins = times[times < end].dt.floor("10min").dt.strftime("%Y-%m-%d %H:%M:%S")
    _, *rows, total = page.tables["Valid records per 10 minutes"]
    found = {begin: _number(count) for begin, count in rows if count != "0"}
    assert found == begins.value_counts().to_dict()
    assert total == ["sum", f"{len(begins):,}"]


def test_a_topic_that_is_not_there_is_told(
    servers: str, spark: SparkSession, tmp_path: Path
) -> None:
    options = ReportOptions(
        bootstrap_servers=servers, topic="nobody-made-it", output=tmp_path / "page.html"
    )
    with pytest.raises(JobError, match="no topic 'nobody-made-it'"):
        write(spark, options)
    assert not options.output.exists()


def test_a_file_that_holds_no_metrics_is_told(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text('{"query": 1}\n')
    with pytest.raises(BadOptionError, match="line 1 is no line of metrics"):
        job_numbers([file])
    with pytest.raises(BadOptionError, match="cannot be read"):
        job_numbers([tmp_path / "none"])
