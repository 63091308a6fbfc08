"""A broker of ours and one of Apache Kafka 3.9.1 in one cluster, and one taking the other's place.

Each leads, follows, coordinates and is controller; their logs are the same byte for byte.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from tests.interop.clients.moving import Copier, Writer, committed_by, values_in
from tests.interop.clients.reading import COMMITTED, UNCOMMITTED, ConfluentReader
from tests.interop.clients.transactional import ConfluentProducer
from tests.interop.conftest import against_apache
from tests.support.mixed_cluster import APACHE, OURS, WAIT_SECONDS, MixedCluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(against_apache(), reason="it is about both makes"),
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

HOST, GUEST = 0, 1
BOTH_WAYS = [[HOST, GUEST], [GUEST, HOST], [HOST, GUEST], [GUEST, HOST]]
TRANSACTIONAL_IDS = ["alpha", "beta", "gamma", "delta"]
"""Their coordinators, and those of the groups called like them, are spread over both brokers."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MixedCluster]:
    """Return a cluster in which ZooKeeper runs, and nothing else."""
    cluster = MixedCluster(tmp_path)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()


class Ledger:
    """Transactions on one topic, with their offsets, and what must be seen of them."""

    def __init__(self, cluster: MixedCluster) -> None:
        self._cluster = cluster
        self._turn = 0
        self._committed: list[bytes] = []
        self._aborted: list[bytes] = []

    def write(self) -> None:
        """Have every transactional id commit two transactions, and abort one between."""
        for _ in range(3):
            self._turn += 1
            for one in TRANSACTIONAL_IDS:
                self._transact(one)

    def check(self) -> None:
        """All of it is there, under both isolation levels, and so are the offsets."""
        bootstrap = self._cluster.bootstrap
        assert values_in(bootstrap, "ledger", COMMITTED) == sorted(self._committed)
        assert values_in(bootstrap, "ledger", UNCOMMITTED) == sorted(
            self._committed + self._aborted
        )
        for one in TRANSACTIONAL_IDS:
            assert committed_by(bootstrap, one, "ledger") == dict.fromkeys(range(4), self._turn)

    def _transact(self, one: str) -> None:
        bootstrap = self._cluster.bootstrap
        is_commit = self._turn % 3 != 2
        producer = ConfluentProducer(bootstrap, one)
        with closing(producer), closing(ConfluentReader(bootstrap, "ledger", one)) as reader:
            producer.begin()
            for partition in range(4):
                value = f"{one}-{self._turn}-{partition}".encode()
                producer.send("ledger", partition, value)
                (self._committed if is_commit else self._aborted).append(value)
            producer.send_offsets("ledger", dict.fromkeys(range(4), self._turn), reader)
            producer.flush()
            if is_commit:
                producer.commit()
            else:
                producer.abort()


@pytest.mark.parametrize(("host", "guest"), [(OURS, APACHE), (APACHE, OURS)])
def test_guest_joins_and_each_does_everything_once(
    cluster: MixedCluster, host: str, guest: str
) -> None:
    cluster.places[HOST].take(host)
    cluster.places[GUEST].take(guest)
    assert cluster.controller == HOST
    cluster.create("ledger", BOTH_WAYS)
    cluster.create("grown", [[GUEST], [HOST]])
    ledger = Ledger(cluster)
    fill(cluster, "grown")

    ledger.write()
    # Each leads one, and asks the host for the new follower to be taken in.
    cluster.reassign("grown", [[GUEST, HOST], [HOST, GUEST]])
    configure_and_delete(cluster)
    cluster.wait_until_in_sync()
    cluster.wait_until_equal()
    ledger.check()

    cluster.places[GUEST].leave()
    cluster.wait_until_led_by(HOST)
    ledger.check()
    ledger.write()
    cluster.places[GUEST].take(guest)
    cluster.wait_until_in_sync()
    cluster.prefer()
    ledger.write()

    cluster.places[HOST].leave()
    cluster.wait_until_led_by(GUEST)
    ledger.check()
    ledger.write()
    cluster.places[HOST].take(host)
    cluster.wait_until_in_sync()
    cluster.prefer()
    assert cluster.controller == GUEST
    # Now it is the guest that is asked.
    cluster.reassign("grown", [[HOST], [GUEST]])
    fill(cluster, "grown")
    cluster.reassign("grown", [[HOST, GUEST], [GUEST, HOST]])
    configure_and_delete(cluster)
    ledger.write()
    cluster.wait_until_equal()
    ledger.check()
    for place in cluster.places:
        place.leave()


def fill(cluster: MixedCluster, topic: str) -> None:
    """Write to both partitions, in batches."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    failures: list[object] = []
    for number in range(1000):
        producer.produce(
            topic,
            b"%d" % number * 20,
            partition=number % 2,
            on_delivery=lambda error, _: failures.append(error),
        )
    assert producer.flush(WAIT_SECONDS) == 0
    assert set(failures) == {None}


def configure_and_delete(cluster: MixedCluster) -> None:
    """What one is told of a topic, the other hears; one that is deleted is gone from both."""
    cluster.create("passing", BOTH_WAYS, **{"retention.ms": "1000000"})
    fill(cluster, "passing")
    for place in cluster.places:
        change = ConfigEntry(
            "segment.bytes",
            f"100000{place.broker_id}",
            incremental_operation=AlterConfigOpType.SET,
        )
        asked = ConfigResource(ConfigResource.Type.TOPIC, "passing", incremental_configs=[change])
        admin = AdminClient({"bootstrap.servers": place.broker.bootstrap, "log_level": 0})
        admin.incremental_alter_configs([asked])[asked].result(WAIT_SECONDS)
        for each in cluster.places:
            cluster.eventually(
                lambda each=each, wanted=change.value: (  # type: ignore[misc]
                    setting(each.broker.bootstrap, "passing", "segment.bytes") == wanted
                )
            )
    admin = cluster.admin()
    admin.delete_topics(["passing"])["passing"].result(WAIT_SECONDS)
    cluster.eventually(lambda: cluster.nodes.exists("/admin/delete_topics/passing") is None)
    for place in cluster.places:
        cluster.eventually(
            lambda place=place: not any(name.startswith("passing") for name in place.logs())  # type: ignore[misc]
        )


def setting(bootstrap: str, topic: str, key: str) -> str | None:
    """What a broker says of a topic's configuration."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    value = admin.describe_configs([asked])[asked].result(WAIT_SECONDS)[key].value
    return None if value is None else str(value)


def test_live_cluster_moves_from_apache_to_ours_and_back(cluster: MixedCluster) -> None:
    for place in cluster.places:
        place.take(APACHE)
    cluster.create("orders", BOTH_WAYS)
    writer, copier = Writer(cluster.bootstrap, "orders"), Copier(cluster.bootstrap, "orders")
    writer.start()
    copier.start()
    try:
        for make in (OURS, APACHE):
            for place in cluster.places:
                copier.wait_for_more()
                place.leave()
                copier.wait_for_more()
                place.take(make)
                cluster.wait_until_in_sync()
                copier.wait_for_more()
                cluster.prefer()
        copier.wait_for_more()
    finally:
        writer.finish()
        copier.finish(len(writer.acknowledged))

    assert (writer.failures, copier.failures) == ([], [])
    assert len(writer.acknowledged) == writer.sent
    assert values_in(cluster.bootstrap, "orders", UNCOMMITTED) == sorted(writer.acknowledged)
    assert sorted(copier.seen) == sorted(writer.acknowledged)
    cluster.wait_until_equal()
