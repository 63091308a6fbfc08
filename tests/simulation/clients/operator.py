"""An operator: moves leaders and replicas of partitions in which records wait, and sets clocks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from broker.network.links import LinkError
from protocol.messages.reassignment import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
)
from tests.simulation.clients.client import RETRY_SECONDS, TIMEOUT_MS, Client

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulation.clients.values import At
    from tests.simulation.cluster import SimulatedCluster

SKEWS_MS: Final = 0, 0, -10_000, -1_000, 1_000, 10_000
FEWEST: Final = 2
"""Replicas to which a partition is moved: as many as have to be in sync."""


class Operator(Client):
    """Works until it is done; then each partition is to be on all brokers again."""

    def __init__(self, cluster: SimulatedCluster, partitions: Sequence[At]) -> None:
        super().__init__(cluster, "operator")
        self._partitions = partitions
        rates = (0.0, 0.0, 0.1, 0.4)
        self._rates = {
            self._elect: self.random.choice(rates),
            self._move: self.random.choice(rates),
            self._set_clock: self.random.choice(rates),
        }

    async def run(self) -> None:
        """Throw the dice again and again, then put all in order."""
        while not self.is_done:
            await asyncio.sleep(self.random.uniform(0.1, 1.0))
            for work, rate in self._rates.items():
                if self.random.random() < rate:
                    await work(self.random.choice(self._partitions))
        for at in self._partitions:
            while not await self._reassign(at, list(range(len(self.cluster.machines)))):
                await asyncio.sleep(RETRY_SECONDS)

    async def _elect(self, at: At) -> None:
        kind = ElectLeadersRequest.TopicPartition
        wanted = [kind(topic=at[0], partitions=[at[1]])]
        request = ElectLeadersRequest(topic_partitions=wanted, timeout_ms=TIMEOUT_MS)
        await self._tell_controller(request, 2)

    async def _move(self, at: At) -> None:
        numbers = range(len(self.cluster.machines))
        replicas = self.random.sample(numbers, self.random.randint(FEWEST, len(numbers)))
        self.cluster.note(f"{at[0]}-{at[1]} is moved to {replicas}")
        await self._reassign(at, replicas)

    async def _set_clock(self, _: At) -> None:
        machine = self.random.choice(self.cluster.machines)
        machine.clock.skew_ms = self.random.choice(SKEWS_MS)
        self.cluster.note(f"{machine.name} has its clock off by {machine.clock.skew_ms} ms")

    async def _reassign(self, at: At, replicas: list[int]) -> bool:
        """Returns whether the controller has taken it."""
        kind = AlterPartitionReassignmentsRequest.Topic
        partition = kind.Partition(partition_index=at[1], replicas=replicas)
        topic = kind(name=at[0], partitions=[partition])
        request = AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=[topic])
        answer = await self._tell_controller(request, 0)
        if answer is None or answer.error_code:
            return False
        (told,) = cast("AlterPartitionReassignmentsResponse", answer).responses[0].partitions
        return not told.error_code

    async def _tell_controller(self, request: Any, version: int) -> Any:
        """Ask once, and return the answer; None if it does not come to that."""
        await self.refresh(self._partitions[0][0])
        if self.controller < 0:
            return None
        try:
            return await self.ask(self.controller, request, version)
        except LinkError:
            return None
