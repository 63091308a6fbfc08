"""A ZooKeeper session after the loss of the server or the connection."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.client import KazooClient

from controller.metadata_store.store import (
    BadVersionError,
    Change,
    ChangeKind,
    Check,
    Create,
    MetadataStore,
    Operation,
    OutcomeUnknownError,
    SetData,
    StoreUnavailableError,
)
from controller.zookeeper.address import parse_address
from controller.zookeeper.store import RequestLimits, ZooKeeperStore
from tests.controller.zookeeper_stores import MAX_REQUEST_BYTES, connect, eventually
from tests.support.brokers.broker_process import free_port
from tests.support.brokers.zookeeper import LONGEST_SESSION_MS, SHORTEST_SESSION_MS, ZooKeeperServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.java


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """Return a running server that the test may stop."""
    one = ZooKeeperServer(tmp_path)
    one.start()
    yield one
    one.kill()


def _end_session_elsewhere(server: ZooKeeperServer, store: ZooKeeperStore) -> None:
    """Take the session over and close it, which is what its expiry looks like to its owner."""
    client = store._session._client
    thief = KazooClient(server.address, client_id=(client._session_id, client._session_passwd))
    thief.start()
    thief.stop()
    thief.close()


class _DeafAtFirst:
    """Takes connections to a port; never says a word on the first, and passes on all others."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.accepted: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()
        for one in self.accepted:
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.accepted.append(client)
                if len(self.accepted) > 1:
                    server = socket.create_connection(("127.0.0.1", self._target))
                    for way in ((client, server), (server, client)):
                        threading.Thread(target=_carry, args=way, daemon=True).start()


