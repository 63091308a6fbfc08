"""Closing a connection: queued answers leave first, and no wait is endless."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from broker.network.request_memory import RequestMemory
from broker.runtime.deferred import Deferred
from tests.broker.connections import (
    KEPT_BYTES,
    FileRegion,
    ScriptedDispatcher,
    SegmentFile,
    connected,
    services_for,
    turns,
    until,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from broker.network.connection import Connection
    from broker.network.connection_services import ConnectionServices
    from tests.broker.connections import Wire

MEGABYTE = 1 << 20
LONG_BYTES = 4 * MEGABYTE
MALFORMED = b"\xff\xff\xff\xff"


def long_answer() -> list[bytes]:
    """Return an answer of several writes, the first of which fills an unread socket."""
    return [bytes(MEGABYTE)] * (LONG_BYTES // MEGABYTE)


def answering_much() -> ScriptedDispatcher:
    return ScriptedDispatcher(lambda _: long_answer())


@contextlib.asynccontextmanager
async def unread(
    dispatcher: ScriptedDispatcher, services: ConnectionServices | None = None
) -> AsyncIterator[tuple[Wire, Connection]]:
    """A client that does not read until it is allowed to."""
    async with connected(dispatcher, services) as wire:
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await until(lambda: bool(wire.connections))
        (connection,) = wire.connections
        yield wire, connection


async def full(connection: Connection) -> None:
    """Wait until the socket is full, with more to send."""
    await until(lambda: bool(connection._outgoing._parts) and connection._outgoing.is_paused)


async def rest(wire: Wire) -> int:
    """Return the number of bytes received until the connection ends."""
    wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
    async with asyncio.timeout(60):
        return len(await wire.reader.read())


@pytest.mark.parametrize("kind", ["bytes", "region"])
def test_queued_answers_are_sent_before_a_close(kind: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        troubles: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: troubles.append(what))
        path = tmp_path / "segment"
        path.write_bytes(bytes(LONG_BYTES))
        with path.open("rb") as file:
            region = FileRegion(SegmentFile(file), 0, LONG_BYTES)
            answer: list[Any] = long_answer() if kind == "bytes" else [region]
            async with unread(ScriptedDispatcher(lambda _: answer)) as (wire, connection):
                wire.send(b"much")
                await full(connection)
                connection.close()
                await turns()
                assert await rest(wire) == LONG_BYTES
                await until(lambda: not wire.connections)
        assert troubles == []

    asyncio.run(scenario())


def test_queued_answers_are_sent_before_a_malformed_frame_closes() -> None:
    async def scenario() -> None:
        dispatcher = ScriptedDispatcher(lambda _: [*long_answer(), b"."])
        async with unread(dispatcher) as (wire, _):
            wire.send(b"much")
            wire.writer.write(MALFORMED)
            assert await rest(wire) == LONG_BYTES + 1

    asyncio.run(scenario())


def test_queued_answers_are_sent_after_the_client_half_closed() -> None:
    async def scenario() -> None:
        async with unread(answering_much()) as (wire, connection):
            wire.send(b"much")
            await full(connection)
            wire.writer.write_eof()
            await until(lambda: connection._is_at_end)
            await turns()
            assert await rest(wire) == LONG_BYTES
            await until(lambda: not wire.connections)

    asyncio.run(scenario())


def test_closing_connection_handles_no_request() -> None:
    async def scenario() -> None:
        dispatcher = answering_much()
        async with unread(dispatcher) as (wire, connection):
            wire.send(b"much")
            await full(connection)
            wire.send(b"received before the close")
            await until(lambda: not connection._buffer.is_empty)
            connection.close()
            wire.send(b"sent after it")
            await turns()
            with contextlib.suppress(ConnectionError):  # what it does not read is refused
                await rest(wire)
            await until(lambda: not wire.connections)
            assert dispatcher.frames == [b"much"]

    asyncio.run(scenario())


def test_closing_connection_holds_no_requests_while_its_client_does_not_read() -> None:
    """Not even a waiting one, its place, or the memory of one half received."""

    async def scenario() -> None:
        abandoned = asyncio.Event()
        first: Deferred[Any] = Deferred(is_ordered_only=True)
        waiting: Deferred[Any] = Deferred(is_ordered_only=True, on_abandon=abandoned.set)
        answers = {b"much": first, b"slow": waiting}
        dispatcher = ScriptedDispatcher(answers.__getitem__)
        memory = RequestMemory(KEPT_BYTES, asyncio.get_running_loop().call_soon)
        size = 2 * KEPT_BYTES
        services = services_for(dispatcher, memory, max_request_bytes=size)
        async with unread(dispatcher, services) as (wire, connection):
            wire.send(b"much", b"slow")
            wire.writer.write(size.to_bytes(4, "big") + bytes(KEPT_BYTES))
            await until(lambda: memory.used > 0)
            first.complete(long_answer())
            await full(connection)
            assert services.in_flight.count == 1
            connection.close()
            await turns()
            assert abandoned.is_set()
            assert services.in_flight.count == 0
            assert memory.used == 0
            assert wire.connections, "its answers are not sent yet"
        assert services.in_flight.count == 0

    asyncio.run(scenario())


def test_closing_connection_whose_client_never_reads_ends_with_its_idle_time() -> None:
    async def scenario() -> None:
        async with unread(answering_much()) as (wire, connection):
            wire.send(b"much")
            await full(connection)
            connection.close()
            connection.look_after(1_000, 600)
            connection.look_after(1_500, 600)
            await turns()
            assert wire.connections, "not yet"
            assert connection._buffer.capacity == 0, "no memory is taken for it again"
            connection.look_after(1_700, 600)
            await turns()
            assert not wire.connections

    asyncio.run(scenario())


def test_client_that_leaves_a_closing_connection_ends_it() -> None:
    async def scenario() -> None:
        async with unread(answering_much()) as (wire, connection):
            wire.send(b"much")
            await full(connection)
            connection.close()
            wire.writer.transport.abort()
            await until(lambda: not wire.connections)

    asyncio.run(scenario())


def test_a_handlers_os_error_is_not_logged_as_lack_of_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        def fail(_: bytes) -> None:
            raise PermissionError("not ours")

        async with connected(ScriptedDispatcher(fail)) as wire:
            wire.send(b"one", b"two")
            with contextlib.suppress(ConnectionError):
                assert await wire.reader.read() == b""

    asyncio.run(scenario())
    [record] = caplog.records
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], PermissionError)
