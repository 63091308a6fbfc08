"""Connections over real sockets, with a dispatcher that a test scripts."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import socket
from typing import TYPE_CHECKING, Any

from broker.network.client import Client
from broker.network.closure_log import ClosureLog
from broker.network.connection import Connection
from broker.network.connection_services import ConnectionServices, InFlight
from broker.network.request_memory import RequestMemory
from broker.runtime.clock import SystemClock
from config.broker import BrokerConfig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from broker.network.connection_services import FrameDispatcher

MAX_REQUEST_BYTES = 1_000_000
PLENTY_BYTES = 2**40
KEPT_BYTES = 1536 * 1024
"""The default of `connection.buffer.max.bytes`."""
SOCKET_BYTES = 1 << 16
"""Size of each socket's buffers, whatever the machine's setting: little beside long answers."""


class ScriptedDispatcher:
    """Answers each frame with what `answer` returns for it."""

    def __init__(self, answer: Callable[[bytes], Any]) -> None:
        self._answer = answer
        self.frames: list[bytes] = []

    def dispatch(self, frame: memoryview, peer: Client, connection: Connection) -> Any:
        self.frames.append(bytes(frame))
        return self._answer(bytes(frame))


@dataclasses.dataclass
class Wire:
    """The client's end."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    connections: dict[Connection, None]

    def send(self, *bodies: bytes) -> None:
        self.writer.write(b"".join(len(body).to_bytes(4, "big") + body for body in bodies))


def echo(frame: bytes) -> list[bytes]:
    """Answer with the frame in angle brackets."""
    return [b"<" + frame + b">"]


def services_for(
    dispatcher: FrameDispatcher,
    memory: RequestMemory | None = None,
    *,
    most_in_flight: int = 500,
    max_request_bytes: int = MAX_REQUEST_BYTES,
) -> ConnectionServices:
    clock = SystemClock()
    return ConnectionServices(
        dispatcher,
        clock,
        memory or RequestMemory(PLENTY_BYTES, asyncio.get_running_loop().call_soon),
        InFlight(most_in_flight),
        max_request_bytes,
        KEPT_BYTES,
        ClosureLog(clock, BrokerConfig().connection_log_max_lines_per_second),
    )


@contextlib.asynccontextmanager
async def connected(
    dispatcher: FrameDispatcher, services: ConnectionServices | None = None
) -> AsyncIterator[Wire]:
    """A client of a server whose connections have `dispatcher`, or those `services`."""
    connections: dict[Connection, None] = {}
    loop = asyncio.get_running_loop()
    given = services or services_for(dispatcher)
    listening, client = small_socket(), small_socket()
    listening.bind(("127.0.0.1", 0))
    server = await loop.create_server(
        lambda: Connection(given, Client("PLAINTEXT", connections)), sock=listening
    )
    client.connect(listening.getsockname())
    reader, writer = await asyncio.open_connection(sock=client)
    try:
        yield Wire(reader, writer, connections)
    finally:
        if writer.transport.get_write_buffer_size():  # for a connection that reads no more
            writer.transport.abort()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        server.close()
        for connection in tuple(connections):
            connection.close()
        await server.wait_closed()


def small_socket() -> socket.socket:
    """A socket with buffers of `SOCKET_BYTES`, as those have that a listening one accepts."""
    one = socket.socket()
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        one.setsockopt(socket.SOL_SOCKET, option, SOCKET_BYTES)
    return one


async def turns(count: int = 20) -> None:
    """Run the callbacks of the event loop that are due."""
    for _ in range(count):
        await asyncio.sleep(0)  # noqa: TID251


async def until(condition: Callable[[], bool]) -> None:
    """Turn the event loop until it holds; the other end of a socket is on the same loop."""
    async with asyncio.timeout(60):
        while not condition():
            await turns(1)


class SegmentFile:
    """An open file, as storage has them."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def fileno(self) -> int:
        return self._file.fileno()  # type: ignore[no-any-return]

    def read_at(self, position: int, length: int) -> bytes:
        return os.pread(self._file.fileno(), length, position)


@dataclasses.dataclass
class FileRegion:
    """A piece of one, standing in a response."""

    file: SegmentFile
    position: int
    length: int

    def __len__(self) -> int:
        return self.length
