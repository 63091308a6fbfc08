"""Sessions that log in, and that are made over TLS."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, NoAuthError
from kazoo.protocol.connection import ConnectionDropped

from controller.metadata_store.store import StoreUnavailableError
from controller.zookeeper.address import parse_address
from controller.zookeeper.security import DigestLogin, ZooKeeperSecurity
from controller.zookeeper.store import RequestLimits, ZooKeeperStore
from tests.controller.zookeeper_stores import (
    CONNECTION_TIMEOUT_MS,
    MAX_REQUEST_BYTES,
    eventually,
)
from tests.support.brokers.secured_zookeeper import TlsZooKeeper, sasl_zookeeper
from tests.support.brokers.zookeeper import LONGEST_SESSION_MS
from tests.support.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.zookeeper import ZooKeeperServer
    from tests.support.certificates import Issued

pytestmark = pytest.mark.java

USER = DigestLogin("kafka", "secret, with = and \\ in it")
FAILING_MS = 15_000
"""Long enough for several attempts, on a machine that is busy."""


@pytest.fixture(scope="module")
def with_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """Return a server that knows one user."""
    password = USER.password.replace("\\", "\\\\")
    server = sasl_zookeeper(tmp_path_factory.mktemp("sasl"), {USER.username: password})
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def authority() -> Authority:
    """Return who issues the certificates of server and clients."""
    return Authority()


@pytest.fixture(scope="module")
def issued(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Issued:
    """Return the certificate that both sides show."""
    return authority.issue("broker", tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def with_tls(
    authority: Authority, issued: Issued, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TlsZooKeeper]:
    """Return a server that asks for certificates."""
    server = TlsZooKeeper(tmp_path_factory.mktemp("tls"), issued, authority)
    server.start()
    yield server
    server.kill()


async def _connect(
    address: str, security: ZooKeeperSecurity, timeout_ms: int = CONNECTION_TIMEOUT_MS
) -> ZooKeeperStore:
    return await ZooKeeperStore.connect(
        parse_address(address),
        session_timeout_ms=LONGEST_SESSION_MS,
        connection_timeout_ms=timeout_ms,
        limits=RequestLimits(10, MAX_REQUEST_BYTES),
        security=security,
    )


def _context(issued: Issued | None, authority: Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.pem())
    if issued is not None:
        context.load_cert_chain(issued.chain_file(), issued.key_file())
    return context


def _access_lists(
    server: ZooKeeperServer, *paths: str, login: DigestLogin | None = None
) -> list[list[tuple[int, str, str]]]:
    sasl = (
        {"mechanism": "DIGEST-MD5", "username": login.username, "password": login.password}
        if login
        else None
    )
    reader = KazooClient(server.address, sasl_options=sasl)
    reader.start()
    try:
        return [
            [(acl.perms, acl.id.scheme, acl.id.id) for acl in reader.get_acls(path)[0]]
            for path in paths
        ]
    finally:
        reader.stop()
        reader.close()


def test_znodes_belong_to_the_user_that_logged_in(with_users: ZooKeeperServer) -> None:
    async def scenario() -> None:
        security = ZooKeeperSecurity(login=USER, sets_acl=True)
        store = await _connect(f"{with_users.address}/of/kafka", security)
        await store.create("/brokers", None)
        await store.create("/config", None)
        await store.create("/config/users", b"secret")
        assert (await store.get("/config/users")).data == b"secret"
        await store.close()

    asyncio.run(scenario())
    paths = ("/of/kafka", "/of/kafka/brokers", "/of/kafka/config/users")
    found = _access_lists(with_users, *paths, login=USER)
    owner, readers = (31, "sasl", "kafka"), (1, "world", "anyone")
    assert found == [[owner, readers], [owner, readers], [owner]]
    stranger = KazooClient(with_users.address)
    stranger.start()
    with pytest.raises(NoAuthError):
        stranger.get("/of/kafka/config/users")
    stranger.stop()
    stranger.close()


def test_a_write_to_anothers_znodes_is_refused_by_name(with_users: ZooKeeperServer) -> None:
    async def scenario() -> None:
        owner = await _connect(
            f"{with_users.address}/owned", ZooKeeperSecurity(login=USER, sets_acl=True)
        )
        stranger = await _connect(f"{with_users.address}/owned", ZooKeeperSecurity())
        with pytest.raises(StoreUnavailableError, match="belongs to somebody else"):
            await stranger.create("/mine", None)
        await stranger.close()
        await owner.close()

    asyncio.run(scenario())


def test_znodes_cannot_be_made_for_a_session_without_identity(with_users: ZooKeeperServer) -> None:
    async def scenario() -> None:
        store = await _connect(with_users.address, ZooKeeperSecurity(sets_acl=True))
        with pytest.raises(StoreUnavailableError, match="does not know who this broker is"):
            await store.create("/mine", None)
        await store.close()

    asyncio.run(scenario())


def test_a_wrong_password_is_logged_once_without_the_password(
    with_users: ZooKeeperServer, caplog: pytest.LogCaptureFixture
) -> None:
    security = ZooKeeperSecurity(login=DigestLogin("kafka", "guessed"))

    async def scenario() -> None:
        await _connect(with_users.address, security, FAILING_MS)

    with (
        caplog.at_level(logging.INFO),
        pytest.raises(StoreUnavailableError, match="SASL authentication failed for 'kafka'"),
    ):
        asyncio.run(scenario())
    assert caplog.text.count("SASL authentication failed") == 1
    assert "guessed" not in caplog.text


def test_session_outlives_a_connection_that_breaks_while_it_logs_in(
    with_users: ZooKeeperServer,
) -> None:
    async def scenario() -> None:
        store = await _connect(with_users.address, ZooKeeperSecurity(login=USER))
        await store.create("/logged-in", None, ephemeral=True)
        session, connection = store.session_id, store._session._client._connection
        log_in, failures = connection._authenticate_with_sasl, ["first", "second"]

        def break_first(host: str, timeout: float) -> None:
            if failures:
                error = AuthFailedError(failures.pop())
                raise ConnectionDropped("SASL did not succeed") from error
            log_in(host, timeout)

        connection._authenticate_with_sasl = break_first
        connection._socket.shutdown(2)
        await eventually(lambda: not failures and store._session.is_connected)
        assert store.session_id == session
        assert (await store.get("/logged-in")).ephemeral_owner == session
        await store.close()

    asyncio.run(scenario())


def test_certificate_is_an_identity(
    with_tls: TlsZooKeeper, issued: Issued, authority: Authority
) -> None:
    async def scenario() -> None:
        security = ZooKeeperSecurity(tls=_context(issued, authority), sets_acl=True)
        store = await _connect(f"{with_tls.secure_address}/tls", security)
        assert await asyncio.gather(
            *(store.create(f"/{number}", b"x" * 1000) for number in range(100))
        ) == [f"/{number}" for number in range(100)]
        assert len(await store.get_many([f"/{number}" for number in range(100)])) == 100
        await store.close()

    asyncio.run(scenario())
    assert _access_lists(with_tls, "/tls/0") == [
        [(31, "x509", "CN=broker"), (1, "world", "anyone")]
    ]


def _refused(address: str, security: ZooKeeperSecurity, caplog: pytest.LogCaptureFixture) -> str:
    """Return the log line of the first failure."""

    async def scenario() -> None:
        async with asyncio.TaskGroup() as tasks:
            connecting = tasks.create_task(_connect(address, security, LONGEST_SESSION_MS))
            await eventually(lambda: bool(caplog.messages))
            connecting.cancel()

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())
    return caplog.messages[0]


def test_a_server_of_another_authority_is_refused_with_a_reason(
    with_tls: TlsZooKeeper, issued: Issued, caplog: pytest.LogCaptureFixture
) -> None:
    security = ZooKeeperSecurity(tls=_context(issued, Authority("Another")))
    assert "its certificate is refused" in _refused(with_tls.secure_address, security, caplog)


def test_server_of_another_name_is_refused(
    with_tls: TlsZooKeeper, issued: Issued, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    security = ZooKeeperSecurity(tls=_context(issued, authority))
    address = f"127.0.0.2:{with_tls.secure_port}"
    reason = _refused(address, security, caplog)
    assert "is not valid for '127.0.0.2'" in reason


def test_a_missing_client_certificate_is_reported_as_by_the_server(
    with_tls: TlsZooKeeper, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    reason = _refused(
        with_tls.secure_address, ZooKeeperSecurity(tls=_context(None, authority)), caplog
    )
    assert "TLS handshake failed" in reason


def test_a_zookeeper_port_without_tls_is_named_in_the_error(
    with_tls: TlsZooKeeper, issued: Issued, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    security: Any = ZooKeeperSecurity(tls=_context(issued, authority))
    reason = _refused(f"localhost:{with_tls.port}", security, caplog)
    assert "is this ZooKeeper's secureClientPort?" in reason
