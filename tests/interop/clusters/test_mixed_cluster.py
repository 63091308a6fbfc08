"""A broker of ours and one of Apache Kafka 3.9.1 in one cluster, and one taking the other's place.

Each leads, follows, coordinates and is controller; their logs are the same byte for byte.
"""

from __future__ import annotations

import struct
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

from tests.interop.clients.reading import COMMITTED, UNCOMMITTED, ConfluentReader
from tests.interop.clients.transactional import ConfluentProducer
from tests.interop.conftest import against_apache
from tests.interop.workloads.moving import Copier, Writer, committed_by, values_in
from tests.support.brokers.mixed_cluster import APACHE, OURS, WAIT_SECONDS, MixedCluster
from tests.support.wire import RawConnection, request_header

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(against_apache(), reason="it is about both makes"),
    pytest.mark.slow,
    pytest.mark.timeout(1200),
]

HOST, GUEST = 0, 1
BOTH_WAYS = [[HOST, GUEST], [GUEST, HOST], [HOST, GUEST], [GUEST, HOST]]
TRANSACTIONAL_IDS = ["alpha", "beta", "gamma", "delta"]
"""Their coordinators, and those of the groups called like them, are spread over both brokers."""

ABORTED = 2
"""The middle one of three turns is aborted."""

INIT_PRODUCER_ID = 22
NO_TRANSACTIONAL_ID = struct.pack(">hi", -1, 60_000)
IDS_AT_ONCE = 600
"""Ids requested of each broker; a block has 1000."""


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
        """Commit two transactions of every transactional id, and abort one between."""
        turns = range(self._turn + 1, self._turn + 4)
        for one in TRANSACTIONAL_IDS:
            producer = ConfluentProducer(self._cluster.bootstrap, one)
            reader = ConfluentReader(self._cluster.bootstrap, "ledger", one)
            with closing(producer), closing(reader):
                for turn in turns:
                    self._transact(producer, reader, one, turn)
        self._turn = turns[-1]

    def check(self) -> None:
        """Check that all of it is there, under both isolation levels, and so are the offsets."""
        bootstrap = self._cluster.bootstrap
        assert values_in(bootstrap, "ledger", COMMITTED) == sorted(self._committed)
        assert values_in(bootstrap, "ledger", UNCOMMITTED) == sorted(
            self._committed + self._aborted
        )
        for one in TRANSACTIONAL_IDS:
            assert committed_by(bootstrap, one, "ledger") == dict.fromkeys(range(4), self._turn)

    def _transact(
        self, producer: ConfluentProducer, reader: ConfluentReader, one: str, turn: int
    ) -> None:
        values = {partition: f"{one}-{turn}-{partition}".encode() for partition in range(4)}
        producer.begin()
        for partition, value in values.items():
            producer.send("ledger", partition, value)
        producer.send_offsets("ledger", dict.fromkeys(values, turn), reader)
        producer.flush()
        if turn % 3 == ABORTED:
            producer.abort()
            self._aborted += values.values()
        else:
            producer.commit()
            self._committed += values.values()


@pytest.mark.parametrize(("host", "guest"), [(OURS, APACHE), (APACHE, OURS)])
def test_apache_and_ours_serve_one_cluster_in_every_role(
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
    drawn = draw_producer_ids(cluster)

    leave_and_return(cluster, GUEST, guest, ledger)
    drawn += draw_producer_ids(cluster)
    leave_and_return(cluster, HOST, host, ledger)
    assert cluster.controller == GUEST
    # Now it is the guest that is asked.
    cluster.reassign("grown", [[HOST], [GUEST]])
    fill(cluster, "grown")
    cluster.reassign("grown", [[HOST, GUEST], [GUEST, HOST]])
    configure_and_delete(cluster)
    drawn += draw_producer_ids(cluster)
    assert len(set(drawn)) == len(drawn)
    cluster.wait_until_equal()
    ledger.check()
    for place in cluster.places:
        place.leave()


def leave_and_return(cluster: MixedCluster, broker_id: int, make: str, ledger: Ledger) -> None:
    """The other leads and coordinates everything, until this one has its partitions back."""
    place = cluster.places[broker_id]
    place.leave()
    cluster.wait_until_led_by(1 - broker_id)
    ledger.check()
    ledger.write()
    place.take(make)
    cluster.wait_until_in_sync()
    cluster.prefer()
    ledger.write()


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


def draw_producer_ids(cluster: MixedCluster) -> list[int]:
    """Obtain more producer ids of each broker than it has at hand."""
    drawn: list[int] = []
    for place in cluster.places:
        wanted = len(drawn) + IDS_AT_ONCE
        with RawConnection.open(place.broker.port, WAIT_SECONDS) as connection:
            while len(drawn) < wanted:
                answer = connection.ask(request_header(INIT_PRODUCER_ID, 1) + NO_TRANSACTIONAL_ID)
                _, _, error_code, producer_id, _ = struct.unpack(">iihqh", answer)
                if not error_code:  # Apache's refuses while it fetches the next block
                    drawn.append(producer_id)
    return drawn


def configure_and_delete(cluster: MixedCluster) -> None:
    """Alter and delete topics at either broker and see it at both."""
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
    """Return a topic's configuration value as described by one broker."""
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
    assert len(copier.member_ids) == 1, "coordinators take members over, without a rebalance"
    cluster.wait_until_equal()
