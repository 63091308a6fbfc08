"""A producer that keeps Kafka's rules for clients: sequences, retries, fresh metadata."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from broker.peer_link import PeerLink
from broker.replication.links import LinkError
from protocol.errors import ErrorCode
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.topics import CreateTopicsRequest, CreateTopicsResponse
from protocol.records.builder import NewRecord, build_batch
from tests.simulation.cluster import EPOCH_MS, PORT

if TYPE_CHECKING:
    from tests.simulation.cluster import SimulatedCluster

TIMEOUT_MS = 3000
RETRY_SECONDS = 0.1

DUPLICATE = ErrorCode.DUPLICATE_SEQUENCE_NUMBER
FINAL = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.CORRUPT_MESSAGE,
    }
)


class Client:
    """Connections to brokers, and what they say of the cluster."""

    def __init__(self, cluster: SimulatedCluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self._links: dict[int, PeerLink] = {}
        self.leaders: dict[tuple[str, int], int] = {}
        self._leader_epochs: dict[tuple[str, int], int] = {}
        self.controller = -1

    async def ask(self, broker_id: int, request: Any, version: int) -> Any:
        link = self._links.get(broker_id)
        if link is None:
            link = self._links[broker_id] = PeerLink(
                f"broker {broker_id}",
                lambda: (f"broker-{broker_id}", PORT),
                self.name,
                TIMEOUT_MS,
                1 << 26,
            )
        return await link.ask(request, version)

    async def refresh(self, topic: str) -> None:
        """Ask some broker who leads."""
        broker_id = self.cluster.random.randrange(len(self.cluster.machines))
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
                if partition.leader_epoch >= self._leader_epochs.get(at, -1):
                    self._leader_epochs[at] = partition.leader_epoch
                    self.leaders[at] = partition.leader_id

    async def create_topic(self, topic: str, partitions: int, factor: int) -> None:
        """Create a topic; it may exist."""
        wanted = CreateTopicsRequest.Topic(
            name=topic,
            num_partitions=partitions,
            replication_factor=factor,
            assignments=[],
            configs=[],
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS)
        while True:
            await self.refresh(topic)
            if any(self.leaders.get((topic, index), -1) >= 0 for index in range(partitions)):
                return
            if self.controller >= 0:
                try:
                    answered = await self.ask(self.controller, request, 5)
                    cast("CreateTopicsResponse", answered)
                except LinkError:
                    pass
            await asyncio.sleep(RETRY_SECONDS)


class Producer(Client):
    """Idempotent, acks=all, one batch of a partition in flight at a time."""

    def __init__(self, cluster: SimulatedCluster, name: str, topic: str) -> None:
        super().__init__(cluster, name)
        self.topic = topic
        self.acknowledged: dict[int, list[tuple[int, bytes]]] = {}
        """By partition: offsets and values, in the order of their acknowledgement."""
        self.is_done = False
        self._producer_id = -1
        self._sequences: dict[int, int] = {}

    async def run(self, partitions: int) -> None:
        """Produce to all partitions until told to stop."""
        while self._producer_id < 0:
            await self._obtain_id()
        async with asyncio.TaskGroup() as group:
            for index in range(partitions):
                group.create_task(self._produce(index))

    async def _obtain_id(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        broker_id = self.cluster.random.randrange(len(self.cluster.machines))
        try:
            answer = cast("InitProducerIdResponse", await self.ask(broker_id, request, 4))
            self._producer_id = answer.producer_id
        except LinkError:
            pass
        await asyncio.sleep(RETRY_SECONDS)

    async def _produce(self, index: int) -> None:
        random = self.cluster.random
        number = 0
        while not self.is_done:
            values = []
            for _ in range(random.randint(1, 5)):
                values.append(f"{self.name}/{index}/{number}".encode())
                number += 1
            offset = await self._deliver(index, values)
            if offset is None:
                return
            known = self.acknowledged.setdefault(index, [])
            known += [(offset + at, value) for at, value in enumerate(values)]
            await asyncio.sleep(random.uniform(0, 0.3))

    async def _deliver(self, index: int, values: list[bytes]) -> int | None:
        """Send until it is acknowledged; returns the offset, None when told to stop."""
        sequence = self._sequences.get(index, 0)
        while True:
            code, offset = await self._send(index, values, sequence)
            if code is ErrorCode.NONE or (code is DUPLICATE and offset >= 0):
                self._sequences[index] = sequence + len(values)
                return offset
            if code in FINAL:
                raise AssertionError(f"{self.name}: {self.topic}-{index} answers {code.name}")
            if self.is_done:
                return None
            await asyncio.sleep(RETRY_SECONDS)
            await self.refresh(self.topic)

    async def _send(self, index: int, values: list[bytes], sequence: int) -> tuple[ErrorCode, int]:
        leader = self.leaders.get((self.topic, index), -1)
        if leader < 0:
            return ErrorCode.LEADER_NOT_AVAILABLE, -1
        now_ms = EPOCH_MS + int(self.cluster.loop.now * 1000)
        batch = build_batch(
            [NewRecord(now_ms, None, value) for value in values],
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        data = ProduceRequest.TopicData.PartitionData(index=index, records=batch)
        topic = ProduceRequest.TopicData(name=self.topic, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[topic])
        try:
            response = cast("ProduceResponse", await self.ask(leader, request, 9))
        except LinkError:
            return ErrorCode.NETWORK_EXCEPTION, -1
        (answer,) = response.responses[0].partition_responses
        return ErrorCode(answer.error_code), answer.base_offset
