"""A controller with many partitions yields to the event loop, even if all of them change at once.

That no callback takes long is seen by what watches all tests (`tests.support.loop_watch`).
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from broker.runtime.slices import Turns
from controller.partitions.leader_balance import ElectionType
from controller.topics.topics import NewTopic
from tests.controller import harness
from tests.controller.harness import Cluster, turns

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from controller.context import ControllerContext

pytestmark = pytest.mark.slow

TOPICS = 10
PARTITIONS = 1000
SECONDS = 60


def run_large_cluster(
    scenario: Callable[[Cluster], Coroutine[None, None, None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Run a scenario on two brokers with a replica each of many partitions; 0 is controller."""

    async def main() -> None:
        monkeypatch.setattr(harness, "one_step_at_a_time", Turns(time.perf_counter).slices)
        cluster = await Cluster().start(0, 1)
        try:
            for number in range(TOPICS):
                topic = NewTopic(f"t{number}", PARTITIONS, 2)
                await cluster.topics.create([topic], cluster.racks)
            await until(lambda: len(context_of(cluster).leadership) == TOPICS * PARTITIONS)
            await scenario(cluster)
        finally:
            await cluster.stop()

    asyncio.run(main())


async def until(is_reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not is_reached():
            await turns(1)


def context_of(cluster: Cluster, member: int = 0) -> ControllerContext:
    context = cluster.members[member].controller.context
    assert context is not None
    return context


def leaders(cluster: Cluster, member: int = 0) -> set[int]:
    return {each.state.leader for each in context_of(cluster, member).leadership.values()}


def in_sync_sets(cluster: Cluster, member: int = 0) -> set[tuple[int, ...]]:
    states = context_of(cluster, member).leadership.values()
    return {tuple(sorted(each.state.in_sync_replicas)) for each in states}


@pytest.mark.timeout(10 * SECONDS)
def test_a_broker_that_leaves_dies_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(cluster: Cluster) -> None:
        commands = cluster.members[0].controller.commands
        assert leaders(cluster) == {0, 1}
        epoch = context_of(cluster).live_brokers[1].epoch
        assert await commands.relieve(1, epoch) == []
        assert leaders(cluster) == {0}

        await cluster.kill(1)
        await until(lambda: in_sync_sets(cluster) == {(0,)})
        await cluster.add(1)
        await commands.balance(10)
        assert leaders(cluster) == {0}, "nobody else is in sync"
        codes = await commands.elect_leaders(None, ElectionType.PREFERRED)
        assert len(codes) == TOPICS * PARTITIONS

    run_large_cluster(scenario, monkeypatch)


@pytest.mark.timeout(10 * SECONDS)
def test_a_controller_that_dies_and_topics_that_are_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.kill(0)
        await until(lambda: cluster.members[1].controller.is_active)
        await until(lambda: leaders(cluster, 1) == {1} and in_sync_sets(cluster, 1) == {(1,)})

        await cluster.add(0)
        names = [f"t{number}" for number in range(TOPICS)]
        assert set((await cluster.topics.delete(names)).values()) == {None}
        await until(lambda: not context_of(cluster, 1).assignments)

    run_large_cluster(scenario, monkeypatch)
