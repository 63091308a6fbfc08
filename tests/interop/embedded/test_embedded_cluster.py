"""Three brokers in one process: what is acknowledged survives any one of them."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from broker.embedded.stored_records import stored_records
from broker.testing import EmbeddedBrokerError, EmbeddedCluster, Produce, StoredRecord
from tests.interop.embedded.conftest import produced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.embedded.cluster.cluster_broker import ClusterBroker


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        yield cluster


def values(cluster: EmbeddedCluster, topic: str) -> list[bytes | None]:
    return [record.value for record in cluster.records(topic)]


def test_acknowledged_records_survive_a_killed_leader(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("ha", partitions=1, replication_factor=3)
    assert produced(cluster.bootstrap_servers, "ha", b"one") == [0]
    leader = cluster.leader_of("ha", 0)

    cluster.kill(leader)

    assert cluster.leader_of("ha") is not leader
    assert produced(cluster.bootstrap_servers, "ha", b"two") == [0]
    assert values(cluster, "ha") == [b"one", b"two"]
    leader.start()
    assert produced(cluster.bootstrap_servers, "ha", b"three", acks="all") == [0]
    assert values(cluster, "ha") == [b"one", b"two", b"three"]


def test_unknown_brokers_and_topics_are_refused_at_once(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("ha")
    not_started = EmbeddedCluster()
    began = time.monotonic()

    for wrong in (17, -1, "x", True, None, 1.5):
        with pytest.raises((ValueError, TypeError), match="broker: "):
            cluster.kill(wrong)  # type: ignore[arg-type]
    for several in (99, [0, 99], "x", {"x"}, [], None):
        with pytest.raises((ValueError, TypeError), match=r"^minority"):
            cluster.partition_network(several)  # type: ignore[arg-type]
    with pytest.raises(EmbeddedBrokerError, match="there is no topic nosuch"):
        cluster.leader_of("nosuch", 3)
    with pytest.raises(EmbeddedBrokerError, match="there is no ha-3: the last partition is ha-0"):
        cluster.leader_of("ha", 3)
    with pytest.raises(EmbeddedBrokerError, match="not started"):
        not_started.leader_of("ha")

    assert time.monotonic() < began + 20, "leader_of has waited"
    assert len(cluster.live) == 3


def test_another_broker_becomes_controller(cluster: EmbeddedCluster) -> None:
    controller = cluster.controller()

    with controller.killed():
        assert cluster.controller() is not controller
        cluster.create_topic("orders", replication_factor=2)

    assert produced(cluster.bootstrap_servers, "orders", b"one") == [0]


def test_a_leader_that_is_cut_off_acknowledges_nothing(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("ha", config={"min.insync.replicas": 2})
    leader = cluster.leader_of("ha")

    with cluster.partition_network(leader.broker_id):
        # The one client knows the old leader alone, the other asks the others.
        codes = produced(leader.bootstrap_servers, "ha", b"lost", message_timeout_ms=1_000)
        others = [broker for broker in cluster.brokers if broker is not leader]
        _until(lambda: any(broker.leads("ha") for broker in others))
        (new,) = [broker for broker in others if broker.leads("ha")]
        assert produced(new.bootstrap_servers, "ha", b"kept") == [0]

    assert codes != [0]
    _until(lambda: not leader.leads("ha"))
    assert values(cluster, "ha") == [b"kept"]
    _until(lambda: [one.value for one in _stored(leader, "ha")] == [b"kept"])


def test_a_broker_that_is_paused_loses_its_leadership(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("ha")
    leader = cluster.leader_of("ha")

    with leader.paused():
        others = [broker for broker in cluster.brokers if broker is not leader]
        _until(lambda: any(broker.leads("ha") for broker in others))
        assert cluster.leader_of("ha") in others
        cluster.create_topic("orders", replication_factor=2)

    _until(lambda: not leader.leads("ha"))
    assert produced(cluster.bootstrap_servers, "ha", b"one") == [0]


def test_wait_for_finds_the_group_at_any_coordinator(cluster: EmbeddedCluster) -> None:
    from confluent_kafka import Consumer

    cluster.create_topic("orders", partitions=3)
    produced(cluster.bootstrap_servers, "orders", *[b"value"] * 9)
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["orders"])
    count = 0
    while count < 9:
        message = consumer.poll(10)
        assert message is not None
        count += message.error() is None
    consumer.commit(asynchronous=False)

    cluster.wait_for("readers")
    consumer.close()


def test_groups_of_the_newer_protocol_are_coordinated(cluster: EmbeddedCluster) -> None:
    from confluent_kafka import Consumer

    cluster.create_topic("orders", partitions=3)
    produced(cluster.bootstrap_servers, "orders", b"one")
    consumer = Consumer(
        {
            **cluster.client_config,
            "group.id": "readers",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["orders"])
    message = consumer.poll(20)
    assert message is not None
    assert message.value() == b"one"
    consumer.close()


def test_a_fault_strikes_the_broker_that_it_is_set_on(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("ha")
    leader = cluster.leader_of("ha")

    with leader.drop_answer(Produce, times=1) as fault:
        assert produced(cluster.bootstrap_servers, "ha", b"one", enable_idempotence=True) == [0]

    assert fault.count == 1
    assert values(cluster, "ha") == [b"one"]
    assert len(leader.requests.of(Produce)) == 2


def test_requests_between_brokers_are_not_recorded(cluster: EmbeddedCluster) -> None:
    cluster.create_topic("ha")
    produced(cluster.bootstrap_servers, "ha", b"one", client_id="me")

    assert {one.client_id for broker in cluster.brokers for one in broker.requests} == {"me"}


@pytest.mark.parametrize("brokers", [2, 3])
def test_coordinators_are_there_after_a_broker_was_killed_first(brokers: int) -> None:
    from confluent_kafka import Consumer, Producer

    with EmbeddedCluster(brokers) as cluster:
        cluster.create_topic("orders")
        cluster.kill(cluster.leader_of("orders"))
        producer = Producer({**cluster.client_config, "transactional.id": "me"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("orders", b"one")
        producer.commit_transaction(30)
        settings = {"group.id": "readers", "auto.offset.reset": "earliest"}
        consumer = Consumer({**cluster.client_config, **settings})
        consumer.subscribe(["orders"])

        message = consumer.poll(30)

        assert message is not None
        assert message.value() == b"one"
        consumer.commit(asynchronous=False)
        consumer.close()
        cluster.wait_for("readers")
        (name,) = [one for one in cluster.live[0].topics() if "share" in one]
        assert cluster.leader_of(name).is_running


def test_a_topic_can_be_created_while_a_broker_is_dead(cluster: EmbeddedCluster) -> None:
    cluster.kill(2)

    cluster.create_topic("orders", partitions=2)

    assert produced(cluster.bootstrap_servers, "orders", b"one") == [0]


def test_topic_of_first_use_survives_its_leader(cluster: EmbeddedCluster) -> None:
    assert produced(cluster.bootstrap_servers, "orders", b"one") == [0]
    cluster.kill(cluster.leader_of("orders"))

    assert produced(cluster.bootstrap_servers, "orders", b"two") == [0]
    assert values(cluster, "orders") == [b"one", b"two"]


def test_a_cluster_too_small_for_a_configured_factor_starts() -> None:
    with EmbeddedCluster(1, {"offsets.topic.replication.factor": 3}) as cluster:
        assert "__consumer_offsets" not in cluster.brokers[0].topics()
        assert any("__consumer_offsets" in line for line in cluster.log_lines)


def test_two_clusters_never_see_each_other(cluster: EmbeddedCluster) -> None:
    with EmbeddedCluster(brokers=2) as other:
        other.create_topic("orders", replication_factor=2)
        assert "orders" not in cluster.brokers[0].topics()
        with pytest.raises(EmbeddedBrokerError, match="no topic orders"):
            cluster.records("orders")


def test_nothing_is_left_behind() -> None:
    threads = set(threading.enumerate())
    with EmbeddedCluster() as cluster:
        cluster.create_topic("ha")
        directory = cluster.brokers[0].log_dir.parent.parent
        cluster.kill(1)
        cluster.brokers[2].pause()
        assert directory.exists()
    assert not directory.exists()
    assert set(threading.enumerate()) <= threads


def test_the_end_of_a_cluster_warns_of_nothing(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):  # whose threads end in another order each time
        with EmbeddedCluster() as cluster:
            cluster.create_topic("ha", replication_factor=3)
            assert produced(cluster.bootstrap_servers, "ha", b"one") == [0]
            cluster.brokers[2].pause()
            caplog.clear()
        assert [record.message for record in caplog.records] == []


def _stored(broker: ClusterBroker, topic: str) -> list[StoredRecord]:
    return stored_records(broker.ask("read", topic, 0, False))


def _until(is_so: object) -> None:
    assert callable(is_so)
    for _ in range(1500):
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError("it has not come about")
