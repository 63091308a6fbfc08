"""Sockets bound for each spelling of an address, and the clients that can connect."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import pytest

from broker.runtime.addresses.listening_socket import listen_on, listening_socket
from config.listeners.addresses import peer_address
from tests.support.brokers.ipv6 import LOOPBACK_ZONE, needs_ipv6

if TYPE_CHECKING:
    from collections.abc import Callable


def accepted(listening: socket.socket, host: str) -> str:
    """The address of a client that connects to `host`, as Java writes it."""
    with listening:
        listening.listen()
        port = listening.getsockname()[1]
        with socket.create_connection((host, port)) as client, listening.accept()[0] as connected:
            assert client.getpeername()[1] == port
            return peer_address(connected.getpeername())


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("localhost", "127.0.0.1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("::FFFF:7f00:1", "127.0.0.1"),
    ],
)
def test_ipv4_address_is_bound_however_it_is_written(host: str, shown: str) -> None:
    assert accepted(listening_socket(host, 0), "127.0.0.1") == shown


@needs_ipv6
@pytest.mark.parametrize("host", ["::1", "0:0::1", f"::1%{LOOPBACK_ZONE}", "::1%1"])
def test_ipv6_address_is_bound_with_and_without_zone(host: str) -> None:
    assert accepted(listening_socket(host, 0), "::1") == "0:0:0:0:0:0:0:1"


@needs_ipv6
@pytest.mark.parametrize("host", ["", "::", "0.0.0.0", "0:0:0:0:0:0:0:0"])
@pytest.mark.parametrize(
    ("client", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "0:0:0:0:0:0:0:1")]
)
def test_every_interface_takes_ipv4_and_ipv6_at_one_port(
    host: str, client: str, shown: str
) -> None:
    assert accepted(listening_socket(host, 0), client) == shown


def test_every_interface_is_that_of_ipv4_on_a_machine_without_ipv6(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    assert accepted(listening_socket("", 0), "127.0.0.1") == "127.0.0.1"


def test_one_address_of_a_name_is_bound_and_it_is_of_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[Any] = [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2001:db8::1", 0, 0, 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.77", 0)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: there)
    with listening_socket("many.invalid", 0) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"


def test_port_that_is_taken_is_refused() -> None:
    async def take(port: int) -> None:
        await listen_on("127.0.0.1", port)

    refuse: tuple[Callable[[int], object], ...] = (
        lambda port: listening_socket("::ffff:127.0.0.1", port),
        lambda port: asyncio.run(take(port)),
    )
    with listening_socket("127.0.0.1", 0) as first:
        first.listen()
        for attempt in refuse:
            with pytest.raises(OSError, match="in use"):
                attempt(first.getsockname()[1])
