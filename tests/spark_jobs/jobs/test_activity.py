"""Sessions, funnels and pages of made-up activity: each number as plain Python makes it."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from spark_jobs.definitions.definition import load_definition
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.errors import BadOptionError, JobError
from spark_jobs.jobs.activity import (
    PAGES_QUERY,
    SESSIONS_QUERY,
    ActivityOptions,
    start,
    take,
)
from spark_jobs.jobs.produce_activity import ActivityProducerOptions, produce
from spark_jobs.spark.progress import reports_of
from spark_jobs.spark.streams import read_batch, records_of, run_to_end
from spark_jobs.visitors.page_views import counted, opened, page_views
from spark_jobs.visitors.visitor_sessions import (
    ActivitySection,
    events,
    funnels,
    sessions,
    told,
)
from tests.spark_jobs.data import website
from tests.spark_jobs.data.activity_results import check, of_tables, of_topics
from tests.spark_jobs.kafka.consuming import read_topic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.kafka.line_producer import Outcome

EVENTS = 8_000
TOPIC = "website"


@pytest.fixture(scope="module")
def visited(servers: str) -> Outcome:
    """Produce some hours of activity, with events of every kind that is wrong or late."""
    return produce(
        ActivityProducerOptions(
            bootstrap_servers=servers,
            topic=TOPIC,
            partitions=3,
            events=EVENTS,
            pace=0.5,
            late=0.02,
            skewed=0.004,
            malformed=0.006,
        )
    )


@pytest.fixture(scope="module")
def followed(
    servers: str, spark: SparkSession, visited: Outcome, tmp_path_factory: pytest.TempPathFactory
) -> ActivityOptions:
    """Follow the activity once; return the options."""
    place = tmp_path_factory.mktemp("activity")
    options = ActivityOptions(
        bootstrap_servers=servers,
        topic=TOPIC,
        set={"prefix": TOPIC},
        once=True,
        checkpoint=place / "checkpoint",
        table=place / "tables",
    )
    assert run_to_end(start(spark, options)) == dict.fromkeys(
        (SESSIONS_QUERY, PAGES_QUERY), visited.lines
    )
    return options


def test_topics_hold_what_plain_python_counts(
    servers: str, followed: ActivityOptions, spark: SparkSession
) -> None:
    assert spark is not None
    expected = website.valid_events(read_topic(servers, TOPIC))
    longest = max(map(len, website.closed_sessions(expected)))
    assert longest > 50, "the tail is heavy"
    check(of_topics(servers, TOPIC), expected)


def test_tables_hold_what_plain_python_counts(
    servers: str, followed: ActivityOptions, spark: SparkSession
) -> None:
    assert spark is not None
    check(of_tables(followed.table), website.valid_events(read_topic(servers, TOPIC)))


def test_each_wrong_event_is_rejected_for_its_reason(
    servers: str, followed: ActivityOptions, visited: Outcome, spark: SparkSession
) -> None:
    assert spark is not None
    rejects = [json.loads(r.value or b"") for r in read_topic(servers, followed.rejects())]
    assert Counter(reject["reason"] for reject in rejects) == visited.reasons
    assert len(visited.reasons) == 13


def test_running_again_changes_nothing(
    servers: str, spark: SparkSession, followed: ActivityOptions
) -> None:
    topics = [*followed.topics().values(), followed.rejects()]
    before = [len(read_topic(servers, topic)) for topic in topics]
    tables = of_tables(followed.table)
    assert set(run_to_end(start(spark, followed)).values()) == {0}
    assert [len(read_topic(servers, topic)) for topic in topics] == before
    assert of_tables(followed.table) == tables


def test_a_definition_without_funnels_has_no_table_of_them_and_goes_on(
    servers: str, spark: SparkSession, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    topic = new_name("funnelless")
    text = ActivityOptions().load_definition().path.read_text(encoding="utf-8")
    definition = tmp_path / "mine.toml"
    definition.write_text(text.partition("[activity.funnels]")[0], encoding="utf-8")
    changes = {"definition": str(definition), "set": {"prefix": topic}, "once": True}
    options = _following(servers, topic, tmp_path).model_copy(update=changes)
    for count in (100, 200):
        produce(ActivityProducerOptions(bootstrap_servers=servers, topic=topic, events=count))
        run_to_end(start(spark, options))
    assert {path.name for path in options.table.iterdir() if path.is_dir()} == {
        "sessions",
        "transitions",
        "pages",
        "top-pages",
    }


def _following(servers: str, topic: str, place: Path) -> ActivityOptions:
    return ActivityOptions(
        bootstrap_servers=servers,
        topic=topic,
        set={"prefix": topic},
        once=True,
        keep_rejects=False,
        checkpoint=place / "checkpoint",
        table=place / "tables",
    )


@pytest.mark.slow
def test_many_batches_and_a_restart_come_to_the_same_as_one(
    servers: str, spark: SparkSession, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    topic = new_name("visits")
    producing = ActivityProducerOptions(
        bootstrap_servers=servers, topic=topic, partitions=2, events=1500, pace=0.2
    )
    options = _following(servers, topic, tmp_path)
    options = options.model_copy(update={"max_offsets_per_trigger": 1200})
    for number in (1500, 3000):
        produce(producing.model_copy(update={"events": number}))
        run_to_end(start(spark, options))
    expected = website.valid_events(read_topic(servers, topic))
    check(of_tables(options.table), expected)
    check(of_topics(servers, topic), expected)


@pytest.mark.slow
def test_an_event_behind_the_watermark_is_left_out_of_sessions_and_counted(
    servers: str,
    spark: SparkSession,
    tmp_path: Path,
    new_name: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = new_name("late")
    produce(ActivityProducerOptions(bootstrap_servers=servers, topic=topic, events=1500, pace=0.2))
    options = _following(servers, topic, tmp_path)
    run_to_end(start(spark, options))
    first = website.valid_events(read_topic(servers, topic))[0]
    before = of_tables(options.table)
    assert before["sessions"]
    late = {"id": 1, "at": website.millis(first.at), "visitor": "late", "page": "/late"}
    value = json.dumps(late | {"referrer": None, "device": "mobile", "load_ms": 1})
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, key=b"late", value=value.encode())
    assert producer.flush(120) == 0
    queries = start(spark, options)
    assert run_to_end(queries) == {SESSIONS_QUERY: 1, PAGES_QUERY: 1}
    reports = [report for query in queries for report in reports_of(query)]
    dropped = Counter({r.query: r.dropped_by_watermark for r in reports if r.rows})
    assert dropped == {SESSIONS_QUERY: 1, PAGES_QUERY: 0}
    assert f"{SESSIONS_QUERY}: 1 rows came too late for their windows" in capsys.readouterr().err
    after = of_tables(options.table)
    assert after["sessions"] == before["sessions"]
    new = [row for row in after["pages"] if row not in before["pages"]]
    assert sorted((row["granularity"], row["page"], row["views"]) for row in new) == [
        ("1 day", "/late", 1),
        ("1 hour", "/late", 1),
    ]


@pytest.mark.slow
def test_a_backfill_closes_all_sessions_and_may_be_repeated(
    servers: str, spark: SparkSession, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    topic = new_name("short")
    produce(ActivityProducerOptions(bootstrap_servers=servers, topic=topic, events=400, pace=0.2))
    options = ActivityOptions(
        bootstrap_servers=servers, topic=topic, set={"prefix": topic}, table=tmp_path
    )
    every = website.sessions(website.valid_events(read_topic(servers, topic)))
    for _ in range(2):
        take(spark, read_batch(spark, options, [topic]), options)
        tables = of_tables(tmp_path)
        names = ("visitor", "start", "end", "entry", "exit", "events")
        rows = Counter(tuple(row[name] for name in names) for row in tables["sessions"])
        assert rows == website.session_rows(every)
        counts = {
            (r["granularity"], r["start"], r["funnel"], r["number"]): r["sessions"]
            for r in tables["funnels"]
        }
        assert counts == website.funnel_counts(every)


def _rows(spark: SparkSession, steps: str, section: ActivitySection) -> list[dict[str, Any]]:
    """Return the sessions of one visitor; `steps` are minute:step."""
    rows = [
        (60 * int(minute), 0, number, "v", f"/{step}", step, None)
        for number, (minute, step) in enumerate(word.split(":") for word in steps.split())
    ]
    names = "seconds long, partition int, offset long, visitor string, page string, step string"
    frame = spark.createDataFrame(rows, f"{names}, referrer string")
    found = sessions(frame.selectExpr("timestamp_seconds(seconds) AS event_time", "*"), section)
    counted = [row for row in funnels(found, section).collect() if row.granularity == "1 hour"]
    return [row.asDict() for row in (*found.orderBy("start").collect(), *counted)]


@pytest.mark.parametrize(
    ("steps", "paths", "reached"),
    [
        ("0:product 1:cart 2:checkout 3:thanks", ["product cart checkout thanks"], [4]),
        ("0:cart 1:product 2:thanks 3:cart", ["cart product thanks cart"], [2]),
        ("0:product 30:cart", ["product cart"], [2]),
        ("0:product 31:cart", ["product", "cart"], [1, 0]),
        ("0:home 20:product 40:cart 60:cart", ["home product cart cart"], [2]),
    ],
)
def test_sessions_end_with_a_pause_and_funnels_want_their_steps_in_order(
    steps: str, paths: list[str], reached: list[int], spark: SparkSession
) -> None:
    section = load_definition("activity").section("activity", ActivitySection)
    rows = [row for row in _rows(spark, steps, section) if "path" in row]
    assert [" ".join(row["path"]) for row in rows] == paths
    assert [row["reached"]["purchase"] for row in rows] == reached


def test_sessions_end_at_multiples_of_the_longest_time_for_one(spark: SparkSession) -> None:
    section = load_definition("activity").section("activity", ActivitySection)
    steps = "40:home 59:product 60:cart 79:home 119:cart 120:home"
    rows = _rows(spark, steps, section.model_copy(update={"longest": "1 hour"}))
    paths = [" ".join(row["path"]) for row in rows if "path" in row]
    assert paths == ["home product", "cart home", "cart", "home"]


def _records(spark: SparkSession, *values: dict[str, Any]) -> DataFrame:
    """Return events as Spark's Kafka source gives them."""
    rows = [(None, json.dumps(value).encode(), TOPIC, 0, n) for n, value in enumerate(values)]
    names = "key binary, value binary, topic string, partition int, offset long"
    return spark.createDataFrame(rows, names)


