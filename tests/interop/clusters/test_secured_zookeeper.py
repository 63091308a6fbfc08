"""A ZooKeeper that asks who is there: znodes as Apache Kafka 3.9.1 makes them there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kazoo.client import KazooClient

from tests.support.brokers.apache import apache_3
from tests.support.brokers.ours import ours
from tests.support.brokers.secured_zookeeper import (
    DIGEST_MODULE,
    LOGIN_CONFIG,
    TlsZooKeeper,
    jaas_file,
    sasl_zookeeper,
    tls_keys,
)
from tests.support.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.broker_process import BrokerProcess
    from tests.support.brokers.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.slow

WAIT_SECONDS = 120.0
MANY = 20
LOGIN = {"username": "kafka", "password": "secret"}
KEYS = {"zookeeper.set.acl": "true", "zookeeper.session.timeout.ms": "6000"}

AccessLists = dict[str, list[tuple[int, str, str]]]


class Guarded(NamedTuple):
    """A server, and what brokers of both makes need for it."""

    server: ZooKeeperServer
    address: str
    keys: dict[str, str]
    java_option: str = ""


@pytest.fixture(params=["SASL", "TLS"])
def guarded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Guarded]:
    """Return a running server that knows who connects: by SASL, or by certificate."""
    if request.param == "SASL":
        server = sasl_zookeeper(tmp_path / "zookeeper", {LOGIN["username"]: LOGIN["password"]})
        jaas = jaas_file(tmp_path / "jaas.conf", "Client", DIGEST_MODULE, LOGIN)
        found = Guarded(server, server.address, {}, f"{LOGIN_CONFIG}{jaas}")
    else:
        authority = Authority()
        issued = authority.issue("brokers", tmp_path)
        server = secured = TlsZooKeeper(tmp_path / "zookeeper", issued, authority)
        found = Guarded(server, secured.secure_address, tls_keys(issued, authority))
        authority.pem_file(tmp_path), issued.chain_file(), issued.key_file()
    server.start()
    yield found
    server.kill()


def _access_lists(guarded: Guarded, root: str) -> AccessLists:
    """Return the access list of each znode below `root`, by its path below that."""
    client = _client(guarded, root)
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


def _client(guarded: Guarded, root: str) -> KazooClient:
    """Return a client that is known as the brokers are."""
    if guarded.java_option:
        login = {"mechanism": "DIGEST-MD5", **LOGIN}
        return KazooClient(guarded.address + root, sasl_options=login)
    store = Path(guarded.keys["zookeeper.ssl.keystore.location"]).parent
    return KazooClient(
        guarded.address + root,
        use_ssl=True,
        ca=str(store / "authority.pem"),
        certfile=str(store / "brokers.chain.pem"),
        keyfile=str(store / "brokers.key.pem"),
    )


def _use(broker: BrokerProcess) -> None:
    """Make a single broker write znodes of all kinds."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    topic = NewTopic("owned", 1, 1, config={"retention.ms": "1000"})
    admin.create_topics([topic])["owned"].result(WAIT_SECONDS)


def test_znodes_have_the_access_lists_that_apache_gives_them(
    tmp_path: Path, guarded: Guarded
) -> None:
    found: dict[str, AccessLists] = {}
    for make in ("apache", "ours"):
        keys = {**KEYS, **guarded.keys, "zookeeper.connect": f"{guarded.address}/{make}"}
        if make == "apache":
            broker = apache_3(tmp_path / make, guarded.server.port, keys)
            broker.command[1:1] = [guarded.java_option] if guarded.java_option else []
        else:
            broker = ours(tmp_path / make, keys)
            broker.environment["KAFKA_OPTS"] = guarded.java_option
        broker.start()
        try:
            _use(broker)
            found[make] = _access_lists(guarded, f"/{make}")
        finally:
            broker.kill()
    owners = {acl[1:] for acls in found["ours"].values() for acl in acls}
    assert owners == {("world", "anyone"), guarded_owner(guarded)}
    assert len(found["apache"]) > MANY
    assert found["ours"] == found["apache"]


def guarded_owner(guarded: Guarded) -> tuple[str, str]:
    """Return the brokers' scheme and id in ZooKeeper's ACLs."""
    return ("sasl", LOGIN["username"]) if guarded.java_option else ("x509", "CN=brokers")
