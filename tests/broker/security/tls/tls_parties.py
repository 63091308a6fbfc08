"""A listener with TLS for tests, and what happens on it, without a broker above."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from broker.runtime.timers import Timers
from broker.security.tls.handshakes import Handshakes
from broker.security.tls.listener_context import ListenerName, load
from broker.security.tls.listener_tls import ListenerTls

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from config.broker import BrokerConfig
    from tests.support.certificates import Authority, Issued

LISTENER = ListenerName("EXTERNAL", has_sasl=False, is_inter_broker=False)
PLENTY = (60_000, 100)


class Guest(asyncio.BufferedProtocol):
    """A connection on the listener: keeps what it receives, or echoes it."""

    def __init__(self, buffer_bytes: int = 4096) -> None:
        self.received = bytearray()
        self.transport: asyncio.Transport | None = None
        self.principal: str | None = None
        self.reason: str | None = None
        self.is_echo = False
        self.ended = asyncio.Event()
        self.lost = asyncio.Event()
        self.progress = asyncio.Event()
        self._buffer = memoryview(bytearray(buffer_bytes))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def recognised(self, principal: str) -> None:
        self.principal = principal

    def failed(self, reason: str) -> None:
        self.reason = reason
        assert self.transport is not None
        self.transport.close()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._buffer[:nbytes])
        self.received += data
        self.progress.set()
        if self.is_echo:
            assert self.transport is not None
            self.transport.write(data)

    def eof_received(self) -> bool:
        self.ended.set()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()


class Door:
    """The listener: each connection is a `Guest`."""

    def __init__(self, config: BrokerConfig, limits: tuple[int, int] = PLENTY) -> None:
        loop = asyncio.get_running_loop()
        self.threads = ThreadPoolExecutor(1)
        self.handshakes = Handshakes(loop, self.threads, Timers(loop), limits)
        self.tls = ListenerTls(load(config, LISTENER), self.handshakes)
        self.guests: asyncio.Queue[Guest] = asyncio.Queue()
        self.port = 0
        self.next_buffer_bytes = 4096

    def enter(self) -> asyncio.BaseProtocol:
        guest = Guest(self.next_buffer_bytes)
        self.guests.put_nowait(guest)
        return self.tls.transport(guest, guest.recognised, guest.failed)


@contextlib.asynccontextmanager
async def door(config: BrokerConfig, limits: tuple[int, int] = PLENTY) -> AsyncIterator[Door]:
    opened = Door(config, limits)
    server = await asyncio.get_running_loop().create_server(opened.enter, "127.0.0.1", 0)
    opened.port = server.sockets[0].getsockname()[1]
    try:
        yield opened
    finally:
        server.close()
        opened.threads.shutdown()


def trusting(authority: Authority, shown: Issued | None = None) -> ssl.SSLContext:
    """The context of a client that trusts an authority, and may show a certificate."""
    context = ssl.create_default_context(cadata=authority.pem())
    if shown is not None:
        context.load_cert_chain(shown.chain_file(), shown.key_file())
    return context


async def enter(
    opened: Door, context: ssl.SSLContext
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect as a client, with asyncio's own TLS."""
    return await asyncio.open_connection(
        "127.0.0.1", opened.port, ssl=context, server_hostname="localhost"
    )


def server_keys(authority: Authority, directory: Path, **more: str) -> dict[str, str]:
    """A configuration whose server has a certificate of the authority, and trusts it."""
    issued = authority.issue("broker", directory)
    return issued.as_keystore("PEM") | authority.as_truststore(directory, "PEM") | more
