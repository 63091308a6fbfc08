"""Quotas that our broker and Apache Kafka 3.9.1 share: the same nodes, and both keep to them."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.client import KazooClient

from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest
from tests.interop.conftest import eventually
from tests.interop.security.test_quotas_beside_apache import (
    CONNECTIONS,
    FETCH,
    MUTATION,
    PRODUCE,
    REQUEST,
    WINDOW_MS,
    alteration,
    ask,
    question,
)
from tests.support import jars
from tests.support.brokers.apache import ZooKeeperCluster
from tests.support.brokers.ours import ours
from tests.support.tools import Tools

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.brokers.broker_process import BrokerProcess

ROOTS = ("/config/users", "/config/clients", "/config/ips")


def nodes(zookeeper: KazooClient, path: str) -> dict[str, bytes]:
    """Return all znodes below, with their data."""
    found = {}
    for name in zookeeper.get_children(path):
        below = f"{path}/{name}"
        found[below] = zookeeper.get(below)[0]
        found |= nodes(zookeeper, below)
    return found


def quotas_of(name: str, value: float | None = 1.0) -> Any:
    """Return one quota for each kind of entity, of this name."""
    return alteration(
        ({"user": name}, PRODUCE, value),
        ({"user": name, "client-id": "a b/c"}, FETCH, value),
        ({"user": name, "client-id": None}, REQUEST, None if value is None else 50.5),
        ({"client-id": name}, MUTATION, None if value is None else 1.5),
        ({"ip": f"10.0.0.{len(name)}"}, CONNECTIONS, value),
    )


def described(broker: BrokerProcess) -> list[Any]:
    entries = ask(broker, "admin", question(), 1).entries
    return sorted(
        (
            sorted((part.entity_type, part.entity_name or "") for part in entry.entity),
            sorted((value.key, value.value) for value in entry.values),
        )
        for entry in entries
    )


@pytest.mark.slow
def test_our_broker_and_apaches_share_their_quotas(tmp_path: Path) -> None:
    cluster = ZooKeeperCluster(tmp_path / "apache")
    address = f"127.0.0.1:{cluster.zookeeper.port}"
    own = ours(tmp_path / "ours", {"broker.id": "1", "zookeeper.connect": address})
    zookeeper, tools = KazooClient(address), Tools(jars.KAFKA_3)
    with ExitStack() as stack:
        stack.callback(cluster.kill)
        stack.callback(own.kill)
        stack.callback(tools.close)
        cluster.start()
        own.start()
        zookeeper.start()
        stack.callback(zookeeper.close)
        stack.callback(zookeeper.stop)
        brokers = {"apache": cluster.broker, "ours": own}
        for name, broker in brokers.items():
            altered = ask(broker, "admin", quotas_of(name), 1).entries
            assert {entry.error_code for entry in altered} == {ErrorCode.NONE}

        eventually(lambda: described(own) == described(cluster.broker))
        assert len(described(own)) == 10
        written = {path: data for root in ROOTS for path, data in nodes(zookeeper, root).items()}
        assert len(written) == 12, "and the two that hold the users' client ids"
        for path, data in written.items():
            if "apache" in path:
                assert written[path.replace("apache", "ours")] == data, path

        slow = ("--alter", "--add-config", "request_percentage=0.000001")
        everyone = ("--entity-type", "users", "--entity-name", "ANONYMOUS")
        tools.check("configs", "--bootstrap-server", own.bootstrap, *slow, *everyone)
        for broker in brokers.values():
            eventually(partial(rests_a_window, broker))

        removed = alteration(({"user": "ANONYMOUS"}, REQUEST, None))
        ask(own, "admin", removed, 1)
        ask(own, "admin", quotas_of("apache", None), 1)
        ask(cluster.broker, "admin", quotas_of("ours", None), 1)
        eventually(lambda: described(own) == described(cluster.broker) == [])
        assert not any(nodes(zookeeper, root) for root in ROOTS)
        own.stop()
        cluster.stop()


def rests_a_window(broker: BrokerProcess) -> bool:
    """Return whether a request throttles its client for one quota window."""
    response = ask(broker, "anyone", MetadataRequest(topics=[]), 12)
    return bool(response.throttle_time_ms == WINDOW_MS)
