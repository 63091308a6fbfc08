"""Routing a month: the numbers are pandas', the reasons are the damage's, reruns add nothing."""

from __future__ import annotations

import base64
import json
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from spark_jobs.errors import JobError
from spark_jobs.jobs.route import NAME, RouteOptions, start
from spark_jobs.pipeline.tally import tally_routes
from spark_jobs.spark.streams import run_to_end
from tests.spark_jobs.conftest import TOPIC
from tests.spark_jobs.data.month import damaged_lines, flights_by_route, month_of_flights
from tests.spark_jobs.kafka.consuming import Read, read_topic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_jobs.jobs.produce_flights import Outcome


@pytest.fixture(scope="module")
def routed(
    servers: str, spark: SparkSession, produced: Outcome, tmp_path_factory: pytest.TempPathFactory
) -> RouteOptions:
    """Route the month once; return the options it ran with."""
    options = RouteOptions(
        bootstrap_servers=servers,
        topic=TOPIC,
        once=True,
        checkpoint=tmp_path_factory.mktemp("checkpoint"),
    )
    assert run_to_end(start(spark, options)) == {NAME: produced.lines}
    return options


def _values(options: RouteOptions, route: str) -> list[dict[str, Any]]:
    records = read_topic(options.bootstrap_servers, options.targets()[route])
    return [json.loads(record.value or b"") for record in records]


def test_each_route_gets_as_many_flights_as_pandas_counts(
    spark: SparkSession, routed: RouteOptions, produced: Outcome
) -> None:
    tally = tally_routes(spark, routed)
    assert tally.routed == flights_by_route()
    assert tally.source == produced.lines
    assert tally.reasons == produced.reasons
    assert (tally.copies, tally.lost, tally.strays) == (0, 0, 0)
    assert tally.is_exact()


@pytest.mark.parametrize("route", ["on-time", "delayed", "cancelled"])
def test_flights_arrive_whole(route: str, routed: RouteOptions, spark: SparkSession) -> None:
    assert spark is not None
    flights = month_of_flights()
    columns = ["day", "carrier", "flight", "origin", "sched_dep_time", "arr_delay", "tailnum"]
    wanted = flights[flights.route == route][columns].astype(object)
    expected = Counter(wanted.where(wanted.notna(), None).itertuples(index=False, name=None))
    found = Counter(tuple(value[name] for name in columns) for value in _values(routed, route))
    assert found == expected


def test_flights_have_names_an_event_time_and_a_source(
    servers: str, routed: RouteOptions, spark: SparkSession
) -> None:
    assert spark is not None
    record = read_topic(servers, routed.targets()["on-time"])[0]
    flight = json.loads(record.value or b"")
    source = flight["source"]
    origin = {(r.partition, r.offset): r for r in read_topic(servers, TOPIC)}[
        source["partition"], source["offset"]
    ]
    sent = json.loads(origin.value or b"")
    assert {name: flight[name] for name in sent} == sent
    assert record.key == origin.key
    assert record.headers["source"].decode() == f"march/{origin.partition}/{origin.offset}"
    assert flight["event_time"][:14] == sent["time_hour"][:14]
    assert flight["origin_name"] in {"Newark Liberty Intl", "John F Kennedy Intl", "La Guardia"}
    assert flight["airline_name"]
    assert flight["dest_name"]


def test_each_damaged_line_is_rejected_for_its_reason(
    servers: str, routed: RouteOptions, spark: SparkSession
) -> None:
    assert spark is not None
    source = {(r.partition, r.offset): r for r in read_topic(servers, TOPIC)}
    found = {}
    for value in _values(routed, "rejected"):
        origin = source[value["source"]["partition"], value["source"]["offset"]]
        found[_line_number(origin)] = value["reason"]
        assert value["source"]["topic"] == TOPIC
        assert _raw(value) == origin.value
        assert value["detail"]
    expected = {n: line.damage.reason for n, line in damaged_lines().items() if line.damage}
    assert found == expected


def _line_number(record: Read) -> int:
    return int(record.headers["line"].rpartition(b"/")[2])


def _raw(value: dict[str, Any]) -> bytes | None:
    if value["raw_base64"] is not None:
        return base64.b64decode(value["raw_base64"])
    raw: str | None = value["raw"]
    return None if raw is None else raw.encode()


@pytest.mark.slow
def test_running_again_adds_nothing(spark: SparkSession, routed: RouteOptions) -> None:
    before = tally_routes(spark, routed)
    assert run_to_end(start(spark, routed)) == {NAME: 0}
    assert tally_routes(spark, routed) == before


@pytest.mark.slow
def test_a_batch_repeated_after_an_interruption_is_seen_as_copies_and_counted_once(
    spark: SparkSession, routed: RouteOptions, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    prefix = new_name("again")
    options = routed.model_copy(
        update={
            "set": {"prefix": prefix},
            "rejects_topic": f"{prefix}.rejected",
            "checkpoint": tmp_path,
            "max_offsets_per_trigger": 20_000,
        }
    )
    run_to_end(start(spark, options))
    commits = sorted((tmp_path / NAME / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    assert len(commits) == 2
    for path in (commits[-1], commits[-1].with_name(f".{commits[-1].name}.crc")):
        path.unlink(missing_ok=True)
    repeated = run_to_end(start(spark, options))[NAME]
    tally = tally_routes(spark, options)
    assert tally.copies == repeated > 0
    assert tally.routed == flights_by_route()
    assert tally.is_exact()


@pytest.mark.usefixtures("produced")
def test_a_missing_topic_is_named(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    options = RouteOptions(bootstrap_servers=servers, topic="nowhere", checkpoint=tmp_path)
    with pytest.raises(JobError, match=f"there is no topic 'nowhere' on {servers}: produce to"):
        start(spark, options)


def test_a_checkpoint_of_another_broker_is_named(
    spark: SparkSession, servers: str, routed: RouteOptions, new_name: Callable[[str], str]
) -> None:
    from spark_jobs.jobs.produce_flights import ProduceOptions, produce

    small = new_name("small")
    produce(ProduceOptions(bootstrap_servers=servers, topic=small, partitions=3, months=(2,)))
    checkpoint = routed.checkpoint.parent / small
    shutil.copytree(routed.checkpoint, checkpoint)
    for path in (checkpoint / NAME / "offsets").glob("[0-9]*"):
        path.write_text(path.read_text().replace(TOPIC, small))
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    options = routed.model_copy(update={"topic": small, "checkpoint": checkpoint})
    with pytest.raises(JobError, match="checkpoint"):
        run_to_end(start(spark, options))
