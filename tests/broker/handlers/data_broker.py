"""`OneBroker` for what moves records: produce, fetch, offsets; with shorthands for requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from broker.coordinators.transactions import TransactionRules
from broker.fetch.fetch_sessions import FetchSessions, SessionLimits
from broker.handlers import all_handlers
from broker.requests.api_table import ROUTES
from broker.requests.context import Context
from broker.runtime.deferred import Deferred
from config.broker import BrokerConfig
from controller.topics.topics import NewTopic
from protocol.messages.fetch import FetchRequest
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from protocol.messages.produce import ProduceRequest
from protocol.messages.topics import DeleteTopicsRequest
from protocol.records.batch import iterate_headers
from protocol.records.builder import NewRecord, build_batch
from protocol.records.record import iterate_records
from tests.broker.handlers.one_broker import OneBroker, as_bytes
from tests.broker.handlers.transaction_registry import TransactionRegistry
from tests.controller.harness import NOW_MS
from tests.support.broker_parts.arrival import arrival

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path
    from uuid import UUID

    from broker.partitions.partition import Partition
    from protocol.schema import Request

assert all_handlers.MODULES, "they register themselves when they are imported"

TOPIC = "orders"
MIB = 1 << 20
BY_ID = 13
"""First version of Fetch that names topics by id; Produce has the same."""


def records(
    count: int = 1, *, value: bytes = b"value", timestamp: int = NOW_MS, **header: Any
) -> bytes:
    """A batch of `count` records, one millisecond apart."""
    return bytes(
        build_batch(
            [NewRecord(timestamp + index, b"key", value) for index in range(count)], **header
        )
    )


class DataBroker(OneBroker):
    """A broker that serves records."""

    def __init__(self, directory: Path, config: BrokerConfig) -> None:
        super().__init__(directory, config)
        services = self.services
        rules = TransactionRules(config, services.features)
        self.transactions = TransactionRegistry(rules, self.foundation.machine.background)
        services.transactions = self.transactions
        identities = iter(range(1, 1000))
        limits = SessionLimits(
            config.max_incremental_fetch_session_cache_slots,
            config.max_incremental_fetch_session_cache_partitions,
            120_000,
        )
        services.fetch_sessions = FetchSessions(limits, lambda: next(identities))

    async def create_topic(self, name: str = TOPIC, count: int = 1, **configs: str) -> Partition:
        """Create a topic that this broker leads; returns its first partition."""
        named = {key.replace("_", "."): value for key, value in configs.items()}
        await self.topics.create([NewTopic(name, count, configs=named)], self.metadata.racks)
        await self.metadata.wait_until(lambda: self.metadata.topic(name) is not None)
        await self.channels.wait_until_applied()
        partition = self.replicas.partition(name, 0)
        assert partition is not None
        return partition

    async def delete_topic(self, name: str = TOPIC) -> None:
        """Delete a topic; its name is free when this returns."""
        await self.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), 5)

    def call(self, request: Request, version: int, client_id: str | None = "a-client") -> Any:
        """Return the handler's result, without waiting for it."""
        frame = memoryview(bytearray(request.encode(version)))
        return self.call_frame(type(request), frame, version, client_id)

    def call_frame(
        self,
        cls: type[Request],
        frame: memoryview,
        version: int,
        client_id: str | None = "a-client",
    ) -> Any:
        """As `call`, for a request that is encoded already."""
        return self.handle(cls.decode(version, frame), version, client_id)

    def handle(self, request: Request, version: int, client_id: str | None = "a-client") -> Any:
        """As `call`, for a request as it was decoded."""
        context = self.context(version, client_id)
        return ROUTES[int(request.API_KEY)].handler(context, request)

    def context(self, version: int, client_id: str | None = "a-client") -> Context:
        """Return the context of a request."""
        return Context(
            self.services,
            version,
            client_id,
            "PLAINTEXT",
            "/127.0.0.1",
            "User:A",
            NOW_MS,
        )

    async def produce(
        self,
        batches: dict[tuple[str | UUID, int], bytes | None],
        version: int = 12,
        acks: int = -1,
        **fields: Any,
    ) -> list[Any]:
        """The answers for the partitions, in the order of `batches`."""
        response = self.call(produce_request(batches, version, acks, **fields), version)
        if isinstance(response, Deferred):
            response = await arrival(response)
        return [answer for topic in response.responses for answer in topic.partition_responses]

    async def fetch(self, *wanted: FetchRequest.Topic, version: int = 12, **fields: Any) -> Any:
        """The whole response, from over the wire."""
        return await self.ask(fetch_request(*wanted, **fields), version)

    def lead(
        self, partition: Partition, epoch: int, leader: int = 0, isr: tuple[int, ...] = (0,)
    ) -> int:
        """Handle the controller's LeaderAndIsr; return the error code."""
        state = LeaderAndIsrPartitionState(
            partition_index=partition.index,
            controller_epoch=1,
            leader=leader,
            leader_epoch=epoch,
            isr=list(isr),
            partition_epoch=epoch,
            replicas=[0, 1, 2],
        )
        return self.replicas.lead_or_follow(partition.topic, partition.topic_id, state)


