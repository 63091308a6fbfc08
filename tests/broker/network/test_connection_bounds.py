"""Bounds on the memory that one peer can take and on the time; ownership of received bytes."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import resource
import socket
import struct
import weakref
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker.network.connection import FLUSH_BYTES, FRAME_BYTES, LOOK_BYTES, TURN_MS
from broker.network.frame_buffer import BUFFER_BYTES
from broker.network.request_memory import RequestMemory
from broker.requests.long_requests import LONG_BYTES
from broker.runtime.deferred import Deferred
from tests.broker.connections import (
    FileRegion,
    ScriptedDispatcher,
    SegmentFile,
    connected,
    echo,
    services_for,
    turns,
    until,
)
from tests.broker.replica_fetchers.harness import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.network.connection import Connection
    from tests.broker.connections import Wire


def test_frame_that_a_deferred_answer_keeps_is_not_written_over() -> None:
    async def scenario() -> None:
        kept: list[memoryview] = []
        waiting: Deferred[Any] = Deferred()

        class Keeping(ScriptedDispatcher):
            def dispatch(self, frame: memoryview, *_: Any) -> Any:
                kept.append(frame)
                return waiting if len(kept) == 1 else echo(bytes(frame))

        async with connected(Keeping(echo)) as wire:
            wire.send(b"one")
            await until(lambda: bool(kept))
            wire.send(b"two", b"three")
            await turns()
            waiting.complete(echo(bytes(kept[0])))
            assert await wire.reader.readexactly(17) == b"<one><two><three>"

    asyncio.run(scenario())


def test_answers_to_a_peer_that_reads_none_are_bounded() -> None:
    async def scenario() -> None:
        answer = bytes(50_000)
        dispatcher = ScriptedDispatcher(lambda _: [answer])
        async with connected(dispatcher) as wire:
            wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
            wire.send(*[b"."] * 1_000)
            await turns(200)
            handled = len(dispatcher.frames)
            (connection,) = wire.connections
            held = connection._transport.get_write_buffer_size()
            assert held < FLUSH_BYTES + len(answer)
            assert handled < 100, "the rest is in the socket's buffers, and they are bounded"
            wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
            for _ in range(1_000):
                await wire.reader.readexactly(len(answer))
            assert len(dispatcher.frames) == 1_000

    asyncio.run(scenario())


def test_requests_of_one_connection_take_turns_with_those_of_others() -> None:
    class SlowClock:
        """Time goes by with each look at it."""

        def __init__(self) -> None:
            self.time_ms = 0

        def now_ms(self) -> int:
            return self.time_ms

        def monotonic_ms(self) -> int:
            self.time_ms += TURN_MS
            return self.time_ms

    async def scenario() -> None:
        dispatcher = ScriptedDispatcher(echo)
        services = dataclasses.replace(services_for(dispatcher), clock=SlowClock())
        seen: list[int] = []

        def look() -> None:
            seen.append(len(dispatcher.frames))
            if seen[-1] < 100:
                asyncio.get_running_loop().call_soon(look)

        async with connected(dispatcher, services) as wire:
            wire.send(*[b"x"] * 100)
            look()
            assert await wire.reader.readexactly(300) == b"<x>" * 100
        at_once = max(after - before for before, after in pairwise(seen))
        assert at_once <= 2 * LOOK_BYTES // FRAME_BYTES

    asyncio.run(scenario())


def test_turn_begins_before_the_first_of_a_few_large_requests() -> None:
    """Each of these takes a whole turn: after each of them others are served."""

    async def scenario() -> None:
        clock = ManualClock()
        seen: list[int] = []

        def take_long(frame: bytes) -> list[bytes]:
            clock.time_ms += TURN_MS
            seen[-1] += 1
            return echo(frame[:1])

        def next_turn() -> None:
            seen.append(0)
            if sum(seen) < 3:
                asyncio.get_running_loop().call_soon(next_turn)

        dispatcher = ScriptedDispatcher(take_long)
        services = dataclasses.replace(services_for(dispatcher), clock=clock)
        async with connected(dispatcher, services) as wire:
            next_turn()
            wire.send(*[bytes(LONG_BYTES)] * 3)
            assert await wire.reader.readexactly(9) == b"<\0>" * 3
        assert max(seen) == 1

    asyncio.run(scenario())


def test_answers_that_stand_behind_others_are_bounded_over_all_connections() -> None:
    async def scenario() -> None:
        waiting: list[Deferred[Any]] = []

        def defer(_: bytes) -> Deferred[Any]:
            waiting.append(Deferred(is_ordered_only=True))
            return waiting[-1]

        dispatcher = ScriptedDispatcher(defer)
        services = services_for(dispatcher, most_in_flight=3)
        async with connected(dispatcher, services) as one, connected(dispatcher, services) as two:
            one.send(*[b"1"] * 10)
            await until(lambda: len(waiting) >= 3)
            await turns()
            assert len(waiting) == 3
            two.send(*[b"2"] * 10)
            await until(lambda: len(waiting) >= 4)
            await turns()
            assert len(waiting) == 4, "each connection may have one"
            for number in range(20):
                await until(lambda: len(waiting) > number)  # noqa: B023
                waiting[number].complete([b"."])
            assert await one.reader.readexactly(10) == b"." * 10
            assert await two.reader.readexactly(10) == b"." * 10
            assert services.in_flight.count == 0

    asyncio.run(scenario())


def test_large_frames_wait_for_the_memory_of_others() -> None:
    async def scenario() -> None:
        dispatcher = ScriptedDispatcher(lambda frame: [b"%d." % len(frame)])
        memory = RequestMemory(1_000_000, asyncio.get_running_loop().call_soon)
        size = 4_000_000
        services = services_for(dispatcher, memory, max_request_bytes=size)
        frame = size.to_bytes(4, "big") + bytes(size)
        async with connected(dispatcher, services) as one, connected(dispatcher, services) as two:
            one.writer.write(frame[:2_000_000])
            await until(lambda: bool(memory.used))
            two.writer.write(frame)
            await turns(200)
            assert memory.used < 2 * size
            assert dispatcher.frames == []
            one.writer.write(frame[2_000_000:])
            assert await one.reader.readexactly(8) == b"4000000."
            assert await two.reader.readexactly(8) == b"4000000."
            await turns()
            assert memory.used == 0

    asyncio.run(scenario())


def test_frame_for_which_the_system_has_no_memory_ends_its_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        size = 2**31 - 1
        dispatcher = ScriptedDispatcher(echo)
        services = services_for(dispatcher, max_request_bytes=size)
        async with connected(dispatcher, services) as wire:
            with address_space_for(size // 2):
                wire.writer.write(size.to_bytes(4, "big") + bytes(2 * BUFFER_BYTES))
                with contextlib.suppress(ConnectionError):  # not all that was sent is read
                    assert await wire.reader.read() == b""

    asyncio.run(scenario())
    [record] = caplog.records
    assert "no memory for its requests" in record.getMessage()


@contextlib.contextmanager
def address_space_for(count: int) -> Iterator[None]:
    """Let this process map `count` more bytes, and nothing beyond."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_slow_reader_that_sends_a_malformed_frame_is_hung_up_on_once() -> None:
    async def scenario() -> None:
        troubles: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: troubles.append(what))
        answer = bytes(8_000_000)
        async with connected(ScriptedDispatcher(lambda _: [answer])) as wire:
            wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
            wire.send(b"much")
            wire.writer.write(b"\xff\xff\xff\xff")
            await until(lambda: any(one._outgoing.is_paused for one in wire.connections))
            wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
            assert await wire.reader.read() is not None
            await until(lambda: not wire.connections)
        assert troubles == []

    asyncio.run(scenario())


