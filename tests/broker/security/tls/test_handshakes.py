"""Handshakes that no honest client sends, many together, and what they leave behind."""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
from typing import TYPE_CHECKING

import pytest

from tests.broker.security.tls.tls_keys import config_of
from tests.broker.security.tls.tls_parties import Door, door, enter, server_keys, trusting
from tests.support.certificates import Authority

if TYPE_CHECKING:
    from pathlib import Path

STRANGERS = 200
AT_A_TIME = 20


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def client_hello(authority: Authority) -> bytes:
    outgoing = ssl.MemoryBIO()
    client = trusting(authority).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def drawn(hello: bytes, chance: random.Random) -> bytes:
    """A ClientHello with some bytes changed, left out or doubled, or nothing like one."""
    sent = bytearray(hello)
    for _ in range(chance.randrange(4)):
        place = chance.randrange(len(sent))
        sent[place] = chance.randrange(256)
    cut = chance.randrange(len(sent))
    return bytes(
        chance.choice((sent, sent[:cut], sent[:cut] + sent, sent + chance.randbytes(50), sent * 3))
    )


async def visit(opened: Door, sent: bytes) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", opened.port)
    writer.write(sent)
    guest = await opened.guests.get()
    with contextlib.suppress(ConnectionError):
        await writer.drain()
    writer.close()
    await guest.lost.wait()
    assert not guest.received


@pytest.mark.parametrize("auth", ["none", "required"])
def test_drawn_handshakes_leave_no_state_and_affect_no_other_client(
    authority: Authority, tmp_path: Path, auth: str
) -> None:
    chance = random.Random(20)
    hello = client_hello(authority)
    shown = authority.issue("alice", tmp_path)
    keys = server_keys(authority, tmp_path) | {"ssl.client.auth": auth}

    async def main() -> None:
        async with asyncio.timeout(200), door(config_of(keys)) as opened:
            reader, writer = await enter(opened, trusting(authority, shown))
            bystander = await opened.guests.get()
            bystander.is_echo = True
            for _ in range(STRANGERS // AT_A_TIME):
                visits = [visit(opened, drawn(hello, chance)) for _ in range(AT_A_TIME)]
                await asyncio.gather(*visits)
                writer.write(b"!")
                assert await reader.readexactly(1) == b"!"
            assert not opened.handshakes.are_under_way
            writer.close()
            await bystander.lost.wait()

    asyncio.run(main())


def test_honest_clients_come_in_together(authority: Authority, tmp_path: Path) -> None:
    async def main() -> None:
        config = config_of(server_keys(authority, tmp_path))
        async with asyncio.timeout(60), door(config, (60_000, 200)) as opened:
            context = trusting(authority)
            clients = await asyncio.gather(*(enter(opened, context) for _ in range(50)))
            for _ in clients:
                (await opened.guests.get()).is_echo = True
            for number, (_, writer) in enumerate(clients):
                writer.write(bytes([number]))
            for number, (reader, writer) in enumerate(clients):
                assert await reader.readexactly(1) == bytes([number])
                writer.close()

    asyncio.run(main())
