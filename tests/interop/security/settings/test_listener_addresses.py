"""Listeners at IPv6 addresses, with zones, and at IPv4-mapped ones, beside Apache Kafka."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from protocol.headers import request_front, response_header_bytes
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.group_membership import JoinGroupRequest
from protocol.messages.groups import DescribeGroupsRequest
from protocol.messages.metadata import MetadataRequest
from tests.interop.conftest import eventually
from tests.support import jars
from tests.support.brokers.apache import apache_4
from tests.support.brokers.broker_process import free_port
from tests.support.brokers.ipv6 import LOOPBACK_ZONE, needs_ipv6
from tests.support.brokers.ours import ours
from tests.support.tools import Tools
from tests.support.wire import RawConnection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.schema import Request
    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = [pytest.mark.java, needs_ipv6]

HOSTS = {
    "FOUR": "127.0.0.1",
    "ZONE": f"[::1%{LOOPBACK_ZONE}]",
    "NUMBER": f"[::1%{socket.if_nametoindex(LOOPBACK_ZONE)}]",
    "MAPPED": "[::FFFF:127.0.0.1]",
    "SHORT": "127.1",
    "BARE": "::1",
    "EVERY": "[::]",
}
"""Addresses of the listeners, by name."""
CONNECTED = {"ZONE": ("::1",), "NUMBER": ("::1",), "BARE": ("::1",), "EVERY": ("127.0.0.1", "::1")}
"""Addresses that clients of these listeners connect to; for others it is 127.0.0.1."""
WAYS = [(name, host) for name in HOSTS for host in CONNECTED.get(name, ("127.0.0.1",))]
TIMEOUT_SECONDS = 60


@pytest.fixture(scope="module")
def ports() -> dict[str, int]:
    """The ports of the listeners, the same at both brokers one after the other."""
    return {name: free_port() for name in HOSTS}


def properties(ports: dict[str, int]) -> dict[str, str]:
    listeners = ",".join(f"{name}://{HOSTS[name]}:{port}" for name, port in ports.items())
    names = (*HOSTS, "CONTROLLER")
    return {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "inter.broker.listener.name": "ZONE",
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
        "offsets.topic.num.partitions": "1",
    }


Told = dict[tuple[str, str], tuple[str, int, str]]


@pytest.fixture(scope="module")
def told_by_apache(tmp_path_factory: pytest.TempPathFactory, ports: dict[str, int]) -> Told:
    """Return the findings of `told` at Apache Kafka 4.3.1, which has stopped."""
    directory = tmp_path_factory.mktemp("apache")
    apache = apache_4(directory, properties(ports), port=ports["FOUR"])
    try:
        apache.start()
        return {(name, host): told(host, ports[name]) for name, host in WAYS}
    finally:
        apache.kill()


@pytest.fixture(scope="module")
def broker(
    tmp_path_factory: pytest.TempPathFactory, ports: dict[str, int], told_by_apache: Told
) -> Iterator[BrokerProcess]:
    """Our broker, once Apache Kafka has left the ports to it."""
    broker = ours(tmp_path_factory.mktemp("ours"), properties(ports), port=ports["FOUR"])
    try:
        broker.start()
        yield broker
        broker.stop()
    finally:
        broker.kill()


def told(host: str, port: int) -> tuple[str, int, str]:
    """Host and port in Metadata, and the host of a group's member, at one listener."""
    group = f"{host} {port}"
    with RawConnection(socket.create_connection((host, port), TIMEOUT_SECONDS)) as connection:
        [node] = ask(connection, MetadataRequest(topics=[]), 1).brokers
        find = FindCoordinatorRequest(key=group)
        eventually(lambda: ask(connection, find, 0).error_code == 0)
        join = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"")],
        )
        eventually(lambda: ask(connection, join, 1).error_code == 0)
        [described] = ask(connection, DescribeGroupsRequest(groups=[group]), 0).groups
        [member] = described.members
        return node.host, node.port, member.client_host


def ask(connection: RawConnection, request: Request, version: int) -> Any:
    cls = type(request)
    body = bytes(request.encode(version))
    connection.send(bytes(request_front(1, cls.API_KEY, version, b"c", len(body))) + body)
    answer = memoryview(connection.receive())
    return cls.RESPONSE.decode_from(version, answer, response_header_bytes(cls.API_KEY, version))[0]


@pytest.mark.parametrize(("name", "host"), WAYS)
def test_advertised_and_client_addresses_equal_apaches(
    broker: BrokerProcess, ports: dict[str, int], told_by_apache: Told, name: str, host: str
) -> None:
    found = told(host, ports[name])
    assert found == told_by_apache[name, host]
    assert found[2] == ("/127.0.0.1" if host == "127.0.0.1" else "/0:0:0:0:0:0:0:1")


@pytest.mark.parametrize("name", [name for name in HOSTS if name != "BARE"])
def test_java_clients_write_and_read_at_each_address(
    broker: BrokerProcess, ports: dict[str, int], tools_4: Tools, name: str
) -> None:
    server = f"{HOSTS[name]}:{ports[name]}"
    topic = f"at-{name}"
    tools_4.check("topics", "--bootstrap-server", server, "--create", "--topic", topic)
    tools_4.check(
        "console-producer", "--bootstrap-server", server, "--topic", topic, stdin="a\nb\n"
    )
    options = ("--from-beginning", "--max-messages", "2", "--timeout-ms", "60000")
    read = tools_4.check(
        "console-consumer", "--bootstrap-server", server, "--topic", topic, *options
    )
    assert read.lines == ["a", "b"]


@pytest.fixture(scope="module")
def tools_4() -> Iterator[Tools]:
    tools = Tools(jars.KAFKA_4)
    yield tools
    tools.close()