def test_region_that_cannot_be_sent_ends_its_connection_and_raises_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        path = tmp_path / "segment"
        path.write_bytes(bytes(50_000))
        waiting: Deferred[Any] = Deferred()
        with path.open("rb") as file:
            region = FileRegion(SegmentFile(file), 0, 100_000)
            async with connected(ScriptedDispatcher(lambda _: waiting)) as wire:
                wire.send(b"a")
                await until(lambda: bool(wire.connections))
                await turns()
                waiting.complete([region])
                assert len(await wire.reader.read()) <= 50_000
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "shorter" in caplog.text

    asyncio.run(scenario())


@pytest.mark.parametrize("has_unread_answer", [False, True])
def test_idle_connection_is_closed_even_if_it_never_reads_its_answer(
    has_unread_answer: bool,
) -> None:
    async def scenario() -> None:
        answer = bytes(8_000_000 if has_unread_answer else 1)
        dispatcher = ScriptedDispatcher(lambda _: [answer])
        async with connected(dispatcher) as wire:
            wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
            wire.send(b"a")
            await until(lambda: bool(dispatcher.frames))
            await turns()
            (connection,) = wire.connections
            connection.look_after(1_000, 600)
            connection.look_after(1_500, 600)
            await turns()
            assert wire.connections, "not yet"
            connection.look_after(1_700, 600)
            await turns()
            assert not wire.connections

    asyncio.run(scenario())


