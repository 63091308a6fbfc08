"""Produce orders in Avro, of which the later half has a schema with one field more.

Run it as `python produce.py localhost:9092 http://localhost:8081 1000`.
"""

from __future__ import annotations

import json
import sys

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

TOPIC = "orders"
FIRST_MS = 1_795_766_400_000

FIELDS = [
    {"name": "order_id", "type": "long"},
    {"name": "ordered_ms", "type": "long"},
    {"name": "total_cents", "type": "long"},
]
COUPON = {"name": "coupon", "type": ["null", "string"], "default": None}
"""What the second version adds: with a default, so that it reads orders of the first."""


def schema(*fields):
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


def order(number):
    return {
        "order_id": number,
        "ordered_ms": FIRST_MS + 1000 * number,
        "total_cents": number * 37 % 20_000,
    }


def produce(bootstrap_servers, registry_url, count, topic=TOPIC):
    """Produce so many orders; every third of the second version has a coupon."""
    context = SerializationContext(topic, MessageField.VALUE)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    with SchemaRegistryClient({"url": registry_url}) as registry:
        first = AvroSerializer(registry, schema(*FIELDS))
        second = AvroSerializer(registry, schema(*FIELDS, COUPON))
        for number in range(count):
            record = order(number)
            serialize = first
            if number >= count // 2:
                serialize = second
                record["coupon"] = "SPRING" if number % 3 == 0 else None
            producer.produce(topic, serialize(record, context), str(number))
            producer.poll(0)
    if producer.flush(60):
        raise SystemExit("not all orders could be produced")


if __name__ == "__main__":
    produce(sys.argv[1], sys.argv[2], int(sys.argv[3]))