def test_long_texts_are_cut_so_that_sessions_and_pages_fit_their_topics(
    spark: SparkSession,
) -> None:
    page = "/" + "x" * 400_000
    event = {"id": 1, "at": "2026-01-05T10:00:00.000Z", "visitor": "v" * 300_000, "page": page}
    event |= {"referrer": None, "device": "mobile", "load_ms": 1}
    definition = load_definition("activity")
    section = definition.section("activity", ActivitySection)
    rows = parsed(spark, _records(spark, event, event), definition)
    found = told(sessions(events(rows, definition), section), section)
    (session,) = records_of(found, ("visitor", "start"), TOPIC).collect()
    assert len(session["key"]) + len(session["value"]) < 8_000
    (*views,) = page_views(counted(opened(rows, definition, "activity"))).collect()
    assert {view.views for view in views} == {2}
    assert all(len(view.page) < 2_000 for view in views)


@pytest.mark.slow
def test_event_times_at_the_end_of_all_times_end_no_job(
    spark: SparkSession, tmp_path: Path
) -> None:
    """No window could be put around them."""
    text = load_definition("activity").path.read_text()
    record = text[: text.index("[[record.rules]]")].replace("id = {", "micros = {")
    record = record.replace("low = 1 }", "nullable = false }").replace('latest = "1 hour"', "")
    lenient = re.sub("event_time = .*", 'event_time = "timestamp_micros(micros)"', record)
    path = tmp_path / "lenient.toml"
    path.write_text(lenient + text[text.index("[activity]") :])
    definition = load_definition(str(path))
    ends = (2**63 - 1, -(2**63), 253_402_300_799_999_999)
    event = {"at": "", "visitor": "v", "page": "/", "referrer": None, "device": "", "load_ms": 1}
    rows = parsed(spark, _records(spark, *(event | {"micros": at} for at in ends)), definition)
    assert [row[0] for row in rows.select("rejection.reason").collect()] == ["impossible-time"] * 3
    counts = counted(opened(rows, definition, "activity"))
    assert page_views(counts).collect() == []
    assert counts.count() == len(ends), "the rejects"


def test_a_missing_topic_and_a_wrong_expression_are_told(
    servers: str, spark: SparkSession, tmp_path: Path, followed: ActivityOptions
) -> None:
    options = ActivityOptions(bootstrap_servers=servers, topic="nowhere", checkpoint=tmp_path)
    with pytest.raises(JobError, match=r"there is no topic 'nowhere' on .*: produce to it first"):
        start(spark, options)
    path = tmp_path / "mine.toml"
    text = followed.load_definition().path.read_text()
    path.write_text(text.replace('step = "page_kind"', 'step = "kind_of_page"'))
    changes = {"definition": str(path), "checkpoint": tmp_path / "c", "table": tmp_path / "t"}
    with pytest.raises(BadOptionError, match=r"activity.step: .*kind_of_page"):
        start(spark, followed.model_copy(update=changes))
