"""A ZooKeeper that asks who is there: znodes as Apache Kafka 3.9.1 makes them there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient

from tests.support.brokers.apache import apache_3
from tests.support.brokers.ours import ours
from tests.support.brokers.secured_zookeeper import (
    DIGEST_MODULE,
    LOGIN_CONFIG,
    jaas_file,
    sasl_zookeeper,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess
    from tests.support.brokers.zookeeper import ZooKeeperServer

WAIT_SECONDS = 120.0
LOGIN = {"username": "kafka", "password": "secret"}
KEYS = {"zookeeper.set.acl": "true", "zookeeper.session.timeout.ms": "6000"}

AccessLists = dict[str, list[tuple[int, str, str]]]


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """Return a running server that knows the user `kafka`."""
    server = sasl_zookeeper(tmp_path / "zookeeper", {LOGIN["username"]: LOGIN["password"]})
    server.start()
    yield server
    server.kill()


def _access_lists(zookeeper: ZooKeeperServer, root: str) -> AccessLists:
    """Whose each znode below `root` is, by its path below that."""
    client = KazooClient(
        zookeeper.address + root, sasl_options={"mechanism": "DIGEST-MD5", **LOGIN}
    )
    client.start()
    found: AccessLists = {}
    pending = ["/"]
    while pending:
        path = pending.pop()
        acls, _ = client.get_acls(path)
        found[path] = [(acl.perms, acl.id.scheme, acl.id.id) for acl in acls]
        pending += [f"{path.rstrip('/')}/{child}" for child in client.get_children(path)]
    client.stop()
    client.close()
    return found


def _use(broker: BrokerProcess) -> None:
    """Have it write znodes of all kinds that a single broker does."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    topic = NewTopic("owned", 1, 1, config={"retention.ms": "1000"})
    admin.create_topics([topic])["owned"].result(WAIT_SECONDS)


def test_znodes_have_the_access_lists_that_apache_gives_them(
    tmp_path: Path, zookeeper: ZooKeeperServer
) -> None:
    jaas = jaas_file(tmp_path / "jaas.conf", "Client", DIGEST_MODULE, LOGIN)
    keys = KEYS | {"zookeeper.connect": f"{zookeeper.address}/apache"}
    brokers = {
        "apache": apache_3(tmp_path / "apache", zookeeper.port, keys),
        "ours": ours(tmp_path / "ours", KEYS | {"zookeeper.connect": f"{zookeeper.address}/ours"}),
    }
    found: dict[str, AccessLists] = {}
    for make, broker in brokers.items():
        option = f"{LOGIN_CONFIG}{jaas}"
        if make == "apache":
            broker.command.insert(1, option)
        else:
            broker.environment["KAFKA_OPTS"] = option
        broker.start()
        _use(broker)
        found[make] = _access_lists(zookeeper, f"/{make}")
        broker.stop()
    assert len(found["apache"]) > 20
    assert found["ours"] == found["apache"]
