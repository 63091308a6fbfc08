"""Connections that are cut hold up what is sent, and let it through once they are whole again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from broker.embedded.machine.cuttable_network import EmbeddedLoop
from broker.embedded.machine.turned_time import TurnedTime

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from typing import Any


@pytest.fixture
def loop() -> Iterator[EmbeddedLoop]:
    loop = EmbeddedLoop(TurnedTime())
    yield loop
    loop.run_until_complete(loop.break_off())
    loop.close()


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(100):
        writer.write(data)
    writer.close()


async def _serving() -> tuple[asyncio.Server, int]:
    server = await asyncio.start_server(_echo, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


def run(loop: EmbeddedLoop, test: Coroutine[Any, Any, None]) -> None:
    loop.run_until_complete(asyncio.wait_for(test, 10))


def test_bytes_sent_during_a_cut_arrive_in_order_afterwards(loop: EmbeddedLoop) -> None:
    async def test() -> None:
        server, port = await _serving()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"before ")
        assert await reader.readexactly(7) == b"before "

        loop.cut_off_from({port})
        writer.write(b"one ")
        writer.write(b"two ")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.05)
        loop.cut_off_from(set())
        writer.write(b"three")

        assert await reader.readexactly(13) == b"one two three"
        writer.close()
        server.close()

    run(loop, test())


def test_a_new_connection_waits_until_the_way_is_free(loop: EmbeddedLoop) -> None:
    async def test() -> None:
        server, port = await _serving()
        loop.cut_off_from({port})
        connecting = loop.create_task(asyncio.open_connection("127.0.0.1", port))
        done, _ = await asyncio.wait({connecting}, timeout=0.05)
        assert not done

        loop.cut_off_from(set())

        _, writer = await connecting
        writer.close()
        server.close()

    run(loop, test())


def test_other_ports_are_reached(loop: EmbeddedLoop) -> None:
    async def test() -> None:
        server, port = await _serving()
        loop.cut_off_from({port + 1})
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"one")
        assert await reader.readexactly(3) == b"one"
        writer.close()
        server.close()

    run(loop, test())
