"""Notifications of older tools and brokers in the tree are handled, then removed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import controller.controller
from controller.admin_znodes import PREFERRED_ELECTION, REASSIGNMENT
from controller.metadata_store.store import (
    Delete,
    Operation,
    Result,
    StoreError,
    StoreUnavailableError,
)
from controller.znodes import ISR_CHANGES, PartitionState, encode_state, state_path
from protocol.messages.update_metadata import UpdateMetadataRequest
from tests.controller.brokers.test_broker_changes import (
    AT,
    create,
    leader_and_in_sync,
    of_kind,
    stored,
)
from tests.controller.harness import Cluster, run_cluster, turns
from tests.controller.memory_store import MemoryStore
from tests.controller.partitions.test_reassignment import assigned, caught_up, reassign

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest


class OnceUnavailableStore(MemoryStore):
    """Is away once, when a node is to be deleted."""

    refuses_to_delete = ""

    async def multi_many(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> list[list[Result] | StoreError]:
        refused, present = self.refuses_to_delete, [one for all_ in transactions for one in all_]
        if refused and any(isinstance(one, Delete) and one.path == refused for one in present):
            self.refuses_to_delete = ""
            return [StoreUnavailableError(refused, "not reachable") for _ in transactions]
        return await super().multi_many(transactions)


def listed(*replicas: int, topic: str = AT.topic) -> bytes:
    entry = {"topic": topic, "partition": AT.partition, "replicas": list(replicas)}
    return json.dumps({"version": 1, "partitions": [entry]}).encode()


async def exists(cluster: Cluster, path: str) -> bool:
    return await cluster.store.exists(path) is not None


def test_a_reassign_partitions_znode_is_carried_out_and_deleted() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 0)
        await cluster.store.create(REASSIGNMENT, listed(1, 2))
        await turns()
        assert (await assigned(cluster)).adding_replicas == {0: (1, 2)}
        assert await exists(cluster, REASSIGNMENT)

        await caught_up(cluster, 0, 1, 2, leader=0)
        await turns()

        assert (await assigned(cluster)).partitions == {0: (1, 2)}
        assert not await exists(cluster, REASSIGNMENT)

    run_cluster(scenario, 0, 1, 2)


def test_an_invalid_reassign_partitions_znode_is_deleted_at_once() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 0)
        unusable = (b"nonsense", listed(7), listed(1, topic="no-such-topic"), listed(0))
        for data in unusable:
            await cluster.store.create(REASSIGNMENT, data)
            await turns()
            assert not await exists(cluster, REASSIGNMENT)
        assert (await assigned(cluster)).partitions == {0: (0,)}

    run_cluster(scenario, 0, 1)


def test_a_cancelled_reassign_partitions_znode_is_not_resumed() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 0)
        await cluster.store.create(REASSIGNMENT, listed(1))
        await turns()
        assert await reassign(cluster) is None
        await turns()
        assert (await assigned(cluster)).partitions == {0: (0,)}
        assert not await exists(cluster, REASSIGNMENT)

        await cluster.store.create(REASSIGNMENT, listed(1))
        await turns()
        assert (await assigned(cluster)).adding_replicas == {0: (1,)}, "it is asked for again"

    run_cluster(scenario, 0, 1)


def test_a_new_controller_resumes_the_reassign_partitions_znode() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1)
        await cluster.store.create(REASSIGNMENT, listed(2))
        await turns()
        await cluster.kill(0)
        await turns()
        assert (await assigned(cluster)).adding_replicas == {0: (2,)}
        assert await exists(cluster, REASSIGNMENT)

    run_cluster(scenario, 0, 1, 2)


def test_a_preferred_election_that_is_written_down_is_held() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1, 0)
        await cluster.kill(1)
        await cluster.add(1)
        await caught_up(cluster, 0, 1, leader=0)

        await cluster.store.create(PREFERRED_ELECTION, listed())
        await turns()

        assert await leader_and_in_sync(cluster) == (1, (0, 1))
        assert not await exists(cluster, PREFERRED_ELECTION)

    run_cluster(scenario, 0, 1)


def test_a_request_that_could_not_be_removed_is_removed_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(controller.controller, "RETRY_AFTER_SECONDS", 0)

    async def scenario(cluster: Cluster) -> None:
        cluster.connect = lambda: OnceUnavailableStore(
            cluster.ensemble.tree, cluster.ensemble.connect().session_id
        )
        store = (await cluster.add(0)).store
        assert isinstance(store, OnceUnavailableStore)
        store.refuses_to_delete = PREFERRED_ELECTION
        await cluster.store.create(PREFERRED_ELECTION, listed())
        await turns()

        assert not store.refuses_to_delete
        assert not await exists(cluster, PREFERRED_ELECTION)

    run_cluster(scenario)


def test_isr_change_notifications_are_sent_to_all_brokers() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 0, 1)
        channels = cluster.members[0].channels
        state = await stored(cluster)
        shrunk = PartitionState(0, state.leader_epoch, (0,), state.controller_epoch)
        await cluster.store.set(state_path(*AT), encode_state(shrunk))
        channels.take()

        path = await cluster.store.create(f"{ISR_CHANGES}/isr_change_", listed(), sequence=True)
        await turns()

        updates = of_kind(channels.take(), UpdateMetadataRequest)
        assert {broker_id for broker_id, _ in updates} == {0, 1}
        for _, update in updates:
            assert isinstance(update, UpdateMetadataRequest)
            assert update.topic_states[0].partition_states[0].isr == [0]
        assert not await exists(cluster, path)

    run_cluster(scenario, 0, 1)


def test_an_unclean_leader_is_elected_once_the_default_allows_it() -> None:
    async def scenario(cluster: Cluster) -> None:
        await create(cluster, 1, 2)
        await cluster.kill(2)
        await cluster.kill(1)
        await cluster.add(2)
        assert (await stored(cluster)).leader == -1

        cluster.members[0].controller.allow_unclean(by_default=True)
        await turns()

        assert await leader_and_in_sync(cluster) == (2, (2,))

    run_cluster(scenario, 0, 1, 2)
