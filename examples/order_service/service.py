"""Ships orders: each order becomes one shipment, whatever happens on the way.

Offsets are committed with the shipments, in one transaction, so both are there or neither.
"""

from __future__ import annotations

import asyncio
import json
import os

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from config import Settings

RETRY_SECONDS = 0.1


async def run(settings: Settings) -> None:
    """Ship until cancelled; after an error of Kafka, from what is committed on."""
    while True:
        try:
            await _ship_until_an_error(settings)
        except KafkaError as error:
            print(f"starting again after {error!r}")
            await asyncio.sleep(RETRY_SECONDS)


async def _ship_until_an_error(settings: Settings) -> None:
    servers = settings.bootstrap_servers
    consumer = AIOKafkaConsumer(
        settings.orders,
        bootstrap_servers=servers,
        group_id=settings.group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=settings.group)
    async with consumer, producer:
        while True:
            batches = await consumer.getmany(timeout_ms=200)
            if batches:
                await _ship(settings, producer, batches)


async def _ship(settings: Settings, producer: AIOKafkaProducer, batches: dict) -> None:
    async with producer.transaction():
        offsets: dict[TopicPartition, int] = {}
        sent: list[asyncio.Future] = []
        for partition, orders in batches.items():
            for order in orders:
                shipment = json.dumps({"ships": json.loads(order.value)["item"]}).encode()
                sent.append(await producer.send(settings.shipments, shipment, key=order.key))
                offsets[partition] = order.offset + 1
        await asyncio.gather(*sent)
        await producer.send_offsets_to_transaction(offsets, settings.group)


if __name__ == "__main__":
    asyncio.run(run(Settings.read(os.environ)))
