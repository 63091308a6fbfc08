"""A connection whose client has exceeded a quota: answers are sent, requests wait."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING, Any

from broker.runtime.deferred import Deferred
from tests.broker.connections import ScriptedDispatcher, connected, echo, services_for, turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.network.client import Client
    from broker.network.connection import Connection

A_WHILE_MS = 50
FOREVER_MS = 10**9
LARGE_BYTES = 4 << 20


class ThrottlingDispatcher(ScriptedDispatcher):
    """The first request exceeds a quota."""

    def __init__(self, milliseconds: int) -> None:
        super().__init__(echo)
        self._milliseconds = milliseconds
        self.connection: weakref.ref[Connection] | None = None

    def dispatch(self, frame: memoryview, peer: Client, connection: Connection) -> Any:
        if self.connection is None:
            self.connection = weakref.ref(connection)
            connection.rest(self._milliseconds)
        return super().dispatch(frame, peer, connection)


def test_a_throttled_answer_is_sent_at_once_and_later_requests_wait() -> None:
    async def scenario() -> None:
        dispatcher = ThrottlingDispatcher(A_WHILE_MS)
        async with connected(dispatcher) as wire:
            began = asyncio.get_running_loop().time()
            wire.send(b"one", b"two", b"three")
            assert await wire.reader.readexactly(5) == b"<one>"
            assert dispatcher.frames == [b"one"]
            assert await wire.reader.readexactly(12) == b"<two><three>"
            assert asyncio.get_running_loop().time() - began >= A_WHILE_MS / 1000

    asyncio.run(scenario())


def test_requests_arriving_while_throttled_wait() -> None:
    async def scenario() -> None:
        dispatcher = ThrottlingDispatcher(FOREVER_MS)
        async with connected(dispatcher) as wire:
            wire.send(b"one")
            assert await wire.reader.readexactly(5) == b"<one>"
            wire.send(b"two")
            await turns()
            assert dispatcher.frames == [b"one"]

    asyncio.run(scenario())


def test_longer_rest_is_not_cut_short_by_a_later_one() -> None:
    async def scenario() -> None:
        dispatcher = ThrottlingDispatcher(FOREVER_MS)
        async with connected(dispatcher) as wire:
            wire.send(b"one")
            assert await wire.reader.readexactly(5) == b"<one>"
            assert dispatcher.connection is not None
            connection = dispatcher.connection()
            assert connection is not None
            connection.rest(0)
            wire.send(b"two")
            await turns()
            assert dispatcher.frames == [b"one"]

    asyncio.run(scenario())


def test_client_that_leaves_meanwhile_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        dispatcher = ThrottlingDispatcher(FOREVER_MS)
        async with connected(dispatcher) as wire:
            wire.send(b"one")
            assert await wire.reader.readexactly(5) == b"<one>"
            assert dispatcher.connection is not None
            connection = dispatcher.connection()
            assert connection is not None
            connection.abort()
            del connection
            await turns()
            gc.collect()
            assert dispatcher.connection() is None, "no timer keeps it"

    asyncio.run(scenario())


def test_memory_of_all_is_not_kept_for_as_long_as_one_rests() -> None:
    """A large request that has begun to come is handled all the same; what follows it waits."""

    async def scenario() -> None:
        first: Deferred[Any] = Deferred(is_ordered_only=True)
        dispatcher = ScriptedDispatcher(lambda frame: first if frame == b"one" else echo(b"."))
        services = services_for(dispatcher, max_request_bytes=LARGE_BYTES)
        async with connected(dispatcher, services) as wire:
            large = LARGE_BYTES.to_bytes(4, "big") + bytes(LARGE_BYTES)
            wire.send(b"one")
            wire.writer.write(large[: LARGE_BYTES // 2])
            await until(lambda: services.memory.used > 0)
            (connection,) = wire.connections
            connection.rest(FOREVER_MS)
            wire.writer.write(large[LARGE_BYTES // 2 :])
            await until(lambda: len(dispatcher.frames) == 2)
            await until(lambda: services.memory.used == 0)
            first.complete([b"<one>"])
            assert await wire.reader.readexactly(8) == b"<one><.>"
            wire.send(b"three")
            await turns()
            assert len(dispatcher.frames) == 2

    asyncio.run(scenario())


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await turns(1)
