"""Closing the listeners: every client is disconnected, and none delays that."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
from typing import TYPE_CHECKING

import pytest

from broker.network.listener import ListenError, Listeners
from broker.runtime.timers import Timers
from config.broker import BrokerConfig
from config.listeners.endpoints import Endpoint, read_listeners
from tests.broker.connections import (
    SOCKET_BYTES,
    ScriptedDispatcher,
    services_for,
    small_socket,
)
from tests.broker.replica_fetchers.harness import ManualClock
from tests.support.brokers.ipv6 import needs_ipv6

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.runtime.clock import Clock

HERE = "127.0.0.1"
HALF = bytes(1 << 20)
ANSWER = HALF * 2
LONG_SECONDS = 30
QUESTION = b"\0\0\0\1?"


def listening(
    scenario: Callable[[Listeners, int], Awaitable[None]], clock: Clock | None = None
) -> None:
    """Run a scenario against a listener that answers each frame with `ANSWER`, in two writes."""
    config = BrokerConfig(
        listeners=(f"PLAINTEXT://{HERE}:0",), socket_send_buffer_bytes=SOCKET_BYTES
    )

    async def run() -> None:
        dispatcher = ScriptedDispatcher(lambda _: [HALF, HALF])
        timers = Timers(asyncio.get_running_loop())
        services = services_for(dispatcher)
        if clock is not None:
            services = dataclasses.replace(services, clock=clock)
        listeners = Listeners(services.clock, timers)
        [endpoint] = read_listeners(config).bound
        port = await listeners.bind(endpoint, config)
        await listeners.serve(services)
        await scenario(listeners, port)

    asyncio.run(run())


async def asking(listeners: Listeners, port: int) -> socket.socket:
    """A client whose answer is on its way, and which does not read."""
    client = small_socket()
    client.connect((HERE, port))
    client.setblocking(False)
    client.sendall(QUESTION)
    loop = asyncio.get_running_loop()
    assert await loop.sock_recv(client, 1) == b"\0"
    assert listeners._connections
    return client


@pytest.mark.timeout(LONG_SECONDS * 2)
def test_a_client_that_does_not_read_is_cut_off() -> None:
    async def scenario(listeners: Listeners, port: int) -> None:
        client = await asking(listeners, port)
        idle = socket.create_connection((HERE, port))

        await asyncio.wait_for(listeners.close(), LONG_SECONDS)

        assert not listeners._connections
        client.close()
        idle.close()

    listening(scenario)


@pytest.mark.timeout(LONG_SECONDS * 2)
def test_a_server_that_never_says_that_it_is_closed_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def wait_for_ever(_: asyncio.Server) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.base_events.Server, "wait_closed", wait_for_ever)

    async def scenario(listeners: Listeners, port: int) -> None:
        idle = socket.create_connection((HERE, port))

        await asyncio.wait_for(listeners.close(), LONG_SECONDS)

        with pytest.raises(OSError, match="refused"):
            socket.create_connection((HERE, port))
        idle.close()

    listening(scenario)


@pytest.mark.timeout(LONG_SECONDS * 2)
def test_closing_one_listener_disconnects_only_its_clients() -> None:
    async def scenario(listeners: Listeners, port: int) -> None:
        other = Endpoint("OTHER", "PLAINTEXT", HERE, 0)
        other_port = await listeners.bind(other, BrokerConfig())
        staying = await asking(listeners, port)
        leaving = [await asking(listeners, other_port) for _ in range(3)]
        assert listeners.open_connections() == {"PLAINTEXT": 1, "OTHER": 3}

        doors = listeners.shut("OTHER")
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((HERE, other_port))
        assert listeners.open_connections()["OTHER"] == 3, "until they are dismissed"
        await listeners.bind(dataclasses.replace(other, port=other_port), BrokerConfig())
        late = await asking(listeners, other_port)

        assert await asyncio.wait_for(listeners.dismiss(doors), LONG_SECONDS) == 3

        assert listeners.open_connections() == {"PLAINTEXT": 1, "OTHER": 1}
        for client in (staying, late, *leaving):
            client.close()
        await listeners.close()

    listening(scenario)


@needs_ipv6
@pytest.mark.parametrize("host", ["", "::", "0.0.0.0"])
def test_every_interface_has_one_port_for_ipv4_and_ipv6(host: str) -> None:
    async def scenario(listeners: Listeners, _: int) -> None:
        port = await listeners.bind(Endpoint("EVERY", "PLAINTEXT", host, 0), BrokerConfig())
        for client in (HERE, "::1"):
            socket.create_connection((client, port)).close()
        await listeners.close()

    listening(scenario)


@needs_ipv6
@pytest.mark.parametrize("host", ["::1%nosuch0", "fe80::1%nosuch0"])
def test_listener_with_an_unknown_zone_is_refused_by_name(host: str) -> None:
    async def scenario(listeners: Listeners, _: int) -> None:
        why = r"listener L: cannot listen on \[.*%nosuch0\]:9092: there is no interface nosuch0"
        with pytest.raises(ListenError, match=why):
            await listeners.bind(Endpoint("L", "PLAINTEXT", host, 9092), BrokerConfig())
        await listeners.close()

    listening(scenario)


def test_an_address_is_tried_out_without_being_taken() -> None:
    async def scenario(listeners: Listeners, port: int) -> None:
        taken = Endpoint("OTHER", "PLAINTEXT", HERE, port)
        with pytest.raises(ListenError, match=f"OTHER: {HERE}:{port} is already in use"):
            await listeners.try_out(taken, BrokerConfig())
        with pytest.raises(ListenError, match="is already in use"):
            await listeners.bind(taken, BrokerConfig())
        listeners.shut("PLAINTEXT")
        await listeners.try_out(taken, BrokerConfig())
        assert await listeners.bind(taken, BrokerConfig()) == port
        await listeners.close()

    listening(scenario)


@pytest.mark.timeout(LONG_SECONDS * 2)
def test_an_answer_that_is_read_leaves_before_its_connection_goes() -> None:
    async def scenario(listeners: Listeners, port: int) -> None:
        client = await asking(listeners, port)
        loop = asyncio.get_running_loop()

        async def rest() -> int:
            count = 1
            while piece := await loop.sock_recv(client, 1 << 20):
                count += len(piece)
            return count

        reading = asyncio.get_running_loop().create_task(rest())
        await asyncio.wait_for(listeners.close(), LONG_SECONDS)

        assert await reading == len(ANSWER)
        client.close()

    listening(scenario, clock=ManualClock())  # which stands still: there is time enough