def test_connection_that_is_gone_holds_no_buffer() -> None:
    async def scenario() -> None:
        dispatcher = ScriptedDispatcher(echo)
        async with connected(dispatcher) as wire:
            wire.send(b"a")
            assert await wire.reader.readexactly(3) == b"<a>"
            (connection,) = wire.connections
            wire.writer.close()
            await until(lambda: not wire.connections)
            assert connection._buffer.capacity == 0
            gone = weakref.ref(connection)
            del connection
            await turns()
            assert gone() is None, "without the collector of garbage cycles"

    asyncio.run(scenario())


@pytest.mark.parametrize("ending", ["leave", "reset", "refused"])
def test_connection_that_is_gone_leaves_no_garbage_cycle(ending: str) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        dispatcher = ScriptedDispatcher(echo)
        async with connected(dispatcher) as wire:
            port = wire.writer.get_extra_info("peername")[1]
            gc.collect()
            for _ in range(5):
                with socket.socket() as client:
                    client.setblocking(False)
                    await loop.sock_connect(client, ("127.0.0.1", port))
                    size = -1 if ending == "refused" else 1
                    await loop.sock_sendall(client, struct.pack(">i", size) + b"a")
                    await until(lambda: bool(dispatcher.frames) or ending == "refused")
                    if ending == "reset":
                        linger = struct.pack("ii", 1, 0)
                        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    elif ending == "refused":
                        assert await loop.sock_recv(client, 1) == b""
                dispatcher.frames.clear()
                await until(lambda: len(wire.connections) == 1)
            await turns()
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            garbage = Counter(type(one).__name__ for one in gc.garbage)
            gc.set_debug(0)
            gc.garbage.clear()
            assert not [name for name in garbage if "Transport" in name or "Connection" in name]

    asyncio.run(scenario())


def test_connection_whose_peer_has_left_does_not_outlive_its_idle_time() -> None:
    """A request that waits for ever would keep it: its peer, which has left, pays nothing."""

    async def scenario() -> None:
        abandoned = asyncio.Event()
        waiting: Deferred[Any] = Deferred(on_abandon=abandoned.set)
        dispatcher = ScriptedDispatcher(lambda _: waiting)
        async with connected(dispatcher) as wire:
            wire.send(b"waits", b"behind it")
            wire.writer.write_eof()
            (connection,) = await has_ended(wire)
            connection.look_after(1_000, 600)
            connection.look_after(1_500, 600)
            await turns()
            assert wire.connections, "not yet"
            connection.look_after(1_700, 600)
            await turns()
            assert not wire.connections
            assert abandoned.is_set()

    asyncio.run(scenario())


async def has_ended(wire: Wire) -> list[Connection]:
    """The connections, once all have met the end of what their peers send."""
    await until(lambda: bool(wire.connections) and all(one._is_at_end for one in wire.connections))
    return list(wire.connections)
