"""Confluent's own client and serialisers, one registry for each side."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from tests.spark_jobs.registry.schema_texts import ORDER, ORDER_WITH_TOTAL, avro

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.spark_jobs.registry.registry_process import RegistryProcess

pytestmark = pytest.mark.process

Registries = tuple["RegistryProcess", "RegistryProcess"]
TOTAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
AT = {"type": "long", "logicalType": "timestamp-millis"}
PRICE = """{"$schema": "http://json-schema.org/draft-07/schema#", "title": "Price",
  "type": "object", "properties": {"cents": {"type": "integer"}}, "additionalProperties": false}"""


@pytest.fixture
def clients(
    registries: Registries,
) -> Iterator[tuple[SchemaRegistryClient, SchemaRegistryClient]]:
    one, other = (SchemaRegistryClient({"url": registry.url}) for registry in registries)
    with one, other:
        yield one, other


def of_topic(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def test_avro_record_comes_back_through_the_other_registry(
    clients: Any, new_name: Callable[[str], str]
) -> None:
    topic = of_topic(new_name("avro"))
    schema = avro(("id", "long"), ("total", TOTAL), ("at", AT))
    record = {"id": 7, "total": Decimal("12.50"), "at": dt.datetime(2026, 11, 27, tzinfo=dt.UTC)}
    value = AvroSerializer(clients[0], schema)(record, topic)
    assert AvroDeserializer(clients[1])(value, topic) == record


def test_avro_record_of_referred_types_comes_back(
    clients: Any, new_name: Callable[[str], str]
) -> None:
    subject = new_name("address")
    address = avro(("street", "string"), name="Address")
    clients[0].register_schema(subject, Schema(address, "AVRO"))
    there = [SchemaReference("Address", subject, 1)]
    schema = Schema(avro(("home", "Address"), name="Customer"), "AVRO", there)
    topic = of_topic(new_name("customer"))
    value = AvroSerializer(clients[1], schema)({"home": {"street": "x"}}, topic)
    assert AvroDeserializer(clients[0])(value, topic) == {"home": {"street": "x"}}


def test_incompatible_schema_is_refused_to_the_client(
    clients: Any, new_name: Callable[[str], str]
) -> None:
    subject = new_name("refused")
    clients[0].register_schema(subject, Schema(ORDER, "AVRO"))
    with pytest.raises(SchemaRegistryError) as raised:
        clients[1].register_schema(subject, Schema(ORDER_WITH_TOTAL, "AVRO"))
    assert (raised.value.http_status_code, raised.value.error_code) == (409, 409)
    assert not clients[0].test_compatibility(subject, Schema(ORDER_WITH_TOTAL, "AVRO"))
    assert clients[1].set_compatibility(subject, "NONE") == {"compatibility": "NONE"}
    assert clients[1].get_compatibility(subject) == "NONE"
    assert clients[0].register_schema(subject, Schema(ORDER_WITH_TOTAL, "AVRO"))
    assert clients[1].get_versions(subject) == [1, 2]
    assert clients[0].delete_subject(subject) == [1, 2]


def test_json_object_comes_back(clients: Any, new_name: Callable[[str], str]) -> None:
    topic = of_topic(new_name("json"))
    value = JSONSerializer(PRICE, clients[0])({"cents": 7}, topic)
    reader = JSONDeserializer(None, schema_registry_client=clients[1])
    assert reader(value, topic) == {"cents": 7}


def test_protobuf_message_comes_back(
    clients: Any, new_name: Callable[[str], str], tmp_path: Path
) -> None:
    message = protobuf_class(tmp_path)
    topic = of_topic(new_name("protobuf"))
    sent = message(cents=7)
    value = ProtobufSerializer(message, clients[0])(sent, topic)
    assert ProtobufDeserializer(message, {}, clients[1])(value, topic) == sent


def protobuf_class(directory: Path) -> Any:
    """Compile a message; `protoc` is a package of the registry."""
    (directory / "price.proto").write_text(
        'syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";'
        "message Price { int64 cents = 1; google.protobuf.Timestamp at = 2; }"
    )
    out = directory / "out"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={directory}"]
    subprocess.run(
        [*command, "--include_imports", f"--descriptor_set_out={out}", "price.proto"], check=True
    )
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(out.read_bytes()).file:
        pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("shop.Price"))