def produce_request(
    batches: dict[tuple[str | UUID, int], bytes | None],
    version: int = 12,
    acks: int = -1,
    **fields: Any,
) -> ProduceRequest:
    """Make a Produce with one batch for each partition, each under a topic entry of its own."""
    kind = ProduceRequest.TopicData
    topics = []
    for (topic, index), batch in batches.items():
        name: dict[str, Any] = {"topic_id": topic} if version >= BY_ID else {"name": topic}
        data = kind.PartitionData(index=index, records=batch)
        topics.append(kind(partition_data=[data], **name))
    values: dict[str, Any] = {"timeout_ms": 60_000, **fields}
    return ProduceRequest(acks=acks, topic_data=topics, **values)


def wanted(
    topic: str | UUID = TOPIC,
    index: int = 0,
    offset: int = 0,
    max_bytes: int = MIB,
    **fields: Any,
) -> FetchRequest.Topic:
    """One partition to fetch."""
    name: dict[str, Any] = {"topic": topic} if isinstance(topic, str) else {"topic_id": topic}
    partition = FetchRequest.Topic.Partition(
        partition=index, fetch_offset=offset, partition_max_bytes=max_bytes, **fields
    )
    return FetchRequest.Topic(partitions=[partition], **name)


def fetch_request(*topics: FetchRequest.Topic, **fields: Any) -> FetchRequest:
    """Make a Fetch that does not wait by default."""
    values: dict[str, Any] = {
        "max_wait_ms": 0,
        "min_bytes": 1,
        "max_bytes": MIB,
        "forgotten_topics_data": [],
        **fields,
    }
    return FetchRequest(topics=list(topics), **values)


async def fill(broker: DataBroker, count: int = 1, batches: int = 3) -> None:
    """A topic of `count` partitions that each hold batches of three records."""
    await broker.create_topic(count=count)
    for index in range(count):
        for _ in range(batches):
            await broker.produce({(TOPIC, index): records(3)})


def answers(response: Any) -> list[Any]:
    """The parts of a Fetch response, in order."""
    return [partition for topic in response.responses for partition in topic.partitions]


def offsets(answer: Any) -> list[int]:
    """Offsets of the records in whole batches of a Fetch answer."""
    data = as_bytes(answer.records or b"")
    return [
        record.offset
        for position, header in iterate_headers(data)
        for record in iterate_records(memoryview(data)[position : position + header.size_in_bytes])
    ]


def run_data_broker(
    directory: Path,
    scenario: Callable[[DataBroker], Coroutine[None, None, None]],
    **keys: Any,
) -> None:
    """Run a scenario on a broker whose configuration differs from the default by `keys`."""

    async def main() -> None:
        started = DataBroker(directory, BrokerConfig(**keys))
        await started.start()
        try:
            await scenario(started)
        finally:
            await started.stop()

    asyncio.run(main())
