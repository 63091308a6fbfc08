"""Limits of open connections and sizes of socket buffers, on real sockets of this machine."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, cast

import pytest

from broker.network.connection_quotas import (
    ConnectionQuotas,
    ConnectionRateLimit,
    configured_limits,
)
from broker.network.listener import Listeners
from broker.runtime.timers import Timers
from config.broker import BrokerConfig
from config.errors import ConfigError
from config.listeners.endpoints import read_address_limits, read_listeners
from tests.broker.connections import ScriptedDispatcher, echo, services_for

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


HERE = "127.0.0.1"


def listening(config: BrokerConfig, scenario: Callable[[Listeners, int], Awaitable[None]]) -> None:
    """Run a scenario against a listener that serves no request."""

    async def run() -> None:
        timers = Timers(asyncio.get_running_loop())
        services = services_for(ScriptedDispatcher(echo))
        listeners = Listeners(services.clock, timers, await configured_limits(config))
        [endpoint] = read_listeners(config).bound
        port = await listeners.bind(endpoint, config)
        await listeners.serve(services)
        try:
            await scenario(listeners, port)
        finally:
            await listeners.close()

    asyncio.run(run())


def configured(**values: int | str) -> BrokerConfig:
    return BrokerConfig(listeners=(f"PLAINTEXT://{HERE}:0",), **values)


@pytest.mark.parametrize(
    "limit",
    [
        {"max_connections": 2},
        {"max_connections_per_ip": 2},
        {"max_connections_per_ip": 9, "max_connections_per_ip_overrides": f"{HERE}:2, 10.0.0.1:1"},
    ],
)
def test_one_connection_too_many_is_closed_and_room_is_made_by_one_that_ends(
    limit: dict[str, int | str],
) -> None:
    async def scenario(listeners: Listeners, port: int) -> None:
        kept = [await asyncio.open_connection(HERE, port) for _ in range(2)]
        reader, writer = await asyncio.open_connection(HERE, port)
        assert await reader.read() == b""
        writer.close()
        assert len(listeners._connections) == 2
        kept[0][1].write(b"\xff\xff\xff\xff")  # a frame of a negative size
        assert await kept[0][0].read() == b""
        kept.append(await asyncio.open_connection(HERE, port))
        kept[2][1].write(b"\xff\xff\xff\xff")
        kept[1][1].write(b"\xff\xff\xff\xff")
        for one, other in kept:
            await one.read()
            other.close()
        assert not listeners._connections

    listening(configured(**limit), scenario)


class SetClock:
    """A wall clock that jumps back and forth, and a monotonic one that we turn."""

    def __init__(self) -> None:
        self.monotonic = 0

    def now_ms(self) -> int:
        return 10**12 if self.monotonic % 2 else 0

    def monotonic_ms(self) -> int:
        return self.monotonic


def test_connections_are_idle_by_the_monotonic_clock() -> None:
    async def scenario(listeners: Listeners, port: int) -> None:
        clock = listeners._clock = SetClock()
        reader, writer = await asyncio.open_connection(HERE, port)
        while not listeners._connections:
            await asyncio.sleep(0)  # noqa: TID251
        [connection] = listeners._connections
        for clock.monotonic in (1, 1000, 2000):
            connection.look_after(clock.monotonic, 2000)
            assert not connection._is_closing
        connection._peer.is_active = True
        for clock.monotonic in (2001, 4000):
            connection.look_after(clock.monotonic, 2000)
            assert not connection._is_closing
        clock.monotonic = 4001
        listeners.look_after_idle(1)
        assert await reader.read() == b""
        writer.close()

    listening(configured(), scenario)


def test_connections_that_come_too_fast_get_turns() -> None:
    pace = ConnectionRateLimit(10)
    assert [pace.wait_ms(50_000) for _ in range(13)] == [0] * 10 + [100, 200, 300]
    assert pace.wait_ms(50_350) == 50
    assert pace.wait_ms(52_000) == 0


class HandTimers:
    """Timers that we let go off."""

    def __init__(self) -> None:
        self.set: list[tuple[float, Callable[[], None]]] = []

    def schedule(self, delay_ms: float, callback: Callable[[], None]) -> None:
        self.set.append((delay_ms, callback))

    async def sleep(self, _: float) -> None:
        await asyncio.sleep(0)  # noqa: TID251


def test_a_connection_that_waits_for_its_turn_is_heard_then() -> None:
    async def scenario(listeners: Listeners, port: int) -> None:
        timers = HandTimers()
        listeners._clock, listeners._timers = SetClock(), cast("Timers", timers)
        opened = [await asyncio.open_connection(HERE, port) for _ in range(3)]
        for _, writer in opened:
            writer.write(b"\xff\xff\xff\xff")  # a frame of a negative size
        for reader, _ in opened[:2]:
            assert await reader.read() == b""
        [(delay_ms, begin)] = timers.set
        assert delay_ms == 500
        assert len(listeners._connections) == 1
        begin()
        assert await opened[2][0].read() == b""
        for _, writer in opened:
            writer.close()
        assert not listeners._connections

    listening(configured(max_connection_creation_rate=2), scenario)


def test_addresses_are_counted_apart() -> None:
    limits = ConnectionQuotas(3, 1, {"::1": 2})
    assert [limits.admit(host) for host in ("a", "b", "::1")] == [None, None, None]
    assert "max.connections" in str(limits.admit("::1"))
    limits.release("a")
    assert "max.connections.per.ip" in str(limits.admit("b"))
    assert limits.admit("::1") is None


def test_overrides_are_addresses_and_limits() -> None:
    config = configured(max_connections_per_ip_overrides="::1:5, ::2%lo:6,host:7,")
    assert read_address_limits(config) == {"::1": 5, "::2%lo": 6, "host": 7}


@pytest.mark.parametrize("writing", ["::1", "0:0::1", "0:0:0:0:0:0:0:1"])
def test_override_holds_for_every_writing_of_its_address(writing: str) -> None:
    config = configured(max_connections_per_ip_overrides=f"{writing}:0, ::ffff:127.0.0.2:0")

    limits = asyncio.run(configured_limits(config)).limits[2]

    assert limits == {"0:0:0:0:0:0:0:1": 0, "127.0.0.2": 0}


@pytest.mark.parametrize("text", ["host", "host:", ":5", "host:-1", "a:1,b", "[::1]:5"])
def test_an_override_without_address_or_limit_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not an address and a limit"):
        read_address_limits(configured(max_connections_per_ip_overrides=text))


def test_accepted_sockets_have_the_configured_buffers() -> None:
    async def scenario(listeners: Listeners, port: int) -> None:
        _, writer = await asyncio.open_connection(HERE, port)
        [door] = listeners._doors
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            assert door.server.sockets[0].getsockopt(socket.SOL_SOCKET, option) == 2 * 50_000
        writer.close()

    config = configured(socket_send_buffer_bytes=50_000, socket_receive_buffer_bytes=50_000)
    listening(config, scenario)


def test_minus_one_leaves_buffers_to_the_system() -> None:
    async def scenario(listeners: Listeners, port: int) -> None:
        [door] = listeners._doors
        with socket.socket() as untouched:
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                expected = untouched.getsockopt(socket.SOL_SOCKET, option)
                assert door.server.sockets[0].getsockopt(socket.SOL_SOCKET, option) == expected

    listening(configured(socket_send_buffer_bytes=-1, socket_receive_buffer_bytes=-1), scenario)


def test_connection_above_the_rate_of_its_address_is_closed_after_a_while() -> None:
    async def scenario(listeners: Listeners, port: int) -> None:
        assert listeners.limits is not None
        waits = iter([0, 20, 0])
        asked = []

        def throttle_ms(address: str) -> int:
            asked.append(address)
            return next(waits)

        listeners.limits.throttle_ms = throttle_ms
        answers = []
        for _ in range(3):
            reader, writer = await asyncio.open_connection(HERE, port)
            writer.write(b"\0\0\0\1?")
            try:
                answers.append(await reader.readexactly(3))
            except (asyncio.IncompleteReadError, ConnectionError):
                answers.append(b"")
            writer.close()

        assert answers == [b"<?>", b"", b"<?>"]
        assert asked == [HERE] * 3

    listening(configured(), scenario)
