"""A change of a configuration is made to what others have left, or not at all."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest

from controller.brokers.dynamic_configs import (
    WRITE_ATTEMPTS,
    DynamicConfigs,
    alter_config,
    read_config,
)
from controller.brokers.registration import create_skeleton
from controller.metadata_store.store import Create, Delete, SetData, StoreError
from controller.znodes import CONFIG_CHANGES, config_path, encode_config
from tests.controller.breaking_store import BreakingStore
from tests.controller.memory_store import MemoryEnsemble
from tests.controller.zookeeper_stores import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controller.metadata_store.store import MetadataStore, Operation
    from controller.zookeeper.store import ZooKeeperStore
    from tests.support.brokers.zookeeper import ZooKeeperServer

PATH = config_path("topics", "orders")
CHANGES = 3
OTHERS = {"by": "others"}
WRITE = SetData(PATH, encode_config(OTHERS))
CREATE = Create(PATH, encode_config(OTHERS))


async def connected(ensemble: MemoryEnsemble) -> MetadataStore:
    store = ensemble.connect()
    await create_skeleton(store)
    return store


def interrupted_by(
    ensemble: MemoryEnsemble, *writes: Operation
) -> Callable[[Mapping[str, str]], Mapping[str, str]]:
    """Set `ours`; another writer does one of the writes each time before that is stored."""
    left = list(writes)

    def change(before: Mapping[str, str]) -> Mapping[str, str]:
        if left:
            ensemble.tree.apply([left.pop(0)], 99)
        return {**before, "ours": "1"}

    return change


def adding(key: str, before: Mapping[str, str]) -> Mapping[str, str]:
    return {**before, key: ""}


@pytest.mark.parametrize(
    ("present", "write", "outcome"),
    [
        ({"old": "1"}, WRITE, {**OTHERS, "ours": "1"}),
        (None, CREATE, {**OTHERS, "ours": "1"}),
        ({"old": "1"}, Delete(PATH), {"ours": "1"}),
    ],
)
def test_a_config_change_keeps_concurrent_changes(
    present: dict[str, str] | None, write: Operation, outcome: dict[str, str]
) -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        store = await connected(ensemble)
        if present is not None:
            await store.create(PATH, encode_config(present))
        await alter_config(store, "topics", "orders", interrupted_by(ensemble, write))
        assert await read_config(store, "topics", "orders") == outcome
        assert len(await store.children(CONFIG_CHANGES)) == 1, "one notification, of what was done"

    asyncio.run(scenario())


def test_a_change_that_another_writer_foils_each_time_is_refused() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        store = await connected(ensemble)
        await store.create(PATH, encode_config({}))
        with pytest.raises(StoreError, match="changed by others"):
            await alter_config(store, "topics", "orders", interrupted_by(ensemble, *[WRITE] * 100))
        assert await read_config(store, "topics", "orders") == OTHERS
        assert await store.children(CONFIG_CHANGES) == []

    asyncio.run(scenario())


def test_two_brokers_change_the_same_at_the_same_time() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        await create_skeleton(ensemble.connect())
        stores = [BreakingStore(ensemble) for _ in range(2)]
        for store in stores:
            store.turns_of_a_write = 3
        changes = (
            DynamicConfigs(store).alter("brokers", "<default>", partial(adding, str(number)))
            for number, store in enumerate(stores)
        )
        await asyncio.gather(*changes)
        assert await read_config(stores[0], "brokers", "<default>") == {"0": "", "1": ""}

    asyncio.run(scenario())


@pytest.mark.java
def test_two_brokers_change_the_same_in_zookeeper(zookeeper: ZooKeeperServer) -> None:
    """Each is foiled as often as the other writes, which is less often than it retries."""
    assert CHANGES < WRITE_ATTEMPTS

    async def change(store: ZooKeeperStore, broker_id: int) -> None:
        configs = DynamicConfigs(store)
        for number in range(CHANGES):
            await configs.alter("brokers", "<default>", partial(adding, f"{broker_id}.{number}"))

    async def scenario() -> None:
        stores = [await connect(zookeeper, "/configs") for _ in range(2)]
        await create_skeleton(stores[0])
        await asyncio.gather(*(change(store, number) for number, store in enumerate(stores)))
        stored = await read_config(stores[0], "brokers", "<default>")
        assert sorted(stored) == ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]
        for store in stores:
            await store.close()

    asyncio.run(scenario())
