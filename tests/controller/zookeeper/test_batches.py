"""Transactions put together for ZooKeeper, and their results dealt out again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from controller.metadata_store.store import (
    BadVersionError,
    Check,
    Create,
    NodeExistsError,
    Operation,
    SetData,
    StoreError,
    TooLargeError,
)
from controller.zookeeper.batches import BYTES_LIMIT, OPERATIONS_LIMIT, gather
from tests.controller.zookeeper_stores import MAX_REQUEST_BYTES, connect

if TYPE_CHECKING:
    from tests.support.brokers.zookeeper import ZooKeeperServer

FENCE = Check("/epoch", 3)


def test_adjacent_transactions_share_an_equal_check() -> None:
    transactions: list[list[Operation]] = [
        [FENCE, Create("/a")],
        [FENCE, Create("/b"), SetData("/c", b"x")],
        [Check("/epoch", 4), Create("/d")],
        [Create("/e")],
        [Create("/f")],
    ]
    first, second, third = gather(transactions)
    assert first.operations == [FENCE, Create("/a"), Create("/b"), SetData("/c", b"x")]
    assert second.operations == [Check("/epoch", 4), Create("/d")]
    assert third.operations == [Create("/e"), Create("/f")]
    assert first.split([None, "/a", "/b", None]) == [[None, "/a"], [None, "/b", None]]
    assert third.split(["/e", "/f"]) == [["/e"], ["/f"]]


def test_batches_end_where_a_limit_is_reached() -> None:
    many: list[list[Operation]] = [[FENCE, Create(f"/{i}")] for i in range(2 * OPERATIONS_LIMIT)]
    counted = gather(many)
    assert all(len(batch.operations) <= OPERATIONS_LIMIT for batch in counted)
    assert [one for batch in counted for one in batch.transactions] == many
    large: list[list[Operation]] = [[Create("/x", bytes(BYTES_LIMIT // 2))] for _ in range(3)]
    assert [len(batch.transactions) for batch in gather(large)] == [1, 1, 1]
    assert gather([]) == []


@pytest.mark.java
def test_refused_batch_is_done_one_by_one(zookeeper: ZooKeeperServer) -> None:
    async def scenario() -> None:
        store = await connect(zookeeper, "/batches")
        await store.create("/epoch", b"")
        await store.create("/7", b"taken")
        fence = Check("/epoch", 0)
        writes: list[list[Operation]] = [
            [fence, Create(f"/{i}"), SetData(f"/{i}", b"x", 0)] for i in range(300)
        ]
        outcomes = await store.multi_many(writes)
        assert isinstance(outcomes[7], NodeExistsError)
        assert outcomes[7].operation == 1
        assert sum(isinstance(outcome, StoreError) for outcome in outcomes) == 1
        nodes = await store.get_many([f"/{i}" for i in range(300)])
        assert [node and node.version for node in nodes] == [0 if i == 7 else 1 for i in range(300)]
        await store.set("/epoch", b"")
        late: list[list[Operation]] = [[fence, Create(f"/late{i}")] for i in range(20)]
        for outcome in await store.multi_many(late):
            assert isinstance(outcome, BadVersionError)
            assert outcome.operation == 0
        assert await store.exists("/late0") is None
        await store.close()

    asyncio.run(scenario())


@pytest.mark.java
def test_requests_too_large_for_zookeeper_are_not_sent(zookeeper: ZooKeeperServer) -> None:
    async def scenario() -> None:
        store = await connect(zookeeper, "/large")
        interruptions: list[str] = []
        store.on_interruption(lambda: interruptions.append("interrupted"))
        await store.create("/a", b"small")
        too_much = bytes(2_000_000)
        outcomes = await store.multi_many(
            [
                [Create("/b")],
                [SetData("/a", too_much)],
                [Create("/c"), Create("/d", too_much)],
                [Create("/e", bytes(MAX_REQUEST_BYTES - 1000))],
            ]
        )
        assert [isinstance(outcome, TooLargeError) for outcome in outcomes] == [
            False,
            True,
            True,
            False,
        ]
        assert await store.children("/") == ["a", "b", "e"]
        assert (await store.get("/a")).data == b"small"
        with pytest.raises(TooLargeError, match=r"zookeeper\.request\.max\.bytes"):
            await store.set("/a", too_much)
        assert interruptions == []
        await store.close()

    asyncio.run(scenario())
