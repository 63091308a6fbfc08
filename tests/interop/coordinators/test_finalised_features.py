"""A cluster without brokers of Apache Kafka, once its features are finalised."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer

from tests.interop.conftest import create_topic, eventually
from tests.interop.coordinators.test_consumer_protocol import settle
from tests.support.brokers.trio import OFFSETS, Trio

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.tools import Tools

GROUP, TOPIC = "of-the-cluster", "shared"
PARTITIONS = 6
RECORDS = 60


@pytest.fixture
def own_trio(tmp_path: Path) -> Iterator[Trio]:
    """Three brokers whose features others do not share."""
    three = Trio(tmp_path)
    try:
        three.heal()
        yield three
    finally:
        three.kill()


def raise_levels(tools: Tools, trio: Trio) -> None:
    """Finalise what a new broker without ZooKeeper has finalised."""
    server = ("--bootstrap-server", trio.bootstrap)
    tools.check(
        *("features", *server, "upgrade"),
        *("--feature", "group.version=1", "--feature", "transaction.version=2"),
    )
    for broker in trio.brokers:
        eventually(partial(has_levels, tools, broker.bootstrap))


def has_levels(tools: Tools, bootstrap: str) -> bool:
    """Return whether a broker works at the new levels."""
    told = tools.check("features", "--bootstrap-server", bootstrap, "describe").output
    return "FinalizedVersionLevel: 2" in told


def consumer(trio: Trio, stack: ExitStack) -> Consumer:
    made = Consumer(
        {
            "bootstrap.servers": trio.bootstrap,
            "group.id": GROUP,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    made.subscribe([TOPIC])
    stack.callback(made.close)
    return made


@pytest.mark.slow
def test_consumer_groups_and_transactions_of_today_survive_their_coordinators(
    own_trio: Trio, tools_3: Tools
) -> None:
    trio = own_trio
    raise_levels(tools_3, trio)
    create_topic(trio.admin, TOPIC, PARTITIONS, replicas=3)
    with ExitStack() as stack:
        members = [consumer(trio, stack) for _ in range(2)]
        settle(3, 3, among=members)
        producer = Producer({"bootstrap.servers": trio.bootstrap, "transactional.id": "today"})
        producer.init_transactions()
        partition = _partition_of(trio)
        killed = trio.leader(OFFSETS, partition)
        trio.brokers[killed].kill()
        trio.wait_for_another_leader(OFFSETS, partition, killed)

        producer.begin_transaction()
        for number in range(RECORDS):
            producer.produce(TOPIC, str(number).encode(), partition=number % PARTITIONS)
        producer.commit_transaction()

        seen: set[bytes] = set()

        def has_seen_all() -> bool:
            for member in members:
                message = member.poll(0.05)
                if message is not None and message.error() is None:
                    value = message.value()
                    assert isinstance(value, bytes)
                    seen.add(value)
            return len(seen) == RECORDS

        eventually(has_seen_all)
        third = consumer(trio, stack)
        settle(2, 2, 2, among=[*members, third])


def _partition_of(trio: Trio) -> int:
    """The partition of `__consumer_offsets` whose leader coordinates the group."""
    found = trio.admin.list_topics(OFFSETS, 30).topics[OFFSETS].partitions
    return _java_hash(GROUP) % len(found)


def _java_hash(text: str) -> int:
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFF_FFFF
    return value & 0x7FFF_FFFF
