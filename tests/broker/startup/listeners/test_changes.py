"""Listeners to open and to close when `listeners` is altered."""

from __future__ import annotations

import asyncio
import dataclasses
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.startup.addresses import by_name
from broker.startup.listeners.changes import ListenerChanges, difference
from config.broker import BrokerConfig
from config.errors import ConfigError
from config.listeners.endpoints import Endpoint
from tests.support.broker_parts.services import Adapters, foundation_in_memory

USERS = "listener.name.external.scram-sha-256.sasl.jaas.config"
NAMES = ("A", "B", "C")
BOUND = st.lists(
    st.builds(Endpoint, st.sampled_from(NAMES), st.just("SSL"), st.just(""), st.integers(1, 2)),
    unique_by=lambda one: one.name,
).map(by_name)


def test_listeners_are_added_removed_and_moved() -> None:
    stays, goes, comes = (Endpoint(name, "SSL", "", 1) for name in ("STAYS", "GOES", "COMES"))
    here, there = (Endpoint("MOVES", "PLAINTEXT", "", port) for port in (2, 3))
    found = difference(by_name([stays, goes, here]), by_name([comes, there, stays]))
    assert found == (("GOES",), ("MOVES",), ("COMES",))


def test_a_listener_that_gets_an_address_of_ipv6_moves() -> None:
    four, six = Endpoint("A", "SSL", "127.0.0.1", 1), Endpoint("A", "SSL", "::1%lo", 1)
    assert difference(by_name([four]), by_name([six])).moved == ("A",)
    assert difference(by_name([six]), by_name([six])) == ((), (), ())


def test_an_open_listener_keeps_its_protocol() -> None:
    plain, tls = (Endpoint("A", protocol, "", 1) for protocol in ("PLAINTEXT", "SSL"))
    with pytest.raises(ConfigError, match=r"cannot be updated for existing listener A"):
        difference(by_name([plain]), by_name([tls]))


@given(BOUND, BOUND)
def test_applying_the_difference_yields_the_wanted_listeners(
    now: dict[str, Endpoint], wanted: dict[str, Endpoint]
) -> None:
    gone, moved, new = difference(now, wanted)
    after = {name: one for name, one in now.items() if name not in gone}
    after |= {name: wanted[name] for name in (*moved, *new)}
    assert after == wanted
    assert all(now[name] != wanted[name] for name in moved)


def test_an_address_that_was_taken_after_the_check_changes_nothing_and_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        config = BrokerConfig(listeners=("PLAINTEXT://127.0.0.1:0",))
        base = foundation_in_memory(config, Adapters())
        addresses, told = base.addresses, []

        async def register() -> None:
            told.append(dict(addresses.advertised))

        changes = ListenerChanges(addresses, base.machine, register)
        before = dict(addresses.advertised)
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            wanted = dataclasses.replace(
                config,
                listeners=(*config.listeners, f"EXTERNAL://127.0.0.1:{port}"),
                listener_security_protocol_map="PLAINTEXT:PLAINTEXT,EXTERNAL:SASL_PLAINTEXT",
                sasl_enabled_mechanisms=("SCRAM-SHA-256",),
                stated={USERS: "org.apache.kafka.common.security.scram.ScramLoginModule required;"},
            )
            with pytest.raises(ConfigError, match="is already in use"):
                await changes.check(wanted)
            await changes.change(wanted)
            assert "already in use" in caplog.text
            assert addresses.bound.keys() == addresses.ports.keys() == {"PLAINTEXT"}
            assert addresses.advertised == before
            assert not told
            assert not addresses.authentication.listeners

        await changes.check(wanted)
        await changes.change(wanted)
        assert addresses.ports["EXTERNAL"] == port
        assert told[-1].keys() == {"PLAINTEXT", "EXTERNAL"}
        assert addresses.authentication.listeners.keys() == {"EXTERNAL"}

        await changes.change(config)
        assert told[-1] == before
        assert not addresses.authentication.listeners
        await addresses.listeners.close()
        base.machine.supervision.close()

    asyncio.run(scenario())
