"""A log directory that Apache Kafka 3.9.1 wrote is opened and served.

Apache's broker runs in ZooKeeper mode, whose `meta.properties` is version 0, and is stopped
cleanly once and killed once. Against Apache itself the same broker opens its own directory again.
"""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.clients import confluent
from tests.interop.clients.record import CODECS, Placed, Sending, numbered_records
from tests.interop.conftest import (
    against_apache,
    create_topic,
    eventually,
    is_served,
    patiently,
)
from tests.support.apache import ZOOKEEPER_SESSION_MS, ZooKeeperCluster
from tests.support.ours import ours

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.broker_process import BrokerProcess

SEGMENT_BYTES = {"segment.bytes": "16384", "index.interval.bytes": "200"}
COUNT = 200
BATCH = 40
GROUP = "movers"


@pytest.fixture(scope="module", params=["stopped", "killed"])
def successor(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """Return a broker that serves the directory after Apache 3.9.1 was stopped or killed."""
    directory = tmp_path_factory.mktemp("exchange")
    cluster = ZooKeeperCluster(directory / "apache")
    try:
        cluster.start()
        fill(cluster.broker.bootstrap)
        if request.param == "killed":
            cluster.broker.kill()
        else:
            cluster.broker.stop()
        yield from serve_again(cluster, directory)
    finally:
        cluster.kill()


def serve_again(cluster: ZooKeeperCluster, directory: Path) -> Iterator[BrokerProcess]:
    """Serve what the cluster's broker left behind: by itself, or by ours on a copy."""
    if against_apache():
        time.sleep(2 * ZOOKEEPER_SESSION_MS / 1000)
        cluster.broker.start()
        admin = AdminClient({"bootstrap.servers": cluster.broker.bootstrap})
        eventually(lambda: is_served(admin, "moved", len(CODECS)))
        eventually(lambda: is_served(admin, "continued", 1))
        yield cluster.broker
        return
    copy = directory / "copy"
    shutil.copytree(cluster.broker.data_directory, copy)
    broker = ours(directory / "ours", data_directory=copy)
    broker.start()
    try:
        yield broker
        assert broker.stop() == 0
    finally:
        broker.kill()


def fill(bootstrap: str) -> None:
    """Write records with every codec, in several segments, and commit a group's offset."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    create_topic(admin, "moved", len(CODECS), SEGMENT_BYTES)
    for partition, codec in enumerate(CODECS):
        sending = Sending(codec=codec, style="callback", is_idempotent=True)
        records = numbered_records(COUNT, partition, size=300)
        for start in range(0, COUNT, BATCH):
            confluent.produce(bootstrap, "moved", records[start : start + BATCH], sending)
    create_topic(admin, "continued", 1)
    confluent.produce(bootstrap, "continued", numbered_records(10), Sending(style="callback"))
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    wanted = [TopicPartition("moved", 0, 123, "x")]
    patiently(lambda: consumer.commit(offsets=wanted, asynchronous=False))
    consumer.close()


def test_every_record_is_served(successor: BrokerProcess) -> None:
    records = confluent.read(successor.bootstrap, "moved", COUNT * len(CODECS))

    for partition in range(len(CODECS)):
        held = [record for record in records if record.partition == partition]
        assert [record.offset for record in held] == list(range(COUNT))
        wanted = numbered_records(COUNT, partition, size=300)
        assert [record.without_offset() for record in held] == wanted


def test_offsets_by_time_are_found_in_apaches_time_index(successor: BrokerProcess) -> None:
    consumer = Consumer({"bootstrap.servers": successor.bootstrap, "group.id": "any"})
    base = numbered_records(1)[0].timestamp_ms
    asked = [TopicPartition("moved", partition, base + 150) for partition in range(len(CODECS))]
    found = patiently(lambda: consumer.offsets_for_times(asked, 30.0))
    consumer.close()

    assert [one.offset for one in found] == [150] * len(CODECS)


def test_the_groups_offset_is_known(successor: BrokerProcess) -> None:
    consumer = Consumer({"bootstrap.servers": successor.bootstrap, "group.id": GROUP})
    (found,) = patiently(lambda: consumer.committed([TopicPartition("moved", 0)], 30.0))
    consumer.close()

    assert (found.offset, found.metadata) == (123, "x")


def test_the_log_goes_on_where_it_ended(successor: BrokerProcess) -> None:
    sending = Sending(style="callback", is_idempotent=True)
    placed = confluent.produce(successor.bootstrap, "continued", numbered_records(2), sending)

    assert placed == [Placed(0, 10), Placed(0, 11)]
    records = confluent.read(successor.bootstrap, "continued", 12)
    assert [record.offset for record in records] == list(range(12))
