"""A step with all partitions: each once, none twice, and others are served in between."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from broker.partitions.partition_round import PartitionRound
from broker.runtime.event_loop import BackgroundLoop
from broker.runtime.timers import Timers
from tests.support.broker_parts.slices import one_step_at_a_time
from tests.support.broker_parts.virtual_time import LoopClock, run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator

    from broker.partitions.partition import Partition

COUNT = 5


class NamedPartition:
    """The part of a partition that a round uses."""

    topic = "orders"

    def __init__(self, index: int) -> None:
        self.index = index


class HeldReplicas:
    """The part of `Replicas` that a round uses."""

    def __init__(self) -> None:
        self.held = {index: NamedPartition(index) for index in range(COUNT)}

    def __iter__(self) -> Iterator[NamedPartition]:
        return iter(self.held.values())

    def partition(self, topic: str, index: int) -> NamedPartition | None:
        assert topic == NamedPartition.topic
        return self.held.get(index)


class Scene:
    """A round, and what became of it."""

    def __init__(
        self, then: Callable[[int], None] = lambda _: None, concerned: Iterable[int] | None = None
    ) -> None:
        self.replicas = HeldReplicas()
        self.stepped: list[int] = []
        self.failures: list[tuple[str, list[str]]] = []
        self.tasks: list[asyncio.Task[None]] = []
        timers = Timers(asyncio.get_running_loop())
        loop = BackgroundLoop(LoopClock(), timers, self._spawn, one_step_at_a_time, self._note)

        def step(partition: Partition) -> None:
            self.stepped.append(partition.index)
            then(partition.index)

        self.round = PartitionRound(
            self.replicas,  # type: ignore[arg-type]
            loop,
            step,
            "follower lag",
            None if concerned is None else [self.replicas.held[index] for index in concerned],  # type: ignore[misc]
        )

    async def over(self) -> None:
        await asyncio.gather(*self.tasks)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> object:
        assert name == "follower lag"
        self.tasks.append(asyncio.get_running_loop().create_task(work))
        return self.tasks[-1]

    def _note(self, name: str, error: BaseException, kind: str = "") -> None:
        assert not kind
        self.failures.append((name, getattr(error, "__notes__", [])))


async def turn() -> None:
    """Run one turn of the loop, or some."""
    await Timers(asyncio.get_running_loop()).sleep(0)


def test_others_are_served_between_the_partitions() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.round.begin()
        seen = []
        while len(scene.stepped) < COUNT:
            seen.append(len(scene.stepped))
            await turn()

        assert any(0 < count < COUNT for count in seen)
        assert scene.stepped == list(range(COUNT))

    run_in_virtual_time(scenario())


def test_unconcerned_partitions_are_skipped() -> None:
    async def scenario() -> None:
        scene = Scene(concerned=[0, 4])
        scene.round.begin()
        await scene.over()

        assert scene.stepped == [0, 4]

    run_in_virtual_time(scenario())


def test_a_partition_that_raises_keeps_no_other_from_its_step() -> None:
    def fail_at_first(index: int) -> None:
        if not index:
            raise ValueError("planted")

    async def scenario() -> None:
        scene = Scene(fail_at_first)
        scene.round.begin()
        await scene.over()

        assert scene.stepped == list(range(COUNT))
        assert scene.failures == [("follower lag", ["partition orders-0"])]

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("times", [1, 3])
def test_a_round_requested_during_a_round_runs_once_more(times: int) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.round.begin()
        while len(scene.stepped) < 2:
            await turn()
        for _ in range(times):
            scene.round.begin()
        await scene.over()

        assert len(scene.tasks) == 1
        assert scene.stepped == [*range(COUNT), *range(COUNT)]
        scene.round.begin()
        await scene.over()
        assert len(scene.stepped) == 3 * COUNT

    run_in_virtual_time(scenario())


def test_a_partition_that_is_given_up_meanwhile_is_left_out() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.round.begin()
        while len(scene.stepped) < 2:
            await turn()
        del scene.replicas.held[4]
        scene.replicas.held[3] = NamedPartition(3)
        await scene.over()

        assert scene.stepped == [0, 1, 2]

    run_in_virtual_time(scenario())
