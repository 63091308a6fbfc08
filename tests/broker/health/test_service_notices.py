"""Notices to a service manager, sent only where one asks for them."""

from __future__ import annotations

import asyncio
import socket
from secrets import token_hex
from typing import TYPE_CHECKING

import pytest

from broker.health.service_notices import ServiceNotices
from broker.runtime.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PID = 4711
SECONDS = 30.0


@pytest.fixture
def address(tmp_path: Path) -> str:
    return str(tmp_path / "notify")


@pytest.fixture
def ear(address: str) -> Iterator[socket.socket]:
    """The socket of a service manager."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(address)
        ear.setblocking(False)
        yield ear


def _told(environ: dict[str, str], tell: Callable[[ServiceNotices], None]) -> None:
    async def scenario() -> None:
        notices = ServiceNotices(environ, PID, Timers(asyncio.get_running_loop()))
        tell(notices)
        notices.close()

    asyncio.run(scenario())


def _heard(ear: socket.socket) -> list[str]:
    heard = []
    while True:
        try:
            heard.append(ear.recv(1000).decode())
        except BlockingIOError:
            return heard


def test_ready_and_stopping_are_sent(ear: socket.socket, address: str) -> None:
    def tell(notices: ServiceNotices) -> None:
        notices.ready("broker 1 serves")
        notices.stopping()

    _told({"NOTIFY_SOCKET": address}, tell)
    assert _heard(ear) == ["READY=1\nSTATUS=broker 1 serves", "STOPPING=1\nSTATUS=stopping"]


def test_abstract_socket_addresses_are_supported() -> None:
    name = f"broker-{token_hex(8)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(f"\0{name}")
        ear.setblocking(False)
        _told({"NOTIFY_SOCKET": f"@{name}"}, lambda notices: notices.ready("x"))
        assert _heard(ear) == ["READY=1\nSTATUS=x"]


async def _beats(environ: dict[str, str], ear: socket.socket, count: int) -> list[bytes]:
    """Yield the messages until so many have come, or the manager has nothing more to send."""
    loop = asyncio.get_running_loop()
    notices = ServiceNotices(environ, PID, Timers(loop))
    notices.ready("x")
    heard = [await asyncio.wait_for(loop.sock_recv(ear, 1000), SECONDS) for _ in range(count)]
    notices.stopping()
    heard.append(await asyncio.wait_for(loop.sock_recv(ear, 1000), SECONDS))
    notices.close()
    return heard[1:]


def test_the_loop_feeds_the_watchdog_until_the_end(ear: socket.socket, address: str) -> None:
    environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": str(PID)}
    heard = asyncio.run(_beats(environ, ear, 5))
    assert heard[:4] == [b"WATCHDOG=1"] * 4
    assert heard[4].startswith((b"WATCHDOG=1", b"STOPPING=1"))


def test_a_watchdog_of_another_process_is_not_fed(ear: socket.socket, address: str) -> None:
    environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"}
    heard = asyncio.run(_beats(environ, ear, 1))
    assert [one.partition(b"=")[0] for one in heard] == [b"STOPPING"]


def test_nothing_is_sent_or_logged_without_notify_socket(caplog: pytest.LogCaptureFixture) -> None:
    _told({"WATCHDOG_USEC": "1000000"}, lambda notices: notices.ready("x"))
    assert caplog.records == []


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("vsock:2:1234", "NOTIFY_SOCKET vsock:2:1234: only unix sockets are known"),
        ("/nowhere/notify", "at /nowhere/notify did not take READY=1: "),
        ("/" + "x" * 200, "did not take READY=1: AF_UNIX path too long"),
    ],
)
def test_an_unreachable_notify_socket_is_logged(
    address: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    _told({"NOTIFY_SOCKET": address}, lambda notices: notices.ready("x"))
    assert [said in record.getMessage() for record in caplog.records] == [True]


def test_a_message_is_sent_again_once_the_socket_takes_one(
    ear: socket.socket, address: str
) -> None:
    async def scenario() -> list[bytes]:
        loop = asyncio.get_running_loop()
        filling = _full(address)
        notices = ServiceNotices({"NOTIFY_SOCKET": address}, PID, Timers(loop))
        notices.ready("x")
        heard: list[bytes] = []
        while not heard or heard[-1] == b"full":
            heard.append(await asyncio.wait_for(loop.sock_recv(ear, 1000), SECONDS))
        notices.close()
        filling.close()
        return heard

    assert asyncio.run(scenario())[-1] == b"READY=1\nSTATUS=x"


def _full(address: str) -> socket.socket:
    """Fill the queue of a socket; the kernel keeps some ten datagrams."""
    filling = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    filling.setblocking(False)
    while True:
        try:
            filling.sendto(b"full", address)
        except BlockingIOError:
            return filling