def _carry(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            sink.sendall(piece)


def test_a_server_that_never_answers_a_connection_is_asked_again_within_the_session(
    zookeeper: ZooKeeperServer,
) -> None:
    deaf = _DeafAtFirst(zookeeper.port)

    async def scenario() -> None:
        store = await ZooKeeperStore.connect(
            parse_address(f"127.0.0.1:{deaf.port}/deaf"),
            session_timeout_ms=LONGEST_SESSION_MS // 5,
            connection_timeout_ms=LONGEST_SESSION_MS // 10,
            limits=RequestLimits(10, MAX_REQUEST_BYTES),
        )
        await store.create("/here", None)
        assert len(deaf.accepted) == 2
        await store.close()

    try:
        asyncio.run(scenario())
    finally:
        deaf.close()


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "Too many open files"), ValueError("odd")])
def test_an_unforeseen_error_is_one_more_attempt_that_failed(
    zookeeper: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    look_up = socket.getaddrinfo
    failures = [error, error]

    def look_up_later(*args: Any) -> Any:
        if threading.current_thread() is not threading.main_thread() and failures:
            raise failures.pop()
        return look_up(*args)

    monkeypatch.setattr(socket, "getaddrinfo", look_up_later)

    async def scenario() -> None:
        store = await connect(zookeeper, "/unforeseen", LONGEST_SESSION_MS)
        assert await store.children("/") == []
        assert failures == []
        await store.close()

    asyncio.run(scenario())


def test_nodes_are_open_to_all_and_null_data_stay_null(zookeeper: ZooKeeperServer) -> None:
    async def write() -> None:
        store = await connect(zookeeper, "/nodes")
        await store.create("/empty", None)
        await store.multi([Create("/both", None), SetData("/both", b"x", 0)])
        assert (await store.get("/empty")).data is None
        assert await store.children("/") == ["both", "empty"]
        await store.close()

    asyncio.run(write())
    reader = KazooClient(zookeeper.address)
    reader.start()
    assert sorted(reader.get_children("/nodes")) == ["both", "empty"]
    data, stat = reader.get("/nodes/both")
    assert (data, stat.version, stat.ephemeralOwner) == (b"x", 1, 0)
    [acl] = reader.get_acls("/nodes/empty")[0]
    assert (acl.perms, acl.id.scheme, acl.id.id) == (31, "world", "anyone")
    reader.stop()
    reader.close()


def test_other_sessions_see_ephemeral_nodes_go(zookeeper: ZooKeeperServer) -> None:
    async def scenario() -> None:
        one, two = await connect(zookeeper, "/going"), await connect(zookeeper, "/going")
        await one.create("/mine", None, ephemeral=True)
        seen: list[Change] = []
        assert (await two.get("/mine", seen.append)).ephemeral_owner == one.session_id
        await one.close()
        await eventually(lambda: bool(seen))
        assert seen == [Change(ChangeKind.DELETED, "/mine")]
        assert await two.exists("/mine") is None
        await two.close()

    asyncio.run(scenario())


def test_writes_are_fenced_by_a_version(zookeeper: ZooKeeperServer) -> None:
    async def scenario() -> None:
        store = await connect(zookeeper, "/fence")
        await store.create("/epoch", b"1")
        check = Check("/epoch", 0)
        writes: list[list[Operation]] = [[check, Create(f"/{index}")] for index in range(50)]
        assert await store.multi_many(writes) == [[None, f"/{index}"] for index in range(50)]
        await store.set("/epoch", b"2")
        with pytest.raises(BadVersionError) as caught:
            await store.multi([check, Create("/late")])
        assert caught.value.operation == 0
        assert await store.exists("/late") is None
        await store.close()

    asyncio.run(scenario())


def test_writes_refused_while_the_server_is_unreachable_are_not_done_later(
    server: ZooKeeperServer,
) -> None:
    async def scenario() -> None:
        store = await connect(server, "", LONGEST_SESSION_MS)
        await store.create("/mine", None, ephemeral=True)
        session = store.session_id
        seen: list[Change] = []
        told: list[str] = []
        await store.exists("/a", seen.append)
        store.on_interruption(lambda: told.append("interrupted"))
        await asyncio.to_thread(server.stop)
        for _ in range(2):
            with pytest.raises(StoreUnavailableError):
                await store.create("/a", None)
        with pytest.raises(StoreUnavailableError):
            await store.get("/mine")
        assert seen == []
        await asyncio.to_thread(server.start)
        await eventually(lambda: bool(seen))
        assert seen == [Change(ChangeKind.SESSION, "/a")]
        assert await store.exists("/a") is None
        assert store.session_id == session
        assert (await store.get("/mine")).ephemeral_owner == session
        assert told == []
        await store.create("/a", None)
        await store.close()

    asyncio.run(scenario())


def test_short_absence_is_waited_out(server: ZooKeeperServer) -> None:
    async def scenario() -> None:
        store = await connect(server, "", LONGEST_SESSION_MS)
        await _drop_connection(store)
        assert await store.create("/a", None) == "/a"
        await store.close()

    asyncio.run(scenario())


async def _drop_connection(store: ZooKeeperStore) -> None:
    session = store._session
    session._client._connection._socket.shutdown(2)
    await eventually(lambda: not session.is_connected)


def test_write_under_way_when_the_server_dies_has_an_unknown_outcome(
    server: ZooKeeperServer,
) -> None:
    async def scenario() -> None:
        store = await connect(server, "", LONGEST_SESSION_MS)
        told: list[str] = []
        store.on_interruption(lambda: told.append("interrupted"))
        server.freeze()
        write = asyncio.gather(store.create("/a", None), return_exceptions=True)
        await eventually(lambda: store._session._in_flight == 1)
        server.kill()
        [outcome] = await write
        assert isinstance(outcome, OutcomeUnknownError)
        assert told == []
        await asyncio.to_thread(server.start)
        await eventually(lambda: bool(told))
        assert told == ["interrupted"]
        assert await store.exists("/a") is None
        await store.close()

    asyncio.run(scenario())


def test_a_lost_session_is_replaced_and_notified(server: ZooKeeperServer) -> None:
    async def scenario() -> None:
        store = await connect(server, "", LONGEST_SESSION_MS)
        await store.create("/mine", None, ephemeral=True)
        session = store.session_id
        heard: list[str] = []
        store.on_interruption(lambda: heard.append("interrupted"))
        await store.children("/", lambda change: heard.append(change.kind.value))
        await asyncio.to_thread(_end_session_elsewhere, server, store)
        await eventually(lambda: len(heard) == 2)
        assert heard in (["interrupted", "session"], ["children", "interrupted"])
        assert store.session_id not in (0, session)
        assert await store.exists("/mine") is None
        await _write_with_new_session(store)
        await store.close()

    asyncio.run(scenario())


async def _write_with_new_session(store: MetadataStore) -> None:
    await store.create("/again", None, ephemeral=True)
    assert (await store.get("/again")).ephemeral_owner == store.session_id


def test_an_unreachable_server_of_the_list_is_skipped(zookeeper: ZooKeeperServer) -> None:
    async def scenario() -> None:
        address = parse_address(f"127.0.0.1:{free_port()},{zookeeper.address}/passed/over")
        for _ in range(3):  # they are tried in any order
            store = await ZooKeeperStore.connect(
                address,
                session_timeout_ms=LONGEST_SESSION_MS,
                connection_timeout_ms=LONGEST_SESSION_MS,
                limits=RequestLimits(1, MAX_REQUEST_BYTES),
            )
            assert await store.children("/") == []
            await store.close()

    asyncio.run(scenario())


def test_a_connection_timeout_names_the_address() -> None:
    address = f"127.0.0.1:{free_port()}"

    async def scenario() -> None:
        await ZooKeeperStore.connect(
            parse_address(address),
            session_timeout_ms=SHORTEST_SESSION_MS,
            connection_timeout_ms=300,
            limits=RequestLimits(10, MAX_REQUEST_BYTES),
        )

    with pytest.raises(StoreUnavailableError, match=f"at {address} within 300 ms"):
        asyncio.run(scenario())
