"""Dead letters on their way to the leader of their partition, be it this broker or another."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from broker.network.links import LinkError
from broker.replication.replica_machine import ACKS_ALL
from broker.runtime.deferred import Deferred, awaited
from controller.topics.topic_names import INTERNAL_TOPICS
from protocol.errors import ApiError, ErrorCode
from protocol.messages.produce import ProduceRequest, ProduceResponse
from protocol.records.recompression import recompress
from storage.append.append_source import FROM_RECOMPRESSION

if TYPE_CHECKING:
    from broker.metadata.auto_topics import AutoTopics
    from broker.metadata.metadata_cache import MetadataCache
    from broker.network.links import Link, Links
    from broker.partitions.partition import Partition
    from broker.partitions.replicas import Replicas
    from broker.runtime.clock import Clock
    from broker.runtime.compute_pool import ComputePool

VERSION: Final = 9
"""Of Produce: Apache Kafka 2.8 and later understand it."""
PURPOSE: Final = "dead-letters"
TIMEOUT_MS: Final = 30_000
"""Time the leader waits for its in-sync replicas. Fixed: the batch is sent again after it."""


class SenderParts(NamedTuple):
    """Services of a broker needed to send."""

    broker_id: int
    clock: Clock
    metadata: MetadataCache
    auto_topics: AutoTopics
    replicas: Replicas
    links: Links
    compute_pool: ComputePool


class DeadLetterSender:
    """Sends for all partitions that this broker leads; creates a topic that is missing."""

    def __init__(self, parts: SenderParts) -> None:
        self._parts = parts
        self._links: dict[int, Link] = {}

    def close(self) -> None:
        """Close the connections."""
        for link in self._links.values():
            link.close()
        self._links.clear()

    async def send(self, topic: str, index: int, batch: bytearray) -> ErrorCode:
        """Send a batch to partition `index`, or one with the remainder where there are fewer.

        NONE means that all in-sync replicas have it, now or since it was sent before.
        """
        if topic in INTERNAL_TOPICS:  # any user that may configure a topic could write to it
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        metadata = self._parts.metadata
        known = metadata.topic(topic)
        if known is None:
            return self._parts.auto_topics.request(topic)
        index %= len(known.partitions)
        state = metadata.partition(topic, index)
        if state is None or state.leader < 0:
            return ErrorCode.LEADER_NOT_AVAILABLE
        if state.leader == self._parts.broker_id:
            return await self._append(topic, index, batch)
        return await self._ask(state.leader, topic, index, batch)

    async def _ask(self, leader: int, topic: str, index: int, batch: bytearray) -> ErrorCode:
        kind = ProduceRequest.TopicData
        data = kind.PartitionData(index=index, records=batch)
        request = ProduceRequest(
            acks=ACKS_ALL,
            timeout_ms=TIMEOUT_MS,
            topic_data=[kind(name=topic, partition_data=[data])],
        )
        link = self._links.get(leader)
        if link is None:
            link = self._links[leader] = self._parts.links.link(leader, PURPOSE)
        try:
            response = cast("ProduceResponse", await link.ask(request, VERSION))
        except LinkError:
            return ErrorCode.NETWORK_EXCEPTION
        (answered,) = response.responses
        return ErrorCode(answered.partition_responses[0].error_code)

    async def _append(self, topic: str, index: int, batch: bytearray) -> ErrorCode:
        parts = self._parts
        partition = parts.replicas.partition(topic, index)
        if partition is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        try:
            work = partial(recompress, batch, partition.log.produce_rules, parts.clock.now_ms())
            sound = memoryview(await awaited(parts.compute_pool.run(work)))
            info = partition.append_records(
                sound, ACKS_ALL, FROM_RECOMPRESSION, parts.clock.now_ms()
            )
        except ApiError as error:
            return error.code
        return await committed(partition, info.last_offset + 1)


async def committed(partition: Partition, offset: int) -> ErrorCode:
    """NONE once the high watermark is at `offset`, or why it will not be."""
    code: Deferred[ErrorCode] = Deferred()
    waiter = partition.when_committed(offset, code.guard(code.complete))
    try:
        return await awaited(code)
    finally:
        waiter.cancel()
