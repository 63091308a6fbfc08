"""Adds up sales by day: reads what is new to the end, writes a record of totals, and ends.

Totals and the offsets up to which they count are one transaction. A run that breaks off has done
nothing; the next one does its work.
"""

from __future__ import annotations

import json
import sys
from collections import Counter

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from storage import Sale

SECONDS = 30.0


def run(bootstrap_servers: str, sales: str, totals: str) -> Counter[str]:
    """Do it once; returns what was added up. Raises KafkaException."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": totals,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": totals})
    try:
        producer.init_transactions(SECONDS)  # ends what a run before this one left open
        starts = _committed(consumer, sales)
        counted, ends = _add_up(consumer, starts)
        if not counted:
            return counted
        producer.begin_transaction()
        producer.produce(totals, json.dumps(counted).encode())
        producer.send_offsets_to_transaction(ends, consumer.consumer_group_metadata(), SECONDS)
        producer.commit_transaction(SECONDS)
        return counted
    finally:
        consumer.close()


def _committed(consumer: Consumer, topic: str) -> list[TopicPartition]:
    partitions = consumer.list_topics(topic, timeout=SECONDS).topics[topic].partitions
    return consumer.committed([TopicPartition(topic, number) for number in partitions], SECONDS)


def _add_up(
    consumer: Consumer, starts: list[TopicPartition]
) -> tuple[Counter[str], list[TopicPartition]]:
    """The sums by day from there to the ends, and the ends."""
    counted: Counter[str] = Counter()
    ends = []
    for start in starts:
        lowest, end = consumer.get_watermark_offsets(start, timeout=SECONDS)
        position = max(start.offset, lowest)
        consumer.assign([TopicPartition(start.topic, start.partition, position)])
        while position < end:
            message = consumer.poll(SECONDS)
            if message is None or message.error():
                raise KafkaException(message and message.error())
            sale = Sale.from_json(message.value())
            counted[sale.day] += sale.cents
            position = message.offset() + 1
        ends.append(TopicPartition(start.topic, start.partition, position))
    return counted, ends


if __name__ == "__main__":
    print(run(*sys.argv[1:]))
