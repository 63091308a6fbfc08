"""Clients of another protocol at a Kafka port are named in the log."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.broker.connections import ScriptedDispatcher, connected, echo

CLIENT_HELLO = bytes.fromhex("16030102000100 01fc0303")


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (CLIENT_HELLO, "the client speaks TLS, this listener does not"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "the client speaks HTTP"),
        (b"OPTIONS * HTTP/1.1\r\n\r\n", "the client speaks HTTP"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "the client speaks HTTP"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "the client speaks SSH"),
        (b"\x7f\xff\xff\xff", "frame of 2147483647 bytes (socket.request.max.bytes=1000000)"),
    ],
)
def test_a_client_of_another_protocol_is_named(
    sent: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with connected(ScriptedDispatcher(echo)) as wire:
            wire.writer.write(sent)
            with contextlib.suppress(ConnectionResetError):
                assert await wire.reader.read() == b""

    asyncio.run(scenario())

    [line] = caplog.messages
    assert f": connection closed: {said}" in line
