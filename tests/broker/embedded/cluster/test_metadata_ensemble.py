"""The metadata store of an embedded cluster: sessions end, and watches come on the right loop."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from broker.embedded.cluster.metadata_ensemble import EnsembleStore, MetadataEnsemble
from controller.metadata_store.store import (
    Change,
    ChangeKind,
    Delete,
    SessionExpiredError,
    StoreUnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 20))


def test_ending_a_session_deletes_its_nodes_and_fires_watches() -> None:
    async def test() -> None:
        ensemble = MetadataEnsemble(2.0)
        one, other = EnsembleStore(ensemble, 0), EnsembleStore(ensemble, 1)
        await one.create("/controller", b"0", ephemeral=True)
        told: asyncio.Future[Change] = asyncio.get_running_loop().create_future()
        await other.exists("/controller", told.set_result)

        one.end()

        assert await told == Change(ChangeKind.DELETED, "/controller")
        with pytest.raises(SessionExpiredError):
            await one.create("/too-late", None)
        await other.close()

    run(test())


def test_an_unreachable_session_expires_and_a_new_one_begins() -> None:
    async def test() -> None:
        ensemble = MetadataEnsemble(0.3)
        one, other = EnsembleStore(ensemble, 0), EnsembleStore(ensemble, 1)
        first = one.session_id
        await one.create("/brokers", b"0", ephemeral=True)
        interrupted = asyncio.Event()
        one.on_interruption(interrupted.set)
        gone = asyncio.Event()
        await other.exists("/brokers", lambda _: gone.set())

        ensemble.unreachable.add(0)
        with pytest.raises(StoreUnavailableError):
            await one.get("/brokers")
        await gone.wait()
        with pytest.raises(StoreUnavailableError):  # it cannot know yet
            await one.get("/brokers")
        ensemble.unreachable.clear()

        await interrupted.wait()
        assert one.session_id != first
        await one.wait_until_reachable()
        await one.create("/brokers", b"0", ephemeral=True)
        await one.close()
        await other.close()

    run(test())


def test_a_watch_fires_on_the_event_loop_that_set_it() -> None:
    ensemble = MetadataEnsemble(5.0)
    ready, threads = threading.Event(), []

    async def watching() -> None:
        store = EnsembleStore(ensemble, 0)
        seen: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def told(_: Change) -> None:
            threads.append(threading.current_thread())
            seen.set_result(None)

        await store.exists("/topics", told)
        ready.set()
        await seen
        await store.close()

    async def writing() -> None:
        store = EnsembleStore(ensemble, 1)
        await asyncio.get_running_loop().run_in_executor(None, ready.wait)
        await store.create("/topics", b"")
        await store.multi([Delete("/topics")])
        await store.close()

    other = threading.Thread(target=run, args=(watching(),))
    other.start()
    run(writing())
    other.join(20)
    assert threads == [other]
