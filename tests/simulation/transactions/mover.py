"""An administrator who moves the leaders of internal topics back and forth.

Replicas are reordered, which makes another broker the preferred leader, and it is elected; or one
of them is taken away, and given back at once or later. In the end all are there again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from broker.network.links import LinkError
from protocol.messages.reassignment import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
)
from tests.simulation.clients.client import RETRY_SECONDS, Client

if TYPE_CHECKING:
    from tests.simulation.clients.values import At
    from tests.simulation.cluster import SimulatedCluster

PAUSES_SECONDS = 0.1, 0.5, 2.0
TIMEOUT_MS = 3000


class Mover(Client):
    """Moves some partitions, each of which all brokers have."""

    def __init__(self, cluster: SimulatedCluster, places: list[At]) -> None:
        super().__init__(cluster, "mover")
        self.count = 0
        """Elections and reassignments that were accepted."""
        self._places = places
        self._pause_seconds = self.random.choice(PAUSES_SECONDS)
        self._everybody = list(range(len(cluster.machines)))

    async def run(self) -> None:
        """Go on until done; all partitions have all their replicas then."""
        while not self.is_done:
            await asyncio.sleep(self.random.uniform(0, 2 * self._pause_seconds))
            at = self.random.choice(self._places)
            replicas = self.random.sample(self._everybody, len(self._everybody))
            if self.random.random() < 0.2:
                replicas.pop()
            await self._reassign({at: replicas})
            for _ in range(self.random.randint(1, 3)):
                await self._elect(at)
        while not await self._reassign(dict.fromkeys(self._places, self._everybody)):
            await asyncio.sleep(RETRY_SECONDS)

    async def _elect(self, at: At) -> None:
        kind = ElectLeadersRequest.TopicPartition
        request = ElectLeadersRequest(
            election_type=0,
            topic_partitions=[kind(topic=at[0], partitions=[at[1]])],
            timeout_ms=TIMEOUT_MS,
        )
        await self._order(request, 2)

    async def _reassign(self, wanted: dict[At, list[int]]) -> bool:
        """Returns whether all of it was accepted."""
        kind = AlterPartitionReassignmentsRequest.Topic
        topics = [
            kind(
                name=topic,
                partitions=[kind.Partition(partition_index=index, replicas=replicas)],
            )
            for (topic, index), replicas in wanted.items()
        ]
        request = AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=topics)
        answer = await self._order(request, 0)
        return answer is not None and not any(
            partition.error_code for topic in answer.responses for partition in topic.partitions
        )

    async def _order(self, request: Any, version: int) -> Any:
        """Ask the controller, if there is one; None if it does not do what it is told."""
        await self.refresh(self._places[0][0])
        if self.controller < 0:
            return None
        try:
            answer = await self.ask(self.controller, request, version)
        except LinkError:
            return None
        if answer.error_code:
            return None
        self.count += 1
        return answer
