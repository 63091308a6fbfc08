"""Flights joined with their planes: as pandas joins them, whatever becomes of the table."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from spark_jobs.definitions.definition import BUILT_IN
from spark_jobs.errors import BadOptionError, JobError
from spark_jobs.jobs.enrich import NAME, EnrichOptions, start, take
from spark_jobs.spark.streams import read_batch, run_to_end
from tests.spark_jobs.conftest import TOPIC
from tests.spark_jobs.data.month import DAMAGED, FEED
from tests.spark_jobs.data.planes import flights_with_planes, plane_records, produce_table
from tests.spark_jobs.kafka.consuming import Read, read_topic
from tests.spark_jobs.kafka.producing import Record, create_topic, produce_records

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from spark_jobs.jobs.produce_flights import Outcome

PLANES = "planes"


@pytest.fixture(scope="module")
def planes(servers: str) -> dict[str, bytes]:
    """Produce the planes; return their records."""
    records = plane_records()
    produce_table(servers, PLANES, records.items())
    return records


@pytest.fixture(scope="module")
def enriched(
    servers: str,
    spark: SparkSession,
    produced: Outcome,
    planes: dict[str, bytes],
    tmp_path_factory: pytest.TempPathFactory,
) -> EnrichOptions:
    """Enrich the month once; return the options it ran with."""
    assert planes
    options = EnrichOptions(
        bootstrap_servers=servers,
        topic=TOPIC,
        table_topic=PLANES,
        rejects_topic="march.enrich-rejected",
        once=True,
        checkpoint=tmp_path_factory.mktemp("checkpoint"),
    )
    assert run_to_end(start(spark, options)) == {NAME: produced.lines}
    return options


def _values(servers: str, topic: str) -> list[dict[str, Any]]:
    return [json.loads(record.value or b"") for record in read_topic(servers, topic)]


def _plain(value: Any) -> Any:
    return None if pd.isna(value) else value


def test_every_flight_has_the_plane_that_pandas_finds(
    servers: str, enriched: EnrichOptions, spark: SparkSession
) -> None:
    assert spark is not None
    columns = ["day", "carrier", "flight", "origin", "sched_dep_time", "tailnum"]
    of_plane = ["manufacturer", "model", "seats", "engine", "speed"]
    expected = Counter(
        tuple(_plain(row[name]) for name in (*columns, "built", *of_plane))
        for row in flights_with_planes().to_dict("records")
    )
    found: Counter[tuple[Any, ...]] = Counter()
    for value in _values(servers, enriched.target()):
        plane = value["plane"] or dict.fromkeys(["year", *of_plane])
        flight = tuple(value[name] for name in columns)
        found[(*flight, plane["year"], *(plane[name] for name in of_plane))] += 1
    assert found == expected


def test_the_output_has_all_fields_names_and_what_the_section_adds(
    servers: str, enriched: EnrichOptions, spark: SparkSession
) -> None:
    assert spark is not None
    source = {(r.partition, r.offset): r for r in read_topic(servers, TOPIC)}
    record = read_topic(servers, enriched.target())[0]
    value = json.loads(record.value or b"")
    origin = source[value["source"]["partition"], value["source"]["offset"]]
    sent = json.loads(origin.value or b"")
    added = {"airline_name", "origin_name", "dest_name", "event_time", "plane", "plane_age"}
    assert {name: value[name] for name in sent} == sent
    assert value.keys() - sent.keys() == {*added, "source"}
    assert record.key == origin.key
    assert record.headers["source"].decode() == f"march/{origin.partition}/{origin.offset}"


def test_damaged_lines_are_rejected_by_this_job_too(
    servers: str, enriched: EnrichOptions, produced: Outcome, spark: SparkSession
) -> None:
    assert spark is not None
    rejects = _values(servers, enriched.rejects())
    assert Counter(value["reason"] for value in rejects) == produced.reasons
    assert {(value["job"], value["source"]["topic"]) for value in rejects} == {("enrich", TOPIC)}


def test_running_again_adds_nothing(
    servers: str, enriched: EnrichOptions, spark: SparkSession
) -> None:
    before = len(read_topic(servers, enriched.target()))
    assert run_to_end(start(spark, enriched)) == {NAME: 0}
    assert len(read_topic(servers, enriched.target())) == before


@pytest.mark.slow
def test_flights_without_a_plane_can_be_rejected(
    servers: str,
    enriched: EnrichOptions,
    spark: SparkSession,
    new_name: Callable[[str], str],
) -> None:
    """Given a batch of records, as backfill gives it, when unmatched ones are to be rejected."""
    name = new_name("strict")
    strict = {"unmatched": "reject", "target_topic": name, "rejects_topic": f"{name}.rejected"}
    options = enriched.model_copy(update=strict)
    take(spark, read_batch(spark, options, [TOPIC]), options)
    flights = flights_with_planes()
    without = flights[flights.manufacturer.isna()]
    assert len(_values(servers, name)) == len(flights) - len(without)
    rejects = _values(servers, f"{name}.rejected")
    unmatched = [value["detail"] for value in rejects if value["reason"] == "unmatched"]
    keys = without.tailnum.astype(object).where(without.tailnum.notna(), "NULL")
    assert Counter(unmatched) == Counter(f"{key} is not in planes" for key in keys)
    assert len(rejects) == len(without) + DAMAGED


class Changing:
    """A few flights, and a table of their planes that changes between batches."""

    def __init__(self, servers: str, name: str, checkpoint: Path) -> None:
        self.servers = servers
        self.table = f"{name}.planes"
        self.options = EnrichOptions(
            bootstrap_servers=servers,
            topic=name,
            table_topic=self.table,
            once=True,
            checkpoint=checkpoint,
        )
        self.planes = plane_records()
        self.flights = {}
        for line in FEED.lines(FEED.flights()):
            tail = json.loads(line.value or b"")["tailnum"] if line.damage is None else None
            if tail in self.planes:
                self.flights[tail] = Record(line.key, line.value)
            if len(self.flights) == 3:
                break
        self.tails = list(self.flights)
        produce_table(servers, self.table, [(tail, self.planes[tail]) for tail in self.tails])
        create_topic(servers, name)

    def plane(self, tail: str, seats: int) -> bytes:
        return json.dumps(json.loads(self.planes[tail]) | {"seats": seats}).encode()

    def change(self, **values: bytes | None) -> None:
        produce_table(self.servers, self.table, values.items())

    def run(self, spark: SparkSession) -> list[list[int | None]]:
        """Run the job once; return the seats of each output, in order, three to a row."""
        run_to_end(start(spark, self.options))
        outputs = sorted(read_topic(self.servers, self.options.target()), key=_order)
        seats = [json.loads(output.value or b"")["plane"] for output in outputs]
        found = [plane and plane["seats"] for plane in seats]
        return [found[begin : begin + 3] for begin in range(0, len(found), 3)]

    def fly(self) -> None:
        """Produce the flights once more."""
        produce_records(self.servers, self.options.topic, self.flights.values())


def _order(record: Read) -> tuple[int, int]:
    """By place in the source, copies behind each other."""
    _, partition, offset = record.headers["source"].decode().split("/")
    return int(partition), int(offset)


@pytest.mark.slow
def test_each_batch_sees_the_table_of_its_begin_and_sees_it_again(
    spark: SparkSession, servers: str, new_name: Callable[[str], str], tmp_path: Path
) -> None:
    world = Changing(servers, new_name("changing"), tmp_path)
    a, b, c = world.tails
    seats = [json.loads(world.planes[tail])["seats"] for tail in world.tails]
    world.fly()
    assert world.run(spark) == [seats]

    world.change(**{a: world.plane(a, 11), b: None, c: b"no plane"})
    world.fly()
    assert world.run(spark) == [seats, [11, None, None]]

    world.change(**{a: world.plane(a, 12), b: world.plane(b, 22)})
    for path in (tmp_path / NAME / "commits").glob("*1*"):
        path.unlink()
    assert world.run(spark) == [seats, [11, 11, None], [None, None, None]], "equal copies"

    world.fly()
    assert world.run(spark)[-1] == [12, 22, None]
    rejects = _values(servers, world.options.rejects())
    assert [(value["reason"], value["source"]["topic"], value["raw"]) for value in rejects] == [
        ("not-json", world.table, "no plane")
    ]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (('on = "tailnum"', 'on = "tail"'), r"enrich.on: .*`tail` cannot be resolved"),
        (('into = "plane"', 'into = "Carrier"'), "enrich.into: there is a column 'Carrier'"),
        (("plane.year", "plane.built"), r"enrich.also.plane_age: .*No such struct field `built`"),
        (('table = "planes"', 'table = "plains"'), "there is no file .*plains"),
    ],
)
def test_a_mistake_in_the_section_is_named(
    edit: tuple[str, str],
    message: str,
    enriched: EnrichOptions,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    text = (BUILT_IN / "flights.toml").read_text(encoding="utf-8")
    path = tmp_path / "flights.toml"
    path.write_text(text.replace(*edit))
    options = enriched.model_copy(update={"definition": str(path)})
    with pytest.raises(BadOptionError, match=rf"^--definition: .*{message}"):
        start(spark, options)


def test_a_table_that_is_not_there_is_named(enriched: EnrichOptions, spark: SparkSession) -> None:
    options = enriched.model_copy(update={"table_topic": "nowhere"})
    with pytest.raises(JobError, match=r"there is no topic 'nowhere' on .*: produce the table"):
        start(spark, options)
