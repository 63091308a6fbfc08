"""Waiters for deletions are notified of their end, of the term's end, and leave nothing behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from controller.topics.deletion_waits import DeletionWaits
from controller.topics.topics import NewTopic
from controller.znodes import CONTROLLER
from protocol.messages.stop_replica import StopReplicaRequest
from tests.controller.harness import Cluster, run_cluster, turns
from tests.support.broker_parts.slices import one_step_at_a_time

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def begin(settlements: DeletionWaits, *topics: str) -> asyncio.Task[None]:
    async def all_open() -> tuple[str, ...]:
        return topics

    task = asyncio.get_running_loop().create_task(settlements.wait(topics, all_open))
    await turns(10)
    return task


def test_a_waiter_that_is_cancelled_leaves_nothing_behind_and_others_alone() -> None:
    async def scenario() -> None:
        settlements = DeletionWaits(one_step_at_a_time)
        left = await begin(settlements, "orders", "payments")
        impatient = await begin(settlements, "orders", "invoices")
        impatient.cancel()
        await asyncio.wait([impatient])
        assert set(settlements.topics) == {"orders", "payments"}

        settlements.settle(["orders"])
        assert not left.done()
        settlements.settle(["payments"])
        await left
        assert not settlements.topics

    asyncio.run(scenario())


def test_a_waiter_whose_query_fails_leaves_no_state() -> None:
    async def refuse() -> list[str]:
        raise ValueError

    async def scenario() -> None:
        settlements = DeletionWaits(one_step_at_a_time)
        with pytest.raises(ValueError):  # noqa: PT011 - which has no message
            await settlements.wait(["orders"], refuse)
        assert not settlements.topics

    asyncio.run(scenario())


async def somebody_else_wins(cluster: Cluster) -> None:
    await cluster.store.delete(CONTROLLER)


async def read_anew(cluster: Cluster) -> None:
    cluster.members[0].controller.interrupted()


async def retire(cluster: Cluster) -> None:
    await cluster.members[0].controller.retire()


@pytest.mark.parametrize("leave", [somebody_else_wins, read_anew, retire])
def test_the_end_of_the_term_completes_waits_for_deletions(
    leave: Callable[[Cluster], Awaitable[None]],
) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.topics.create([NewTopic("orders", assignment={0: (0,)})], cluster.racks)
        for member in cluster.members.values():
            member.channels.delayed = (StopReplicaRequest,)
        await turns()
        await cluster.topics.delete(["orders"])
        waiting = asyncio.get_running_loop().create_task(
            cluster.members[0].controller.wait_until_settled(["orders"])
        )
        await turns()
        assert not waiting.done()

        await leave(cluster)
        await waiting

    run_cluster(scenario, 0, 1)
