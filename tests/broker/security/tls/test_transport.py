"""TLS between a socket and a protocol, against asyncio's own TLS at the other end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ssl
import weakref
from typing import TYPE_CHECKING

import pytest

from tests.broker.security.tls.tls_keys import config_of
from tests.broker.security.tls.tls_parties import Door, door, enter, server_keys, trusting
from tests.support.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from config.broker import BrokerConfig

LONG = bytes(range(256)) * 12_000
"""Three megabytes: many records, more than any buffer."""


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def config(authority: Authority, tmp_path: Path) -> BrokerConfig:
    return config_of(server_keys(authority, tmp_path))


def run(
    config: BrokerConfig,
    scenario: Callable[[Door], Awaitable[None]],
    limits: tuple[int, int] = (60_000, 100),
) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), door(config, limits) as opened:
            await scenario(opened)

    asyncio.run(main())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("buffer_bytes", [7000, 128 * 1024])
def test_all_bytes_go_both_ways(
    authority: Authority, config: BrokerConfig, version: ssl.TLSVersion, buffer_bytes: int
) -> None:
    async def scenario(opened: Door) -> None:
        opened.next_buffer_bytes = buffer_bytes
        context = trusting(authority)
        context.minimum_version = context.maximum_version = version
        reader, writer = await enter(opened, context)
        guest = await opened.guests.get()
        guest.is_echo = True
        writer.write(LONG)

        assert await reader.readexactly(len(LONG)) == LONG
        assert guest.received == LONG
        writer.close()
        await guest.lost.wait()

    run(config, scenario)


def test_a_protocol_that_reads_nothing_is_given_nothing(
    authority: Authority, config: BrokerConfig
) -> None:
    async def scenario(opened: Door) -> None:
        _, writer = await enter(opened, trusting(authority))
        guest = await opened.guests.get()
        assert guest.transport is not None
        guest.transport.pause_reading()
        writer.write(LONG)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(writer.drain(), 0.2)
        assert not guest.received
        assert not guest.transport.is_reading()

        guest.transport.resume_reading()

        while len(guest.received) < len(LONG):
            guest.progress.clear()
            await guest.progress.wait()
        assert guest.received == LONG
        writer.close()
        await guest.lost.wait()

    run(config, scenario)


def test_a_pause_from_within_a_delivery_holds(authority: Authority, config: BrokerConfig) -> None:
    async def scenario(opened: Door) -> None:
        _, writer = await enter(opened, trusting(authority))
        guest = await opened.guests.get()
        transport = guest.transport
        assert transport is not None
        deliver = guest.buffer_updated

        def deliver_and_pause(nbytes: int) -> None:
            deliver(nbytes)
            transport.pause_reading()

        guest.buffer_updated = deliver_and_pause  # type: ignore[method-assign]
        writer.write(bytes(20_000))
        seen = 0
        while seen < 20_000:
            guest.progress.clear()
            transport.resume_reading()
            await guest.progress.wait()
            assert 0 < len(guest.received) - seen <= 4096
            seen = len(guest.received)
        writer.close()
        transport.resume_reading()
        await guest.lost.wait()

    run(config, scenario)


def test_close_sends_a_tls_close_notify(authority: Authority, config: BrokerConfig) -> None:
    async def scenario(opened: Door) -> None:
        reader, writer = await enter(opened, trusting(authority))
        guest = await opened.guests.get()
        assert guest.transport is not None
        writer.write(b"?")
        await guest.progress.wait()
        guest.transport.write(b"farewell")
        guest.transport.close()
        assert guest.transport.is_closing()

        assert await reader.read() == b"farewell", "a cut connection would be an error"
        writer.close()
        await guest.lost.wait()

    run(config, scenario)


def test_the_clients_end_of_stream_is_reported_once(
    authority: Authority, config: BrokerConfig
) -> None:
    async def scenario(opened: Door) -> None:
        _, writer = await enter(opened, trusting(authority))
        guest = await opened.guests.get()
        writer.write(b"last words")
        writer.close()

        await guest.ended.wait()
        await guest.lost.wait()
        assert guest.received == b"last words"

    run(config, scenario)


def test_a_client_without_tls_is_named_by_its_protocol(config: BrokerConfig) -> None:
    async def scenario(opened: Door) -> None:
        for sent, expected in (
            (b"\0\0\0\x10\0\x12\0\3", "the client does not speak TLS"),
            (b"GET / HTTP/1.1\r\n\r\n", "the client speaks HTTP"),
        ):
            _, writer = await asyncio.open_connection("127.0.0.1", opened.port)
            writer.write(sent)
            guest = await opened.guests.get()
            await guest.lost.wait()
            assert guest.reason is not None
            assert expected in guest.reason
            writer.close()

    run(config, scenario)


def test_a_client_that_is_silent_is_hung_up_on(config: BrokerConfig) -> None:
    async def scenario(opened: Door) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", opened.port)
        assert await reader.read() == b""
        guest = await opened.guests.get()
        assert guest.reason == (
            "its TLS handshake did not end in time (ssl.handshake.timeout.ms=50)"
        )
        writer.close()

    run(config, scenario, (50, 100))


def test_clients_silent_in_the_handshake_evict_only_each_other(
    authority: Authority, config: BrokerConfig
) -> None:
    async def scenario(opened: Door) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", opened.port) for _ in range(3)]
        reader, writer = await enter(opened, trusting(authority))
        first = await opened.guests.get()
        await first.lost.wait()

        assert first.reason is not None
        assert "max.ssl.handshakes=2" in first.reason
        for _ in range(2):
            await opened.guests.get()
        (await opened.guests.get()).is_echo = True
        writer.write(b"!")
        assert await reader.readexactly(1) == b"!"
        for _, other in (*silent, (reader, writer)):
            other.close()

    run(config, scenario, (60_000, 2))


def test_a_client_that_leaves_within_the_handshake_leaves_nothing(config: BrokerConfig) -> None:
    async def scenario(opened: Door) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", opened.port)
        writer.write(b"\x16\x03\x01\x02\0\1")
        guest = await opened.guests.get()
        writer.close()
        await guest.lost.wait()

        assert guest.reason is None
        assert not opened.handshakes.are_under_way

    run(config, scenario)


def test_bytes_sent_right_behind_the_handshake_are_not_lost(
    authority: Authority, config: BrokerConfig
) -> None:
    """Some clients do not wait: their first record comes with the end of the handshake."""

    async def scenario(opened: Door) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = trusting(authority).wrap_bio(incoming, outgoing, server_hostname="localhost")
        reader, writer = await asyncio.open_connection("127.0.0.1", opened.port)
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                incoming.write(await reader.read(65_536))
        client.write(b"at once")
        writer.write(outgoing.read())

        guest = await opened.guests.get()
        await guest.progress.wait()
        assert guest.received == b"at once"
        writer.close()
        await guest.lost.wait()

    run(config, scenario)


def test_damaged_records_end_the_connection_and_no_other(
    authority: Authority, config: BrokerConfig
) -> None:
    async def scenario(opened: Door) -> None:
        reader, writer = await enter(opened, trusting(authority))
        (await opened.guests.get()).is_echo = True
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = trusting(authority).wrap_bio(incoming, outgoing, server_hostname="localhost")
        other_reader, other = await asyncio.open_connection("127.0.0.1", opened.port)
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                other.write(outgoing.read())
                incoming.write(await other_reader.read(65_536))
        other.write(outgoing.read())
        other.write(b"\x17\x03\x03\0\x20" + bytes(32))

        guest = await opened.guests.get()
        await guest.lost.wait()
        assert not guest.received
        writer.write(b"!")
        assert await reader.readexactly(1) == b"!"
        writer.close()
        other.close()

    run(config, scenario)


def test_nothing_is_left_of_a_closed_connection(authority: Authority, config: BrokerConfig) -> None:
    """No cycle is left to collect: a thousand handshakes a second would be garbage otherwise."""

    async def scenario(opened: Door) -> None:
        _, writer = await enter(opened, trusting(authority))
        guest = await opened.guests.get()
        writer.write(b"?")
        await guest.progress.wait()
        assert guest.transport is not None
        below = weakref.ref(guest.transport)
        writer.close()
        await guest.lost.wait()
        await asyncio.get_running_loop().run_in_executor(None, lambda: None)
        guest.transport = None

        assert below() is None

    gc.collect()
    gc.disable()
    try:
        run(config, scenario)
    finally:
        gc.enable()
