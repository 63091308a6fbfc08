"""Base of all clients of a run: connections, metadata and bounded patience."""

from __future__ import annotations

import asyncio
import contextlib
import math
from random import Random
from typing import TYPE_CHECKING, Any, cast

from broker.network.links import LinkError
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.topics import CreateTopicsRequest
from tests.simulation.clients.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.simulation.clients.pipeline import Answer
    from tests.simulation.clients.values import At
    from tests.simulation.cluster import SimulatedCluster

PORT = 9092
TIMEOUT_MS = 3000
CONNECT_SECONDS = 3.0
RETRY_SECONDS = 0.1
PATIENCE_SECONDS = 1.5, 3.0, 30.0
"""Timeouts of a client's request; after them it closes the connection and opens another."""


class Client:
    """Connections to brokers, one to each, and what brokers say of the cluster."""

    def __init__(self, cluster: SimulatedCluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.random = Random(f"{name}-{cluster.random.random()}")
        self.patience = self.random.choice(PATIENCE_SECONDS)
        self.leaders: dict[At, int] = {}
        """Last known leaders: a client may ask a leader before that has heard of its own
        election."""
        self.controller = -1
        self.is_done = False
        """Set when the load is to end; from then on every answer is waited for, however long."""
        self._links: dict[int, Pipeline] = {}
        self._turns: dict[int, asyncio.Lock] = {}
        self.leader_epochs: dict[At, int] = {}

    def waits_for(self) -> str:
        """Describe the requests in flight, by broker."""
        return ", ".join(f"{number}: {link}" for number, link in self._links.items())

    async def link(self, broker_id: int) -> Pipeline:
        """The connection to a broker, a new one if need be; raises LinkError."""
        async with self._turns.setdefault(broker_id, asyncio.Lock()):
            link = self._links.get(broker_id)
            if link is None or link.is_lost:
                link = self._links[broker_id] = await self._connect(broker_id)
            return link

    async def _connect(self, broker_id: int) -> Pipeline:
        loop = self.cluster.loop
        machine = self.cluster.machines[broker_id]
        link = Pipeline(loop, self.name, machine.lives)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await loop.create_connection(lambda: link, machine.name, PORT)
        except (OSError, TimeoutError) as error:
            raise LinkError(f"{machine.name}: {error}") from None
        link.life = machine.lives
        return link

    async def outcome(self, link: Pipeline, answer: asyncio.Future[Answer]) -> Answer:
        """Wait for an answer; who does not get it in time hangs up. Raises LinkError."""
        while not answer.done():
            waited = math.inf if self.is_done else self.patience
            if link.is_quiet_for(waited):
                link.hang_up(is_reset=self.random.random() < 0.5)
                break
            await asyncio.wait({answer}, timeout=RETRY_SECONDS)
        return await answer

    async def ask(self, broker_id: int, request: Any, version: int) -> Any:
        """One request and its response; raises LinkError."""
        link = await self.link(broker_id)
        return (await self.outcome(link, link.ask(request, version))).response

    async def refresh(self, topic: str) -> None:
        """Find out from some broker who leads."""
        broker_id = self.random.randrange(len(self.cluster.machines))
        request = MetadataRequest(
            topics=[MetadataRequest.Topic(name=topic)], allow_auto_topic_creation=False
        )
        try:
            response = cast("MetadataResponse", await self.ask(broker_id, request, 9))
        except LinkError:
            return
        self.controller = response.controller_id
        for told in response.topics:
            for partition in told.partitions:
                at = topic, partition.partition_index
                # What a broker says that has not heard of a newer leader is not news (KIP-320).
                if partition.leader_epoch >= self.leader_epochs.get(at, -1):
                    self.leader_epochs[at] = partition.leader_epoch
                    if partition.leader_id >= 0:
                        self.leaders[at] = partition.leader_id

    async def create_topic(
        self, topic: str, partitions: int, factor: int, config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic; it may exist."""
        kind = CreateTopicsRequest.Topic
        wanted = kind(
            name=topic,
            num_partitions=partitions,
            replication_factor=factor,
            assignments=[],
            configs=[kind.Config(name=name, value=value) for name, value in (config or {}).items()],
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS)
        while True:
            await self.refresh(topic)
            if any((topic, index) in self.leaders for index in range(partitions)):
                return
            if self.controller >= 0:
                with contextlib.suppress(LinkError):
                    await self.ask(self.controller, request, 5)
            await asyncio.sleep(RETRY_SECONDS)
