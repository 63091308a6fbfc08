"""A compacted topic as a table: what each batch sees of it, and sees again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.cimpl import NewPartitions

from spark_jobs.definitions.definition import load_definition
from spark_jobs.errors import JobError
from spark_jobs.options import SparkOptions
from spark_jobs.spark.lookup_pins import Pin, Pins
from spark_jobs.spark.lookup_table import RELOAD_SECONDS, LookupSource, LookupTable, table_of_now
from tests.spark_jobs.data.planes import produce_table
from tests.spark_jobs.kafka.consuming import read_topic
from tests.spark_jobs.kafka.producing import admin, create_topic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

DEFINITION = """
[record]
event_time = "timestamp"
[record.fields]
size = { type = "integer", low = 0 }
[record.columns]
double = "size * 2"
"""


def _size(size: int) -> bytes:
    return json.dumps({"size": size}).encode()


class World:
    """A table's topic, its rejects, and as many processes that use it as a test wants."""

    def __init__(self, spark: SparkSession, servers: str, topic: str, directory: Path) -> None:
        path = directory / "things.toml"
        path.write_text(DEFINITION)
        self.topic = topic
        self.servers = servers
        self.now = 0.0
        self.pins = directory / "table"
        self.options = SparkOptions(bootstrap_servers=servers)
        self.source = LookupSource(topic, load_definition(str(path)), "job", f"{topic}.rejected")
        self.spark = spark
        self.admin = admin(servers)
        create_topic(servers, self.source.rejects_topic)
        create_topic(servers, topic, 2)  # not compacted: then records may be deleted

    def process(self) -> LookupTable:
        """Return the table as a process has it that has just started."""
        pins = Pins(self.pins)
        return LookupTable(self.spark, self.options, self.source, pins, lambda: self.now)

    def produce(self, **sizes: int | bytes | None) -> None:
        """Add records; a number is a good one, bytes are as they are, None deletes a key."""
        produce_table(
            self.servers,
            self.topic,
            [(key, _size(v) if isinstance(v, int) else v) for key, v in sizes.items()],
        )

    def remove_all_records(self) -> None:
        """Do at once what compaction may do: records that are not the last of their key go."""
        ends = {record.partition: record.offset + 1 for record in sorted(self.records())}
        places = [TopicPartition(self.topic, index, end) for index, end in ends.items()]
        for done in self.admin.delete_records(places).values():
            done.result()

    def records(self) -> list[Any]:
        return read_topic(self.servers, self.topic)

    def rejects(self) -> list[tuple[str, str]]:
        """Return key and reason of each reject."""
        records = read_topic(self.servers, self.source.rejects_topic)
        return [
            ((record.key or b"").decode(), json.loads(record.value or b"")["reason"])
            for record in sorted(records)
        ]


@pytest.fixture
def world(
    spark: SparkSession, servers: str, new_name: Callable[[str], str], tmp_path: Path
) -> World:
    return World(spark, servers, new_name("things"), tmp_path)


def sizes(table: DataFrame) -> dict[str, int]:
    rows = table.collect()
    assert all(row["row"]["double"] == 2 * row["row"]["size"] for row in rows)
    found = {row["key"].decode(): row["row"]["size"] for row in rows}
    assert len(found) == len(rows)
    return found


def test_changes_are_taken_in_from_batch_to_batch_and_a_batch_sees_the_same_again(
    world: World,
) -> None:
    world.produce(a=1, b=2, c=3)
    world.produce(a=10)
    table = world.process()
    assert sizes(table.as_of(0)) == {"a": 10, "b": 2, "c": 3}
    world.produce(b=None, c=30, d=4)
    assert sizes(table.as_of(0)) == {"a": 10, "b": 2, "c": 3}
    assert sizes(table.as_of(1)) == {"a": 10, "c": 30, "d": 4}
    assert sizes(table.as_of(2)) == {"a": 10, "c": 30, "d": 4}
    assert [path.name for path in world.pins.glob("version-*")] == ["version-1"]
    assert sizes(table_of_now(world.spark, world.options, world.source)) == sizes(table.as_of(2))


@pytest.mark.slow
def test_a_batch_that_comes_again_sees_what_compaction_has_removed_since(world: World) -> None:
    world.produce(a=1, b=2)
    assert sizes(world.process().as_of(5)) == {"a": 1, "b": 2}
    world.remove_all_records()
    world.produce(b=20)
    again = world.process()
    assert sizes(again.as_of(5)) == {"a": 1, "b": 2}
    assert sizes(again.as_of(6)) == {"b": 20}, "a process begins with the whole topic"


@pytest.mark.slow
def test_who_has_not_looked_for_long_reads_the_whole_topic(world: World) -> None:
    """Given a deletion that was compacted away, when nobody saw it, then it counts all the same."""
    world.produce(a=1, b=2)
    table = world.process()
    table.as_of(0)
    world.remove_all_records()
    world.produce(b=3)
    assert sizes(table.as_of(1)) == {"a": 1, "b": 3}
    world.produce(c=4)
    world.now += RELOAD_SECONDS
    assert sizes(table.as_of(2)) == {"b": 3, "c": 4}


def test_a_process_that_died_while_it_built_a_version_leaves_no_trace(world: World) -> None:
    world.produce(a=1)
    table = world.process()
    table.as_of(0)
    unfinished = world.pins / "version-1"
    unfinished.mkdir()
    (unfinished / "part-0.parquet").write_bytes(b"half of a file")
    world.produce(b=2)
    assert sizes(world.process().as_of(1)) == {"a": 1, "b": 2}


@pytest.mark.slow
def test_bad_records_are_rejected_once_and_take_their_key_out_of_the_table(world: World) -> None:
    world.produce(a=1, b=b"{", c=3, d=-1)
    table = world.process()
    assert sizes(table.as_of(0)) == {"a": 1, "c": 3}
    world.produce(c=b'{"size":"3"}', b=2)
    assert sizes(table.as_of(1)) == {"a": 1, "b": 2}
    assert sizes(world.process().as_of(2)) == {"a": 1, "b": 2}
    rejected = [("b", "not-json"), ("c", "wrong-type"), ("d", "impossible-number")]
    assert sorted(world.rejects()) == rejected


@pytest.mark.slow
def test_a_topic_that_is_grown_or_made_anew_is_read_as_it_is(world: World) -> None:
    world.produce(a=1, b=2, c=3, d=4)
    table = world.process()
    table.as_of(0)
    world.admin.create_partitions([NewPartitions(world.topic, 7)])[world.topic].result()
    world.produce(a=10, b=20, c=30, d=40, e=50)
    grown = {"a": 10, "b": 20, "c": 30, "d": 40, "e": 50}
    assert sizes(table.as_of(1)) == sizes(world.process().as_of(2)) == grown
    world.admin.delete_topics([world.topic])[world.topic].result()
    world.produce(z=1)
    assert sizes(table.as_of(3)) == {"z": 1}


def test_a_pin_survives_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    pin = Pin(batch=3, version=1, topic_id="x", offsets={0: 5, 1: 7})
    Pins(tmp_path).add(pin)
    assert Pins(tmp_path).find(3) == Pins(tmp_path).last_before(9) == pin
    assert Pins(tmp_path).find(2) is Pins(tmp_path).last_before(3) is None
    (tmp_path / "pins" / "3.json").write_text("{")
    with pytest.raises(JobError, match=r"^--checkpoint: .*3\.json is damaged: "):
        Pins(tmp_path).find(3)
