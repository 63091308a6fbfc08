"""The gate on a connection: requests it lets through, refusals, and the end of a session."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from broker.network.authentication.gate import GateSettings, SaslGate
from broker.network.client import Client
from broker.network.connection import Connection
from broker.runtime.deferred import Deferred
from broker.runtime.timers import Timers
from broker.security.sasl.conversation import Terms
from broker.security.sasl.plain import PlainMechanism
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest
from protocol.messages.sasl import SaslAuthenticateResponse
from tests.broker.connections import ScriptedDispatcher, Wire, services_for
from tests.broker.security.sasl.sasl_frames import (
    PASSWORDS,
    SettableClock,
    api_versions,
    authenticate,
    frame_of,
    handshake,
    plain,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

METADATA = frame_of(MetadataRequest(topics=None), 9)
ANSWER = b"answer of the dispatcher"
NO_ERROR_IN_VERSIONS = b"\0\0\0\x06\0\0\0\x07\0\0"
SMALLEST_FRAME = 40
DELAY_MS = 100


class Served:
    """A SASL listener with one client."""

    def __init__(self, *, max_reauth_ms: int = 0, max_frame_bytes: int = 1000) -> None:
        loop = asyncio.get_running_loop()
        self.clock = SettableClock()
        mechanisms = {"PLAIN": PlainMechanism(PASSWORDS)}
        terms = Terms(mechanisms, {"PLAIN": max_reauth_ms}, self.clock)
        self.settings = GateSettings(terms, Timers(loop), max_frame_bytes, DELAY_MS)
        self.dispatcher = ScriptedDispatcher(self._answer)
        self.client = Client("SASL", {})
        self.services = services_for(self.dispatcher)
        object.__setattr__(self.services, "clock", self.clock)

    def _answer(self, frame: bytes) -> list[bytes]:
        return [NO_ERROR_IN_VERSIONS if frame == api_versions() else ANSWER]

    def accept(self) -> Connection:
        connection = Connection(self.services, self.client)
        connection.guard(SaslGate(self.settings))
        return connection

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[Wire]:
        server = await asyncio.get_running_loop().create_server(self.accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield Wire(reader, writer, {})
        finally:
            writer.close()
            server.close()
            await server.wait_closed()


async def frame(wire: Wire) -> bytes:
    size = int.from_bytes(await wire.reader.readexactly(4), "big")
    return await wire.reader.readexactly(size)


async def log_in(wire: Wire) -> SaslAuthenticateResponse:
    wire.send(handshake(), authenticate(plain(), 1))
    await frame(wire)
    return SaslAuthenticateResponse.decode(1, (await frame(wire))[4:])


def test_requests_reach_the_dispatcher_once_the_client_is_known() -> None:
    async def scenario() -> None:
        served = Served()
        async with served.connected() as wire:
            wire.send(api_versions(), handshake(), authenticate(plain()), METADATA)
            assert await wire.reader.readexactly(10) == NO_ERROR_IN_VERSIONS
            for _ in range(2):
                await frame(wire)
            assert await wire.reader.readexactly(len(ANSWER)) == ANSWER
        assert served.dispatcher.frames == [api_versions(), METADATA]
        assert served.client.principal == "User:alice"

    asyncio.run(scenario())


def test_nothing_reaches_the_dispatcher_behind_a_wrong_password() -> None:
    async def scenario() -> None:
        served = Served()
        async with served.connected() as wire:
            guess = authenticate(plain(password="guess"), 1)
            wire.send(handshake(), guess, METADATA, METADATA)
            began = asyncio.get_running_loop().time()
            await frame(wire)
            refusal = SaslAuthenticateResponse.decode(1, (await frame(wire))[4:])
            waited = asyncio.get_running_loop().time() - began
            assert await wire.reader.read() == b""
        assert refusal.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert waited >= DELAY_MS / 1000 - 0.01
        assert served.dispatcher.frames == []
        assert served.client.principal == "User:ANONYMOUS"

    asyncio.run(scenario())


def test_a_client_that_leaves_during_the_delay_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        served = Served()
        async with served.connected() as wire:
            wire.send(METADATA)
            wire.writer.transport.abort()
            await served.settings.timers.sleep(2 * DELAY_MS)
        assert served.dispatcher.frames == []

    asyncio.run(scenario())


def test_large_frames_are_taken_only_of_known_clients() -> None:
    async def scenario() -> None:
        served = Served(max_frame_bytes=100)
        async with served.connected() as wire:
            wire.send(bytes(101))
            assert await wire.reader.read() == b""
        async with served.connected() as wire:
            await log_in(wire)
            wire.send(METADATA + bytes(10_000))
            assert await wire.reader.readexactly(len(ANSWER)) == ANSWER

    asyncio.run(scenario())


def test_a_session_that_has_ended_ends_the_connection() -> None:
    async def scenario() -> None:
        served = Served(max_reauth_ms=1000)
        async with served.connected() as wire:
            assert (await log_in(wire)).session_lifetime_ms == 1000
            served.clock.passed_ms += 1000
            wire.send(METADATA)
            assert await wire.reader.readexactly(len(ANSWER)) == ANSWER
            served.clock.passed_ms += 1
            wire.send(METADATA)
            assert await wire.reader.read() == b""
        assert served.dispatcher.frames == [METADATA]

    asyncio.run(scenario())


def test_a_client_that_authenticates_again_goes_on() -> None:
    async def scenario() -> None:
        served = Served(max_reauth_ms=1000)
        async with served.connected() as wire:
            await log_in(wire)
            for _ in range(3):
                served.clock.passed_ms += 1001
                assert (await log_in(wire)).session_lifetime_ms == 1000
                wire.send(METADATA)
                assert await wire.reader.readexactly(len(ANSWER)) == ANSWER
        assert served.dispatcher.frames == [METADATA] * 3

    asyncio.run(scenario())


def test_a_client_that_authenticates_again_and_fails_is_refused() -> None:
    async def scenario() -> None:
        served = Served(max_reauth_ms=1000)
        async with served.connected() as wire:
            await log_in(wire)
            wire.send(handshake(), authenticate(plain("bob", "bob-secret"), 1), METADATA)
            await frame(wire)
            refusal = SaslAuthenticateResponse.decode(1, (await frame(wire))[4:])
            assert await wire.reader.read() == b""
        assert refusal.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert served.dispatcher.frames == []

    asyncio.run(scenario())


def test_a_handshake_too_soon_after_another_is_an_ordinary_request() -> None:
    async def scenario() -> None:
        served = Served(max_reauth_ms=1000)
        async with served.connected() as wire:
            await log_in(wire)
            await log_in(wire)
            served.clock.passed_ms += 999
            wire.send(handshake())
            assert await wire.reader.readexactly(len(ANSWER)) == ANSWER
        assert served.dispatcher.frames == [handshake()]

    asyncio.run(scenario())


def test_a_handshake_on_a_session_without_end_is_an_ordinary_request() -> None:
    async def scenario() -> None:
        served = Served()
        async with served.connected() as wire:
            await log_in(wire)
            wire.send(handshake())
            assert await wire.reader.readexactly(len(ANSWER)) == ANSWER
        assert served.dispatcher.frames == [handshake()]

    asyncio.run(scenario())


@pytest.mark.parametrize("cut", [1, 3, 4, 5, SMALLEST_FRAME])
def test_frames_in_pieces_are_taken_whole(cut: int) -> None:
    async def scenario() -> None:
        served = Served()
        async with served.connected() as wire:
            frames = (handshake(), authenticate(plain()), METADATA)
            sent = b"".join(len(one).to_bytes(4, "big") + one for one in frames)
            for start in range(0, len(sent), cut):
                wire.writer.write(sent[start : start + cut])
                await wire.writer.drain()
                await served.settings.timers.sleep(0)
            await frame(wire)
            await frame(wire)
            assert await wire.reader.readexactly(len(ANSWER)) == ANSWER

    asyncio.run(scenario())


def test_versions_that_cannot_be_listed_at_once_are_not_waited_for() -> None:
    async def scenario() -> None:
        served = Served()
        served.dispatcher = ScriptedDispatcher(lambda _: Deferred())
        object.__setattr__(served.services, "dispatcher", served.dispatcher)
        async with served.connected() as wire:
            wire.send(api_versions(), handshake())
            assert await wire.reader.read() == b""
        assert served.dispatcher.frames == [api_versions()]

    asyncio.run(scenario())


def test_attempts_are_counted() -> None:
    async def scenario() -> None:
        served = Served(max_reauth_ms=1000)
        for _ in range(2):
            async with served.connected() as wire:
                wire.send(handshake(), authenticate(plain(password="guess"), 1))
                await wire.reader.read()
        async with served.connected() as wire:
            await log_in(wire)
            await log_in(wire)
            served.clock.passed_ms += 1001
            wire.send(METADATA)
            assert await wire.reader.read() == b""
        async with served.connected() as wire:
            await log_in(wire)
            wire.send(handshake(), authenticate(plain(password="guess"), 1))
            await wire.reader.read()
        counts = served.settings.counts
        assert (counts.first.succeeded, counts.first.failed) == (2, 2)
        assert (counts.again.succeeded, counts.again.failed) == (1, 1)
        assert counts.expired == 1

    asyncio.run(scenario())
