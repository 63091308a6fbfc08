"""Configurations of users, client ids and addresses: one transaction each, nothing left behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from controller.brokers.dynamic_configs import DynamicConfigs
from controller.brokers.registration import create_skeleton
from controller.metadata_store.store import Create, SetData, StoreError
from controller.security.config_entities import DEFAULT, ConfigEntity
from controller.security.user_configs import UserConfigs, alter_entity
from controller.znodes import CONFIG_CHANGES, encode_config
from tests.controller.memory_store import MemoryEnsemble
from tests.controller.zookeeper_stores import connect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from controller.metadata_store.store import MetadataStore, Operation
    from tests.support.brokers.zookeeper import ZooKeeperServer

ALICE = ConfigEntity(user="alice")
HERS = ConfigEntity(user="alice", client_id="loader")
QUOTA = {"producer_byte_rate": "1024"}
STORED_QUOTA = b'{"version":1,"config":{"producer_byte_rate":"1024"}}'
OTHER = {"consumer_byte_rate": "5"}


def becoming(values: Mapping[str, str]) -> Callable[[Mapping[str, str]], Mapping[str, str]]:
    return lambda _: values


def adding(values: Mapping[str, str]) -> Callable[[Mapping[str, str]], Mapping[str, str]]:
    return lambda before: {**before, **values}


def on_an_empty_tree(
    scenario: Callable[[MetadataStore, MemoryEnsemble], Awaitable[None]],
) -> None:
    async def main() -> None:
        ensemble = MemoryEnsemble()
        store = ensemble.connect()
        await create_skeleton(store)
        await scenario(store, ensemble)

    asyncio.run(main())


async def nodes(store: MetadataStore, path: str = "/config/users") -> dict[str, bytes | None]:
    """Return all nodes below a node, by path."""
    found: dict[str, bytes | None] = {}
    for name in await store.children(path):
        child = f"{path}/{name}"
        found[child] = (await store.get(child)).data
        found |= await nodes(store, child)
    return found


async def _come_and_go(store: MetadataStore) -> None:
    await alter_entity(store, HERS, becoming(QUOTA))
    assert await nodes(store) == {
        "/config/users/alice": None,
        "/config/users/alice/clients": None,
        "/config/users/alice/clients/loader": STORED_QUOTA,
    }
    changes = await store.children(CONFIG_CHANGES)
    note = (await store.get(f"{CONFIG_CHANGES}/{changes[0]}")).data
    assert note == b'{"version":2,"entity_path":"users/alice/clients/loader"}'
    await alter_entity(store, HERS, becoming({}))
    assert await nodes(store) == {}
    assert len(await store.children(CONFIG_CHANGES)) == 2


def test_the_last_value_takes_the_node_with_it_and_the_parents_it_alone_had() -> None:
    on_an_empty_tree(lambda store, _: _come_and_go(store))


@pytest.mark.java
def test_nodes_come_and_go_in_zookeeper_as_well(zookeeper: ZooKeeperServer) -> None:
    async def main() -> None:
        store = await connect(zookeeper, "/user_configs")
        await create_skeleton(store)
        await _come_and_go(store)
        await store.close()

    asyncio.run(main())


def test_parents_that_others_need_stay() -> None:
    async def scenario(store: MetadataStore, _: MemoryEnsemble) -> None:
        default = ConfigEntity(user="alice", client_id=DEFAULT)
        for entity in (ALICE, HERS, default):
            await alter_entity(store, entity, becoming(QUOTA))
        await alter_entity(store, ALICE, becoming({}))
        assert (await nodes(store))["/config/users/alice"] == b'{"version":1,"config":{}}'
        await alter_entity(store, HERS, becoming({}))
        assert sorted(await nodes(store)) == [
            "/config/users/alice",
            "/config/users/alice/clients",
            "/config/users/alice/clients/<default>",
        ]
        await alter_entity(store, default, becoming({}))
        assert await nodes(store) == {}

    on_an_empty_tree(scenario)


def test_credentials_of_a_user_outlive_the_quota_of_her_client_id() -> None:
    async def scenario(store: MetadataStore, _: MemoryEnsemble) -> None:
        await alter_entity(store, ALICE, becoming({"SCRAM-SHA-256": "…"}))
        await alter_entity(store, HERS, becoming(QUOTA))
        await alter_entity(store, HERS, becoming({}))
        assert list(await nodes(store)) == ["/config/users/alice"]

    on_an_empty_tree(scenario)


@pytest.mark.parametrize(
    "write",
    [
        Create("/config/users/alice", encode_config(OTHER)),
        Create("/config/users/alice"),
    ],
)
def test_a_user_config_change_keeps_concurrent_changes(write: Operation) -> None:
    async def scenario(store: MetadataStore, ensemble: MemoryEnsemble) -> None:
        left = [write]

        def change(before: Mapping[str, str]) -> Mapping[str, str]:
            if left:
                ensemble.tree.apply([left.pop()], 99)
            return {**before, **QUOTA}

        await alter_entity(store, HERS, change)
        await alter_entity(store, ALICE, adding(QUOTA))
        written = UserConfigs(store, DynamicConfigs(store))
        theirs = OTHER if isinstance(write, Create) and write.data else {}
        assert await written.read(ALICE) == {**theirs, **QUOTA}
        assert await written.read(HERS) == QUOTA

    on_an_empty_tree(scenario)


def test_a_parent_that_gets_another_child_meanwhile_is_not_deleted() -> None:
    async def scenario(store: MetadataStore, ensemble: MemoryEnsemble) -> None:
        await alter_entity(store, HERS, becoming(QUOTA))
        others = [Create("/config/users/alice/clients/other", encode_config(OTHER))]

        def change(_: Mapping[str, str]) -> Mapping[str, str]:
            if others:
                ensemble.tree.apply([others.pop()], 99)
            return {}

        await alter_entity(store, HERS, change)
        assert sorted(await nodes(store)) == [
            "/config/users/alice",
            "/config/users/alice/clients",
            "/config/users/alice/clients/other",
        ]

    on_an_empty_tree(scenario)


def test_a_change_that_is_foiled_each_time_is_refused() -> None:
    async def scenario(store: MetadataStore, ensemble: MemoryEnsemble) -> None:
        await alter_entity(store, ALICE, becoming(QUOTA))

        def change(before: Mapping[str, str]) -> Mapping[str, str]:
            ensemble.tree.apply([SetData("/config/users/alice", encode_config(OTHER))], 99)
            return {**before, "more": "1"}

        with pytest.raises(StoreError, match="changed by others"):
            await alter_entity(store, ALICE, change)

    on_an_empty_tree(scenario)


def test_listeners_get_existing_entities_and_each_change() -> None:
    async def scenario(store: MetadataStore, _: MemoryEnsemble) -> None:
        heard: list[tuple[str, str, Mapping[str, str]]] = []

        async def listen(entity_type: str, entity: str, values: Mapping[str, str]) -> None:
            heard.append((entity_type, entity, dict(values)))

        address = ConfigEntity(ip="10.0.0.1")
        for entity in (ALICE, HERS, ConfigEntity(client_id=DEFAULT), address):
            await alter_entity(store, entity, becoming(QUOTA))
        await store.create("/config/users/mallory", b"not JSON")
        dynamic = DynamicConfigs(store)
        dynamic.on_change(listen)
        users = UserConfigs(store, dynamic)
        await dynamic.start()
        await users.load()
        assert heard == [
            ("users", "alice", QUOTA),
            ("users", "alice/clients/loader", QUOTA),
            ("clients", "<default>", QUOTA),
            ("ips", "10.0.0.1", QUOTA),
        ]
        assert [entity for entity, _ in await users.read_all("users")] == [ALICE, HERS]
        await users.alter(address, becoming({}))
        assert heard[-1] == ("ips", "10.0.0.1", {})

    on_an_empty_tree(scenario)


def test_a_malformed_node_of_a_user_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(store: MetadataStore, _: MemoryEnsemble) -> None:
        await store.create("/config/users/mallory", b'{"salt=c2VjcmV0')
        await UserConfigs(store, DynamicConfigs(store)).load()

    on_an_empty_tree(scenario)
    assert "mallory" in caplog.text
    assert "c2VjcmV0" not in caplog.text
