"""Listener keys become endpoints, or are refused."""

from __future__ import annotations

import pytest

from config.broker import BrokerConfig
from config.errors import ConfigError
from config.listeners.endpoints import Endpoint, read_listeners

NAMED = "INTERNAL:PLAINTEXT,EXTERNAL:SSL"


def test_the_default_listens_everywhere_and_leaves_the_host_name_to_the_machine() -> None:
    listeners = read_listeners(BrokerConfig())
    assert listeners.bound == (Endpoint("PLAINTEXT", "PLAINTEXT", "", 9092),)
    assert listeners.advertised == listeners.bound
    assert listeners.inter_broker == "PLAINTEXT"


def test_named_listeners_take_their_protocol_from_the_map() -> None:
    listeners = read_listeners(
        BrokerConfig(
            listeners=("internal://10.0.0.1:9092", "EXTERNAL://0.0.0.0:9093"),
            advertised_listeners=("INTERNAL://10.0.0.1:9092", "EXTERNAL://kafka.example:443"),
            listener_security_protocol_map=NAMED,
            inter_broker_listener_name="INTERNAL",
        )
    )
    assert listeners.bound[1] == Endpoint("EXTERNAL", "SSL", "0.0.0.0", 9093)
    assert listeners.advertised[1] == Endpoint("EXTERNAL", "SSL", "kafka.example", 443)
    assert listeners.inter_broker == "INTERNAL"


@pytest.mark.parametrize(
    "host", ["::1", "::1%lo", "fe80::1%2", "::ffff:127.0.0.1", "FE80::1", "::127.0.0.1"]
)
def test_ipv6_addresses_are_bound_and_advertised_as_they_are_written(host: str) -> None:
    listeners = read_listeners(BrokerConfig(listeners=(f"PLAINTEXT://[{host}]:9092",)))
    assert listeners.bound[0].host == host
    assert str(listeners.advertised[0]) == f"PLAINTEXT://[{host}]:9092"


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1"])
@pytest.mark.parametrize("other", ["[::1]", "[::1%lo]", "[::]", "[::ffff:127.0.0.1]"])
def test_an_ipv4_and_an_ipv6_address_may_share_a_port(host: str, other: str) -> None:
    texts = (f"PLAINTEXT://{host}:9092", f"SSL://{other}:9092")
    assert len(read_listeners(BrokerConfig(listeners=texts)).bound) == 2


def test_many_listeners_may_leave_their_ports_to_the_system() -> None:
    texts = ("PLAINTEXT://127.0.0.1:0", "SSL://127.0.0.1:0", "SASL_SSL://127.0.0.1:0")
    assert len(read_listeners(BrokerConfig(listeners=texts)).bound) == 3


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "[0:0:0:0:0:0:0:0]", "[]", ""])
def test_every_interface_is_not_advertised(host: str) -> None:
    listeners = read_listeners(BrokerConfig(listeners=(f"PLAINTEXT://{host}:9092",)))
    assert listeners.advertised[0].host == ""


@pytest.mark.parametrize("host", ["::1%lo", "::ffff:127.0.0.1", "::", "FE80::1"])
def test_advertised_hosts_keep_their_spelling(host: str) -> None:
    advertised = (f"PLAINTEXT://[{host}]:9093",)
    listeners = read_listeners(BrokerConfig(advertised_listeners=advertised))
    assert listeners.advertised == (Endpoint("PLAINTEXT", "PLAINTEXT", host, 9093),)


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        (BrokerConfig(listeners=()), "at least one listener"),
        (BrokerConfig(listeners=("localhost:9092",)), "NAME://host:port"),
        (BrokerConfig(listeners=("PLAINTEXT://[::1:9092",)), "IPv6 in brackets"),
        (BrokerConfig(listeners=("PLAINTEXT://:90920",)), "the highest is 65535"),
        (BrokerConfig(listeners=("OTHER://:9092",)), "no security protocol is given for OTHER"),
        (BrokerConfig(listeners=("PLAINTEXT://:1", "PLAINTEXT://:2")), "different name"),
        (BrokerConfig(listeners=("PLAINTEXT://127.0.0.1:1", "PLAINTEXT://[::1]:1")), "differ"),
        (BrokerConfig(listeners=("PLAINTEXT://:1", "SSL://:1")), "different port.* 2 have port 1"),
        (BrokerConfig(listeners=("PLAINTEXT://:1", "SSL://[::1]:1")), "have port 1"),
        (BrokerConfig(listeners=("PLAINTEXT://localhost:1", "SSL://[::1]:1")), "have port 1"),
        (BrokerConfig(listeners=("PLAINTEXT://[::1]:1", "SSL://[0::1]:1")), "have port 1"),
        (
            BrokerConfig(
                listeners=("PLAINTEXT://1.1.1.1:1", "SSL://[::1]:1", "SASL_SSL://[::2]:1")
            ),
            "3 have port 1",
        ),
        (BrokerConfig(advertised_listeners=("PLAINTEXT://0.0.0.0:1",)), "every interface"),
        (BrokerConfig(advertised_listeners=("SSL://host:1",)), "not among the listeners"),
        (BrokerConfig(inter_broker_listener_name="SSL"), "one of the advertised listeners"),
        (BrokerConfig(listener_security_protocol_map="A:B"), "does not map a listener"),
        (
            BrokerConfig(
                inter_broker_listener_name="PLAINTEXT",
                stated={"security.inter.broker.protocol": "PLAINTEXT"},
            ),
            "Only one of",
        ),
    ],
)
def test_invalid_listeners_are_refused(config: BrokerConfig, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        read_listeners(config)


@pytest.mark.parametrize(
    ("config", "key"),
    [
        (BrokerConfig(listeners=("SSL://:1",)), "listeners"),
        (
            BrokerConfig(listeners=("SSL://:1",), advertised_listeners=("SSL://host:1",)),
            "advertised.listeners",
        ),
        (
            BrokerConfig(
                listeners=("SSL://:1",), stated={"security.inter.broker.protocol": "PLAINTEXT"}
            ),
            "security.inter.broker.protocol",
        ),
        (BrokerConfig(inter_broker_listener_name="SSL"), "inter.broker.listener.name"),
    ],
)
def test_a_missing_inter_broker_listener_is_reported_at_its_key(
    config: BrokerConfig, key: str
) -> None:
    with pytest.raises(ConfigError, match="one of the advertised listeners") as refused:
        read_listeners(config)
    assert refused.value.keys == (key,)
