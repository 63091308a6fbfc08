"""ACLs are loaded before the first client is served."""

from __future__ import annotations

import asyncio

import pytest

from broker.startup.settings import read_settings
from broker.startup.start_error import StartError
from config.broker import BrokerConfig
from config.checks import ACL_AUTHORIZER
from controller.brokers.registration import create_skeleton
from controller.metadata_store.store import SetData
from controller.security.acl_znodes import acl_path
from protocol.acl_types import (
    AccessControlEntry,
    AclOperation,
    PermissionType,
    ResourcePattern,
    ResourceType,
)
from tests.controller.memory_store import MemoryEnsemble
from tests.support.broker_parts.services import Adapters, foundation_in_memory

ORDERS = ResourcePattern(ResourceType.TOPIC, "orders")
READ = AccessControlEntry("User:alice", "*", AclOperation.READ, PermissionType.ALLOW)
ASKED = ("User:alice", "/10.0.0.1", AclOperation.READ, ResourceType.TOPIC, "orders")


def test_acls_are_read_with_the_settings_and_a_malformed_one_ends_the_start() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        store = ensemble.connect()
        await create_skeleton(store)
        config = BrokerConfig(broker_id=0, authorizer_class_name=ACL_AUTHORIZER)
        base = foundation_in_memory(config, Adapters(store=store))
        first = (await read_settings(base.metadata, base.storage)).acls
        assert first is not None
        assert not first.authorizer.allows(*ASKED)
        assert await first._stored.alter({ORDERS: lambda _: [READ]}) == {}

        second = (await read_settings(base.metadata, base.storage)).acls
        assert second is not None
        assert second.authorizer.allows(*ASKED)

        ensemble.tree.apply([SetData(acl_path(ORDERS), b"?")], 99)
        with pytest.raises(StartError, match="ACLs cannot be read: /kafka-acl/Topic/orders"):
            await read_settings(base.metadata, base.storage)

    asyncio.run(scenario())


def test_without_an_authorizer_there_are_no_acls() -> None:
    async def scenario() -> None:
        store = MemoryEnsemble().connect()
        await create_skeleton(store)
        base = foundation_in_memory(BrokerConfig(broker_id=0), Adapters(store=store))
        assert (await read_settings(base.metadata, base.storage)).acls is None
        assert await store.exists("/kafka-acl") is None

    asyncio.run(scenario())
