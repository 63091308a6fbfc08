"""The same walk over a broker of ours and over Apache Kafka 3.9.1: the znodes have the same shape.

Shape is the path, the kind, the number of writes, and the bytes with times, ports and drawn ids
replaced; so keys stand in the same order, and numbers are strings where Kafka has strings. Only the
settings within a configuration may stand in any order: Kafka writes them as a Java hash map has it.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic
from kazoo.client import KazooClient

from tests.support.brokers.apache import ZooKeeperCluster
from tests.support.brokers.ours import ours
from tests.support.brokers.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.broker_process import BrokerProcess

    Shape = dict[str, tuple[str, int, str]]

pytestmark = pytest.mark.slow

WAIT_SECONDS = 120.0
POLL_SECONDS = 0.05

_DRAWN = [
    (re.compile(r'"timestamp":"\d{13}"'), '"timestamp":"(now)"'),
    (re.compile(r'"(topic_id|id)":"[\w-]{22}"'), r'"\1":"(drawn)"'),
    (re.compile(r":\d{4,5}(?=\D)"), ":(port)"),
]

_SETTINGS = re.compile(r"(?<=\"config\":){(.*?)}")

NOT_OF_KAFKA = {"/", "/zookeeper"}


def _walk(broker: BrokerProcess) -> None:
    """Create, grow, configure and delete topics, and use a producer id."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    given = NewTopic("given", 2, 1, config={"segment.bytes": "14000", "cleanup.policy": "compact"})
    for name, topic in {
        "plain": NewTopic("plain", num_partitions=1, replication_factor=1),
        "given": given,
        "doomed": NewTopic("doomed", num_partitions=1, replication_factor=1),
    }.items():
        admin.create_topics([topic])[name].result()
    admin.create_partitions([NewPartitions("plain", 3)])["plain"].result()
    change = ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "given", incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result()
    admin.delete_topics(["doomed"])["doomed"].result()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    producer.produce("plain", b"x", partition=0)
    assert producer.flush(WAIT_SECONDS) == 0


def _shape(zookeeper: str) -> Shape:
    client = KazooClient(zookeeper)
    client.start()
    try:
        _wait_for_deletion(client)
        return dict(_below(client, "/"))
    finally:
        client.stop()
        client.close()


def _wait_for_deletion(client: KazooClient) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while client.get_children("/admin/delete_topics"):
        assert time.monotonic() < deadline
        time.sleep(POLL_SECONDS)


def _below(client: KazooClient, path: str) -> Iterator[tuple[str, tuple[str, int, str]]]:
    data, stat = client.get(path)
    if path not in NOT_OF_KAFKA:
        kind = "ephemeral" if stat.ephemeralOwner else "persistent"
        [acl] = client.get_acls(path)[0]
        assert (acl.perms, acl.id.scheme, acl.id.id) == (31, "world", "anyone")
        yield path, (kind, stat.version, "null" if data is None else _without_drawn(data.decode()))
    if path != "/zookeeper":
        for name in client.get_children(path):
            yield from _below(client, f"{path.rstrip('/')}/{name}")


def _without_drawn(text: str) -> str:
    for pattern, replacement in _DRAWN:
        text = pattern.sub(replacement, text)
    return _SETTINGS.sub(lambda found: "{" + ",".join(sorted(found[1].split(","))) + "}", text)


@pytest.fixture(scope="module")
def apaches(tmp_path_factory: pytest.TempPathFactory) -> Shape:
    """Return what Apache Kafka's walk leaves behind."""
    cluster = ZooKeeperCluster(tmp_path_factory.mktemp("apache"))
    cluster.start()
    try:
        _walk(cluster.broker)
        return _shape(cluster.zookeeper.address)
    finally:
        cluster.kill()


@pytest.fixture(scope="module")
def our_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shape]:
    """Return what our walk leaves behind."""
    directory = tmp_path_factory.mktemp("ours")
    zookeeper = ZooKeeperServer(directory / "zookeeper")
    broker = ours(directory / "broker", {"zookeeper.connect": zookeeper.address})
    try:
        zookeeper.start()
        broker.start()
        _walk(broker)
        yield _shape(zookeeper.address)
        broker.stop()
    finally:
        broker.kill()
        zookeeper.kill()


_SUPPORTED = (
    '{"group.version":{"min_version":1,"max_version":1},'
    '"share.version":{"min_version":1,"max_version":1},'
    '"streams.version":{"min_version":1,"max_version":1},'
    '"transaction.version":{"min_version":1,"max_version":2}}'
)


def test_znode_paths_equal_apaches(our_own: Shape, apaches: Shape) -> None:
    assert sorted(our_own) == sorted(apaches)


def test_znode_contents_equal_apaches(our_own: Shape, apaches: Shape) -> None:
    different = {
        path: (our_own[path], apaches[path])
        for path in our_own.keys() & apaches.keys()
        if our_own[path] != apaches[path]
    }
    # A broker tells there what it supports, by which a controller knows that it is one of these.
    [(path, (mine, theirs))] = different.items()
    assert path == "/brokers/ids/0"
    assert theirs[2].startswith('{"features":{},')
    assert mine == (*theirs[:2], theirs[2].replace("{}", _SUPPORTED, 1))
