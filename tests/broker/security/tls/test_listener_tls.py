"""A client's principal by its certificate, and certificates that are refused."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import TYPE_CHECKING

import pytest

from tests.broker.security.tls.tls_keys import config_of
from tests.broker.security.tls.tls_parties import Door, door, enter, server_keys, trusting
from tests.support.certificates import EXPIRED, Authority

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.broker.security.tls.tls_parties import Guest


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def run(keys: dict[str, str], scenario: Callable[[Door], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), door(config_of(keys)) as opened:
            await scenario(opened)

    asyncio.run(main())


async def visit(opened: Door, context: ssl.SSLContext) -> Guest:
    """Come in and go again."""
    reader, writer = await enter(opened, context)
    guest = await opened.guests.get()
    guest.is_echo = True
    writer.write(b"!")
    assert await reader.readexactly(1) == b"!"
    writer.close()
    await guest.lost.wait()
    return guest


async def refused(opened: Door, context: ssl.SSLContext) -> str:
    """Check that the client is refused; with TLS 1.3 it learns that only when it reads."""
    try:
        reader, writer = await enter(opened, context)
        writer.write(b"!")
        assert await reader.read() == b""
        writer.close()
    except (ssl.SSLError, ConnectionError):
        pass
    guest = await opened.guests.get()
    await guest.lost.wait()
    assert not guest.received
    return guest.reason or ""


@pytest.mark.parametrize("auth", ["requested", "required"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_is_whom_its_certificate_names(
    authority: Authority, tmp_path: Path, auth: str, version: ssl.TLSVersion
) -> None:
    async def scenario(opened: Door) -> None:
        context = trusting(authority, authority.issue("alice", tmp_path))
        context.maximum_version = version
        assert (await visit(opened, context)).principal == "User:CN=alice"

    run(server_keys(authority, tmp_path) | {"ssl.client.auth": auth}, scenario)


def test_a_resumed_session_is_still_whom_its_certificate_names(
    authority: Authority, tmp_path: Path
) -> None:
    def resumed(port: int, context: ssl.SSLContext) -> list[bool]:
        session, seen = None, []
        for _ in range(2):
            raw = socket.create_connection(("127.0.0.1", port))
            with context.wrap_socket(raw, server_hostname="localhost", session=session) as client:
                client.sendall(b"!")
                assert client.recv(1) == b"!"
                seen.append(bool(client.session_reused))
                session = client.session
        return seen

    async def scenario(opened: Door) -> None:
        context = trusting(authority, authority.issue("alice", tmp_path))
        visits = asyncio.create_task(  # noqa: TID251 - awaited below
            asyncio.to_thread(resumed, opened.port, context)
        )
        for _ in range(2):
            guest = await opened.guests.get()
            guest.is_echo = True
            await guest.lost.wait()
            assert guest.principal == "User:CN=alice"
        assert await visits == [False, True]

    run(server_keys(authority, tmp_path) | {"ssl.client.auth": "required"}, scenario)


@pytest.mark.parametrize("auth", ["none", "requested"])
def test_a_client_without_a_certificate_is_anonymous(
    authority: Authority, tmp_path: Path, auth: str
) -> None:
    async def scenario(opened: Door) -> None:
        assert (await visit(opened, trusting(authority))).principal is None

    run(server_keys(authority, tmp_path) | {"ssl.client.auth": auth}, scenario)


def test_a_client_without_the_certificate_that_is_required_is_refused(
    authority: Authority, tmp_path: Path
) -> None:
    async def scenario(opened: Door) -> None:
        reason = await refused(opened, trusting(authority))
        assert "the client shows no certificate, and ssl.client.auth=required" in reason

    run(server_keys(authority, tmp_path) | {"ssl.client.auth": "required"}, scenario)


@pytest.mark.parametrize("auth", ["requested", "required"])
def test_foreign_and_expired_certificates_are_refused(
    authority: Authority, tmp_path: Path, auth: str
) -> None:
    foreign = Authority("Somebody Else").issue("mallory", tmp_path)
    expired = authority.issue("bob", tmp_path, valid=EXPIRED)

    async def scenario(opened: Door) -> None:
        assert "certificate" in await refused(opened, trusting(authority, foreign))
        reason = await refused(opened, trusting(authority, expired))
        assert reason == "TLS: the peer's certificate is refused: certificate has expired"

    run(server_keys(authority, tmp_path) | {"ssl.client.auth": auth}, scenario)


def test_mapping_rules_name_the_principal_or_refuse_the_client(
    authority: Authority, tmp_path: Path
) -> None:
    async def scenario(opened: Door) -> None:
        alice = trusting(authority, authority.issue("Alice", tmp_path))
        assert (await visit(opened, alice)).principal == "User:alice"
        nobody = trusting(authority, authority.issue("42", tmp_path))
        await refused(opened, nobody)

    rules = {"ssl.principal.mapping.rules": "RULE:^CN=([A-Za-z]+)$/$1/L"}
    run(server_keys(authority, tmp_path) | {"ssl.client.auth": "required"} | rules, scenario)


def test_a_client_that_does_not_trust_the_broker_is_logged(
    authority: Authority, tmp_path: Path
) -> None:
    """Tested by a socket: asyncio's TLS hangs up without a reason."""

    def come(port: int) -> None:
        raw = socket.create_connection(("127.0.0.1", port))
        with pytest.raises(ssl.SSLCertVerificationError):
            trusting(Authority("Somebody Else")).wrap_socket(raw, server_hostname="localhost")
        raw.close()

    async def scenario(opened: Door) -> None:
        await asyncio.to_thread(come, opened.port)
        guest = await opened.guests.get()
        await guest.lost.wait()
        assert guest.reason is not None
        assert "the peer does not trust this broker's certificate" in guest.reason

    run(server_keys(authority, tmp_path), scenario)


def test_versions_that_are_not_enabled_are_refused(authority: Authority, tmp_path: Path) -> None:
    async def scenario(opened: Door) -> None:
        context = trusting(authority)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        assert "ssl.enabled.protocols" in await refused(opened, context)

    async def only_older(opened: Door) -> None:
        assert (await visit(opened, trusting(authority))).principal is None

    keys = config_keys = server_keys(authority, tmp_path)
    asyncio.run(_with(config_of(keys, ssl_enabled_protocols=("TLSv1.3",)), scenario))
    asyncio.run(_with(config_of(config_keys, ssl_enabled_protocols=("TLSv1.2",)), only_older))


async def _with(config: object, scenario: Callable[[Door], Awaitable[None]]) -> None:
    async with asyncio.timeout(60), door(config) as opened:  # type: ignore[arg-type]
        await scenario(opened)
