"""The contract of metadata stores, tried on all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

import pytest

from controller.metadata_store.embedded_store import EmbeddedStore
from controller.metadata_store.store import (
    BadVersionError,
    Change,
    ChangeKind,
    Check,
    Create,
    Delete,
    EphemeralParentError,
    MetadataStore,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    SessionExpiredError,
    SetData,
    StoreError,
    Znode,
)
from tests.controller.harness import turns
from tests.controller.memory_store import MemoryEnsemble
from tests.controller.volatile_files import VolatileFiles
from tests.controller.zookeeper_stores import connect, eventually

Open = Callable[[], Awaitable[MetadataStore]]

_roots = count()


async def _open_memory() -> MetadataStore:
    return MemoryEnsemble().connect()


async def _open_embedded() -> MetadataStore:
    return await EmbeddedStore.open(VolatileFiles())


def _zookeeper_opener(request: pytest.FixtureRequest) -> Open:
    server = request.getfixturevalue("zookeeper")
    root = f"/{next(_roots)}"

    async def open_zookeeper() -> MetadataStore:
        return await connect(server, root)

    return open_zookeeper


@pytest.fixture(params=["memory", "embedded", pytest.param("zookeeper", marks=pytest.mark.java)])
def open_store(request: pytest.FixtureRequest) -> Open:
    if request.param == "zookeeper":
        return _zookeeper_opener(request)
    return _open_memory if request.param == "memory" else _open_embedded


def _run(open_store: Open, scenario: Callable[[MetadataStore], Awaitable[None]]) -> None:
    async def main() -> None:
        store = await open_store()
        await scenario(store)
        await store.close()

    asyncio.run(main())


def test_node_starts_at_version_0_and_each_write_adds_one(open_store: Open) -> None:
    async def scenario(store: MetadataStore) -> None:
        await store.create("/a", b"one")
        first = await store.get("/a")
        assert (first.data, first.version) == (b"one", 0)
        second = await store.set("/a", b"two")
        assert (second.data, second.version, second.czxid) == (b"two", 1, first.czxid)
        assert second.mzxid > first.mzxid
        assert await store.get("/a") == second

    _run(open_store, scenario)


def test_conditional_write_and_delete_need_the_exact_version(open_store: Open) -> None:
    async def scenario(store: MetadataStore) -> None:
        await store.create("/a", None)
        await store.set("/a", b"x", 0)
        with pytest.raises(BadVersionError):
            await store.set("/a", b"y", 0)
        with pytest.raises(BadVersionError):
            await store.delete("/a", 0)
        await store.delete("/a", 1)
        assert await store.exists("/a") is None

    _run(open_store, scenario)


def test_parents_must_exist_and_children_go_first(open_store: Open) -> None:
    async def scenario(store: MetadataStore) -> None:
        with pytest.raises(NoNodeError):
            await store.create("/a/b", None)
        await store.create("/a", None)
        await store.create("/a/b", None)
        with pytest.raises(NodeExistsError):
            await store.create("/a/b", None)
        with pytest.raises(NotEmptyError):
            await store.delete("/a")
        await store.create("/a/e", None, ephemeral=True)
        with pytest.raises(EphemeralParentError):
            await store.create("/a/e/x", None)
        assert await store.children("/a") == ["b", "e"]

    _run(open_store, scenario)


def test_multi_does_all_or_nothing_and_names_the_culprit(open_store: Open) -> None:
    async def scenario(store: MetadataStore) -> None:
        await store.create("/a", b"old")
        with pytest.raises(BadVersionError) as caught:
            await store.multi([Create("/b"), SetData("/a", b"new"), Check("/a", 7), Delete("/a")])
        assert caught.value.operation == 2
        assert (await store.get("/a")).data == b"old"
        assert await store.exists("/b") is None
        assert await store.children("/") == ["a"]
        results = await store.multi([Check("/a", 0), Create("/b"), Delete("/a")])
        assert results == [None, "/b", None]

    _run(open_store, scenario)


def test_multi_many_goes_on_after_a_refusal(open_store: Open) -> None:
    async def scenario(store: MetadataStore) -> None:
        outcomes = await store.multi_many([[Create("/a")], [Create("/a")], [Create("/b")]])
        assert [isinstance(outcome, StoreError) for outcome in outcomes] == [False, True, False]
        assert [node is not None for node in await store.get_many(["/a", "/b", "/c"])] == [
            True,
            True,
            False,
        ]

    _run(open_store, scenario)


def test_a_node_is_deleted_and_recreated_in_one_transaction(open_store: Open) -> None:
    async def scenario(store: MetadataStore) -> None:
        await store.create("/a", b"old", ephemeral=True)
        old = await store.set("/a", b"older")
        made: list[Operation] = [Create("/a", None, ephemeral=True), SetData("/a", b"x")]
        node = (await store.multi([Delete("/a", old.version), *made]))[-1]
        assert node == await store.get("/a")
        assert isinstance(node, Znode)
        assert (node.data, node.version) == (b"x", 1)
        assert node.ephemeral_owner == store.session_id
        assert node.czxid > old.czxid
        with pytest.raises(NoNodeError):
            await store.multi([Delete("/b", 1), *made])
        assert await store.get("/a") == node

    _run(open_store, scenario)


def test_sequence_numbers_never_repeat(open_store: Open) -> None:
    async def scenario(store: MetadataStore) -> None:
        await store.create("/q", None)
        assert await store.create("/q/n_", None, sequence=True) == "/q/n_0000000000"
        await store.delete("/q/n_0000000000")
        assert await store.create("/q/n_", None, sequence=True) == "/q/n_0000000001"

    _run(open_store, scenario)


def test_watches_fire_once_after_the_change(open_store: Open) -> None:
    async def scenario(store: MetadataStore) -> None:
        seen: list[Change] = []
        await store.exists("/a", seen.append)
        await store.children("/", seen.append)
        await store.create("/a", None)
        await eventually(lambda: len(seen) >= 2)
        assert set(seen) == {Change(ChangeKind.CREATED, "/a"), Change(ChangeKind.CHILDREN, "/")}
        await store.set("/a", b"x")
        await store.get("/a", seen.append)
        await store.set("/a", b"y")
        await store.set("/a", b"z")
        await eventually(lambda: len(seen) >= 3)
        assert seen[2:] == [Change(ChangeKind.CHANGED, "/a")]
        await store.get("/a", seen.append)
        await store.delete("/a")
        await eventually(lambda: len(seen) >= 4)
        assert seen[3:] == [Change(ChangeKind.DELETED, "/a")]

    _run(open_store, scenario)


def test_closed_session_writes_no_more(open_store: Open) -> None:
    async def scenario(store: MetadataStore) -> None:
        await store.close()
        with pytest.raises(SessionExpiredError):
            await store.create("/a", None)

    _run(open_store, scenario)


def test_ephemeral_nodes_go_with_their_session() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        one, two = ensemble.connect(), ensemble.connect()
        await one.create("/mine", None, ephemeral=True)
        seen: list[Change] = []
        assert (await two.get("/mine", seen.append)).ephemeral_owner == one.session_id
        one.expire()
        await turns(2)
        assert await two.exists("/mine") is None
        assert seen == [Change(ChangeKind.DELETED, "/mine")]

    asyncio.run(scenario())
