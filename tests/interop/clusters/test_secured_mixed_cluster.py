"""Brokers of ours and of Apache Kafka 3.9.1 in one cluster, by SASL_SSL and with ACLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient

from tests.interop.clients.reading import UNCOMMITTED
from tests.interop.conftest import against_apache
from tests.interop.workloads.moving import Copier, Writer, values_in
from tests.support.brokers.mixed_cluster import APACHE, OURS, WAIT_SECONDS, MixedCluster
from tests.support.security.access import Access
from tests.support.security.acls import GROUP, READ, TOPIC, WRITE, allow
from tests.support.security.listeners import make_scram_users
from tests.support.security.realm import ALICE, BOB, Realm

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
IN_BY_SCRAM = Access("SASL_SSL", "SCRAM-SHA-512", ALICE)
STRANGER = Access("SASL_SSL", "PLAIN", BOB)


@pytest.fixture
def realm(tmp_path: Path) -> Realm:
    """Return users and certificates."""
    return Realm(tmp_path / "realm")


@pytest.fixture
def cluster(tmp_path: Path, realm: Realm) -> Iterator[MixedCluster]:
    """Return a secured cluster in which ZooKeeper runs, and nothing else."""
    cluster = MixedCluster(tmp_path, realm)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()


def _check_stranger(cluster: MixedCluster, realm: Realm) -> None:
    """Check that each broker authenticates bob, and shows him nothing."""
    for place in cluster.places:
        keys = {
            "bootstrap.servers": place.ports.bootstrap(STRANGER.protocol),
            **STRANGER.librdkafka(realm),
            "log_level": 0,
        }
        assert AdminClient(keys).list_topics(timeout=WAIT_SECONDS).topics == {}
        assert _refusals(Producer(keys)) == [KafkaError.TOPIC_AUTHORIZATION_FAILED]


def _refusals(producer: Producer) -> list[int | None]:
    codes: list[int | None] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        codes.append(None if error is None else error.code())

    producer.produce("orders", b"bob's", on_delivery=delivered)
    producer.flush(WAIT_SECONDS)
    return codes


def test_live_secured_cluster_moves_from_apache_to_ours_and_back(
    cluster: MixedCluster, realm: Realm
) -> None:
    for place in cluster.places:
        place.take(APACHE)
    make_scram_users(cluster.bootstrap)
    cluster.create("orders", BOTH_WAYS)
    allow(cluster.bootstrap, ALICE, TOPIC, "orders", READ, WRITE)
    allow(cluster.bootstrap, ALICE, GROUP, "copiers", READ)
    servers, settings = cluster.bootstrap_of(IN_BY_SCRAM), IN_BY_SCRAM.librdkafka(realm)
    writer, copier = Writer(servers, "orders", settings), Copier(servers, "orders", settings)
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
                _check_stranger(cluster, realm)
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
