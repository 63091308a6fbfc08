"""Avro records in Spark: read by a definition without fields, with schemas of several ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from spark_jobs.definitions.rejects import reject_json_sql
from spark_jobs.definitions.typed_records import parsed
from spark_jobs.errors import BadOptionError, JobError
from spark_jobs.options import DefinitionOptions
from spark_jobs.spark.streams import failure_reason, read_batch
from tests.spark_jobs.registry.registry_process import RegistryProcess
from tests.spark_jobs.registry.schema_texts import avro

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

OLD = avro(("id", "long"), ("at", "long"))
NEW = avro(("id", "long"), ("at", "long"), ("note", ["null", "string"], None))
AT = 1_795_764_944_871
DEFINITION = """[record]
format = "avro"
event_time = "timestamp_millis(at)"
"""

Records = Sequence[tuple[str, dict[str, Any]] | bytes]


def produce(servers: str, registry: RegistryProcess, topic: str, records: Records) -> None:
    """Produce records of schemas, and bytes as they are."""
    producer = Producer({"bootstrap.servers": servers})
    context = SerializationContext(topic, MessageField.VALUE)
    with SchemaRegistryClient({"url": registry.url}) as client:
        for record in records:
            if isinstance(record, bytes):
                producer.produce(topic, record)
            else:
                schema, content = record
                producer.produce(topic, AvroSerializer(client, schema)(content, context))
            producer.poll(0)
    assert producer.flush(60) == 0


def options_of(servers: str, url: str | None, topic: str, directory: Path) -> DefinitionOptions:
    path = directory / "orders.toml"
    path.write_text(DEFINITION)
    return DefinitionOptions(
        bootstrap_servers=servers, topic=topic, definition=str(path), schema_registry=url
    )


def rows_of(spark: SparkSession, options: DefinitionOptions) -> DataFrame:
    records = read_batch(spark, options, [options.topic])
    return parsed(spark, records, options.load_definition())


def test_records_of_two_schemas_have_the_columns_of_the_latest(
    spark: SparkSession,
    servers: str,
    registries: tuple[RegistryProcess, RegistryProcess],
    new_name: Callable[[str], str],
    tmp_path: Path,
) -> None:
    topic = new_name("evolved")
    old: Records = [(OLD, {"id": i, "at": AT}) for i in range(3)]
    new: Records = [(NEW, {"id": i, "at": AT, "note": "é"}) for i in range(3, 6)]
    produce(servers, registries[0], topic, [*old, *new])
    rows = rows_of(spark, options_of(servers, registries[1].url, topic, tmp_path))
    found = rows.orderBy("id").select("id", "note", "rejection", "event_time").collect()
    assert [(row.id, row.note) for row in found] == [
        *((i, None) for i in range(3)),
        *((i, "é") for i in range(3, 6)),
    ]
    assert all(row.rejection is None and row.event_time is not None for row in found)


@pytest.mark.slow
def test_value_that_fits_no_schema_is_a_reject_with_its_bytes(
    spark: SparkSession,
    servers: str,
    registries: tuple[RegistryProcess, RegistryProcess],
    new_name: Callable[[str], str],
    tmp_path: Path,
) -> None:
    topic = new_name("damaged")
    bad: Records = [b'{"id":1}', b"\x00\x7f\xff\xff\xff\x02", b"\x01\x02\xff\x04\x05\x06", b""]
    produce(servers, registries[0], topic, [(OLD, {"id": 1, "at": AT}), *bad])
    rows = rows_of(spark, options_of(servers, registries[0].url, topic, tmp_path))
    rejected = rows.where("rejection IS NOT NULL").orderBy("offset")
    found = rejected.selectExpr("rejection.reason AS reason").collect()
    reasons = ["not-framed", "unknown-schema", "not-framed", "empty"]
    assert [row.reason for row in found] == reasons
    kept = rejected.selectExpr(
        f"get_json_object({reject_json_sql('test')}, '$.raw_base64') AS raw_base64"
    ).collect()
    assert [row.raw_base64 for row in kept] == [None, "AH////8C", "AQL/BAUG", None]
    assert rows.where("rejection IS NULL").count() == 1


@pytest.mark.slow
def test_registry_that_goes_away_ends_the_batch_in_one_line(
    spark: SparkSession,
    servers: str,
    registries: tuple[RegistryProcess, RegistryProcess],
    new_name: Callable[[str], str],
    tmp_path: Path,
) -> None:
    topic = new_name("away")
    produce(servers, registries[0], topic, [(OLD, {"id": 1, "at": AT})])
    registry = RegistryProcess(servers, tmp_path)
    registry.start()
    rows = rows_of(spark, options_of(servers, registry.url, topic, tmp_path))
    registry.stop()
    with pytest.raises(Exception, match="does not answer") as raised:
        rows.collect()
    line = failure_reason(raised.value)
    assert line.startswith(f"schema registry {registry.url} does not answer: ")
    assert "\n" not in line


def test_definition_says_what_it_lacks(
    servers: str,
    registries: tuple[RegistryProcess, RegistryProcess],
    new_name: Callable[[str], str],
    tmp_path: Path,
) -> None:
    topic = new_name("unheard-of")
    with pytest.raises(BadOptionError, match="a record in Avro needs --schema-registry"):
        options_of(servers, None, topic, tmp_path).load_definition()
    with pytest.raises(JobError, match=f"has no subject '{topic}-value'"):
        options_of(servers, registries[0].url, topic, tmp_path).load_definition()
