"""Consume, transform, produce: exactly once, under repeated kills of all processes.

Copiers of several makes copy the same source, each into a target of its own, at the same time; the
broker and the copiers are killed (kill -9) while they work, and started again.
"""

from __future__ import annotations

import random
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.clients import confluent
from tests.interop.clients.reading import ConfluentReader, visible
from tests.interop.clients.record import Sending, numbered_records
from tests.interop.conftest import against_apache, create_topic, patiently
from tests.interop.workloads.copier import CopierOptions
from tests.interop.workloads.restarted import Restarted
from tests.support import jars
from tests.support.tools import CLASSES, FLAGS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.interop.clients.reading import Read
    from tests.support.brokers.broker_process import BrokerProcess

PARTITIONS = 2
RECORDS = 1000
"""Records in each partition of the source."""

BROKER_KILLS = 1 if against_apache() else 3
COPY_SECONDS = 400.0
PYTHON_CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka")
VERSIONS = (jars.KAFKA_3, jars.KAFKA_4)
SOURCE = "source"


def java_copier(version: str, bootstrap: str, directory: Path) -> Restarted:
    """Return Kafka's own TransactionalMessageCopier, for the last partition."""
    main_class = CLASSES[version]["transactional-message-copier"]
    java = [jars.java_home_tool("java"), *FLAGS, "-cp", jars.classpath(version), main_class]
    name = f"java-{version}"
    arguments = [
        *("--broker-list", bootstrap, "--input-topic", SOURCE, "--output-topic", name),
        *("--input-partition", str(PARTITIONS - 1), "--consumer-group", name),
        *("--transactional-id", name, "--transaction-size", "20"),
        *("--enable-random-aborts", "--use-group-metadata"),
    ]
    return Restarted(name, [*java, *arguments], directory / f"{name}.out")


def python_copier(client: str, bootstrap: str, directory: Path) -> Restarted:
    options = CopierOptions(client, bootstrap, SOURCE, client, client)
    module = "tests.interop.workloads.copier"
    return Restarted.python(client, module, options.to_json(), directory / f"{client}.out")


@pytest.fixture
def copiers(own_broker: BrokerProcess, tmp_path: Path) -> Iterator[list[Restarted]]:
    """Fill the source and start all copiers."""
    own_broker.start()
    bootstrap = own_broker.bootstrap
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for topic in (SOURCE, *PYTHON_CLIENTS, *(f"java-{version}" for version in VERSIONS)):
        create_topic(admin, topic, PARTITIONS)
    for partition in range(PARTITIONS):
        records = numbered_records(RECORDS, partition)
        confluent.produce(bootstrap, SOURCE, records, Sending(style="callback"))
    started = [python_copier(client, bootstrap, tmp_path) for client in PYTHON_CLIENTS]
    started += [java_copier(version, bootstrap, tmp_path) for version in VERSIONS]
    yield started
    for copier in started:
        copier.kill()


class Progress:
    """The copiers' progress: records in the targets, including those of aborted transactions."""

    def __init__(self, bootstrap: str, copiers: list[Restarted]) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "progress", "log_level": 0}
        )
        self._copiers = copiers
        self._deadline = time.monotonic() + COPY_SECONDS

    def wait_for(self, name: str, records: int) -> None:
        """Wait until the last partition of a copier's target holds that many, or it is done."""
        asked = TopicPartition(name, PARTITIONS - 1)
        while not self._are_done({name}):
            high = patiently(lambda: self._consumer.get_watermark_offsets(asked, 30.0))[1]
            if high >= records:
                return

    def wait_for_all(self) -> None:
        """Wait until every copier is done."""
        while not self._are_done({copier.name for copier in self._copiers}):
            time.sleep(0.02)

    def close(self) -> None:
        self._consumer.close()

    def _are_done(self, names: set[str]) -> bool:
        late = [one for one in self._copiers if not one.keep_up()]
        assert time.monotonic() < self._deadline, [(one.name, one.said()) for one in late]
        return not names & {one.name for one in late}


def held(bootstrap: str, topic: str) -> list[Read]:
    """Return what a reader of committed records finds."""
    with closing(ConfluentReader(bootstrap, topic, "held")) as reader:
        return visible(reader)


def values(records: list[Read], partition: int) -> list[bytes]:
    return [value for at, _, value in records if at == partition]


@pytest.mark.slow
def test_copies_equal_their_source_when_brokers_and_copiers_are_killed(
    own_broker: BrokerProcess, copiers: list[Restarted]
) -> None:
    chance = random.Random(4)
    with closing(Progress(own_broker.bootstrap, copiers)) as progress:
        victims = chance.sample(copiers, len(copiers))
        for number, victim in enumerate(victims):
            progress.wait_for(victim.name, chance.randrange(100, RECORDS // 2))
            victim.kill()
            if number < BROKER_KILLS:
                own_broker.kill()
                own_broker.start()
        progress.wait_for_all()

    source = held(own_broker.bootstrap, SOURCE)
    assert len(source) == PARTITIONS * RECORDS
    for client in PYTHON_CLIENTS:
        copied = held(own_broker.bootstrap, client)
        for partition in range(PARTITIONS):
            assert values(copied, partition) == values(source, partition), client
    for version in VERSIONS:
        copied = held(own_broker.bootstrap, f"java-{version}")
        assert values(copied, PARTITIONS - 1) == values(source, PARTITIONS - 1), version
    # A copier that is quick may be done before its turn comes.
    assert sum(copier.starts for copier in copiers) >= len(copiers) + 2
