"""A connection over a real socket, with a dispatcher that we script."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

from broker.runtime.deferred import Deferred
from tests.broker.connections import (
    MAX_REQUEST_BYTES,
    FileRegion,
    ScriptedDispatcher,
    SegmentFile,
    connected,
    echo,
    turns,
    until,
)

if TYPE_CHECKING:
    from pathlib import Path

MEGABYTE = 1 << 20


def test_many_frames_in_one_packet_are_answered_in_order() -> None:
    async def scenario() -> None:
        async with connected(ScriptedDispatcher(echo)) as wire:
            wire.send(b"one", b"two", b"three")
            assert await wire.reader.readexactly(17) == b"<one><two><three>"

    asyncio.run(scenario())


def test_frame_in_small_pieces_and_larger_than_the_buffer() -> None:
    async def scenario() -> None:
        body = os.urandom(300_000)
        dispatcher = ScriptedDispatcher(lambda frame: [len(frame).to_bytes(4, "big")])
        async with connected(dispatcher) as wire:
            data = len(body).to_bytes(4, "big") + body
            for start in range(0, len(data), 70_001):
                wire.writer.write(data[start : start + 70_001])
                await wire.writer.drain()
            assert await wire.reader.readexactly(4) == (300_000).to_bytes(4, "big")
            assert dispatcher.frames == [body]
            wire.send(b"after")
            assert await wire.reader.readexactly(4) == (5).to_bytes(4, "big")

    asyncio.run(scenario())


@pytest.mark.parametrize("size", [-1, -(2**31), MAX_REQUEST_BYTES + 1, 2**31 - 1])
def test_impossible_size_closes_the_connection_without_a_dispatch(size: int) -> None:
    async def scenario() -> None:
        dispatcher = ScriptedDispatcher(echo)
        async with connected(dispatcher) as wire:
            wire.writer.write(size.to_bytes(4, "big", signed=True) + b"junk")
            assert await wire.reader.read() == b""
            assert dispatcher.frames == []

    asyncio.run(scenario())


def test_a_deferred_answer_delays_the_following_requests() -> None:
    async def scenario() -> None:
        waiting: Deferred[Any] = Deferred()
        dispatcher = ScriptedDispatcher(lambda frame: waiting if frame == b"slow" else echo(frame))
        async with connected(dispatcher) as wire:
            wire.send(b"slow", b"fast")
            await until(lambda: bool(dispatcher.frames))
            await turns()
            assert dispatcher.frames == [b"slow"], "the connection rests while the answer is open"
            waiting.complete([b"<slow>"])
            assert await wire.reader.readexactly(12) == b"<slow><fast>"

    asyncio.run(scenario())


def test_ordered_only_answers_overlap_and_leave_in_order() -> None:
    async def scenario() -> None:
        first: Deferred[Any] = Deferred(is_ordered_only=True)
        second: Deferred[Any] = Deferred(is_ordered_only=True)
        answers = {b"1": first, b"2": second}
        dispatcher = ScriptedDispatcher(lambda frame: answers.get(frame) or echo(frame))
        async with connected(dispatcher) as wire:
            wire.send(b"1", b"2", b"3")
            await until(lambda: len(dispatcher.frames) == 3)
            second.complete([b"<2>"])
            first.complete([b"<1>"])
            assert await wire.reader.readexactly(9) == b"<1><2><3>"

    asyncio.run(scenario())


def test_deferred_none_answers_nothing_and_goes_on() -> None:
    async def scenario() -> None:
        waiting: Deferred[Any] = Deferred()
        dispatcher = ScriptedDispatcher(lambda frame: waiting if frame == b"mute" else echo(frame))
        async with connected(dispatcher) as wire:
            wire.send(b"mute", b"next")
            await until(lambda: bool(dispatcher.frames))
            waiting.complete(None)
            assert await wire.reader.readexactly(6) == b"<next>"

    asyncio.run(scenario())


def test_hang_up_abandons_deferred_answers() -> None:
    async def scenario() -> None:
        abandoned = asyncio.Event()
        waiting: Deferred[Any] = Deferred(on_abandon=abandoned.set)
        async with connected(ScriptedDispatcher(lambda _: waiting)) as wire:
            wire.send(b"slow")
            await until(lambda: bool(wire.connections))
            await wire.writer.drain()
            wire.writer.close()
            await asyncio.wait_for(abandoned.wait(), 60)

    asyncio.run(scenario())


def test_request_that_is_not_served_yet_is_served_after_its_client_has_left() -> None:
    """As at a broker that still starts, or for a body that takes a while to be read."""

    async def scenario() -> None:
        abandoned = asyncio.Event()
        waiting: Deferred[Any] = Deferred(is_unserved=True, on_abandon=abandoned.set)
        async with connected(ScriptedDispatcher(lambda _: waiting)) as wire:
            wire.send(b"acks=0")
            wire.writer.close()
            await wire.writer.wait_closed()
            await until(lambda: bool(wire.connections))
            await turns()
            assert not abandoned.is_set()
            waiting.complete(None)
            await until(lambda: not wire.connections)

    asyncio.run(scenario())


def test_requests_sent_before_a_half_close_are_answered() -> None:
    async def scenario() -> None:
        waiting: Deferred[Any] = Deferred()
        dispatcher = ScriptedDispatcher(lambda frame: waiting if frame == b"slow" else echo(frame))
        async with connected(dispatcher) as wire:
            wire.send(b"slow", b"fast", b"last")
            wire.writer.write(b"\0\0\0\7cut")
            wire.writer.write_eof()
            await until(lambda: bool(dispatcher.frames))
            waiting.complete([b"<slow>"])
            assert await wire.reader.read() == b"<slow><fast><last>"
            assert not wire.connections

    asyncio.run(scenario())


def test_requests_sent_before_a_disconnect_are_handled() -> None:
    """Producers with acks=0 disconnect like that: when they have sent all."""

    async def scenario() -> None:
        waiting: Deferred[Any] = Deferred()
        dispatcher = ScriptedDispatcher(lambda frame: waiting if frame == b"slow" else None)
        async with connected(dispatcher) as wire:
            wire.send(b"slow", b"2", b"3")
            wire.writer.close()
            await wire.writer.wait_closed()
            await until(lambda: bool(dispatcher.frames))
            await turns()
            waiting.complete(None)
            await until(lambda: not wire.connections)
            assert dispatcher.frames == [b"slow", b"2", b"3"]

    asyncio.run(scenario())


@pytest.mark.parametrize("length", [0, 1, 1000, 100_000, 8_000_000])
def test_file_regions_stand_among_bytes_and_survive_a_slow_reader(
    tmp_path: Path, length: int
) -> None:
    content = os.urandom(length + 20)
    path = tmp_path / "segment"
    path.write_bytes(content)
    piece = content[7 : 7 + length]
    whole = b"[" + piece + b"|" + piece + b"]"

    async def scenario() -> None:
        with path.open("rb") as file:
            region = FileRegion(SegmentFile(file), 7, length)
            dispatcher = ScriptedDispatcher(lambda _: [b"[", region, b"|", region, b"]"])
            async with connected(dispatcher) as wire:
                wire.send(b"a", b"b")
                await turns()
                for start in [*range(0, len(whole), MEGABYTE)] * 2:
                    expected = whole[start : start + MEGABYTE]
                    assert await wire.reader.readexactly(len(expected)) == expected

    asyncio.run(scenario())


def test_nothing_behind_a_region_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A Fetch response before version 12 ends in records, and encoders end with what follows."""

    async def scenario() -> None:
        path = tmp_path / "segment"
        path.write_bytes(bytes(100_000))
        with path.open("rb") as file:
            region = FileRegion(SegmentFile(file), 0, 100_000)
            async with connected(ScriptedDispatcher(lambda _: [b"[", region, b""])) as wire:
                wire.send(b"a")
                assert await wire.reader.readexactly(100_001) == b"[" + bytes(100_000)
                wire.send(b"b")
                assert await wire.reader.readexactly(1) == b"["

    asyncio.run(scenario())
    assert caplog.records == []


def open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_peer_that_leaves_in_the_middle_of_a_region_leaves_nothing_open(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(20_000_000))

    async def scenario() -> None:
        with path.open("rb") as file:
            region = FileRegion(SegmentFile(file), 0, 20_000_000)
            before = open_files()
            async with connected(ScriptedDispatcher(lambda _: [b"[", region])) as wire:
                wire.send(b"a")
                assert await wire.reader.readexactly(1) == b"["
                wire.writer.transport.abort()
                await until(lambda: not wire.connections)
            assert open_files() <= before

    asyncio.run(scenario())
