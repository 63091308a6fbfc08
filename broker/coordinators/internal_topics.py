"""The topics in which coordinators keep their state, and who coordinates what.

They are created when a client first looks for a coordinator. Apache answers that first look-up with
COORDINATOR_NOT_AVAILABLE and lets the client come back; we answer it when the topic is there, which
saves every new cluster's first client a round of retries.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from controller.topics import NewTopic
from coordinator.partitioning import partition_for
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from broker.metadata_cache import MetadataCache, Node
    from config.broker import BrokerConfig
    from controller.topics import TopicCommands

logger = logging.getLogger(__name__)

GROUP_KEY: Final = 0
TRANSACTION_KEY: Final = 1
OFFSETS_TOPIC: Final = "__consumer_offsets"
CREATION_TIMEOUT_SECONDS = 30


class InternalTopic(NamedTuple):
    """How one of the topics is created, if it does not exist."""

    name: str
    partitions: int
    replication_factor: int
    segment_bytes: int

    def new_topic(self) -> NewTopic:
        """What to create; the overrides are Apache's."""
        return NewTopic(
            name=self.name,
            partitions=self.partitions,
            replication_factor=self.replication_factor,
            configs={
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(self.segment_bytes),
            },
        )


def internal_topics(config: BrokerConfig) -> dict[int, InternalTopic]:
    """The topics by key type of FindCoordinator.

    A broker with embedded metadata is alone for good: there a replication factor above 1, such as
    the default of 3, could never be met, and is taken for 1. With ZooKeeper it is met or refused.
    """
    factor = config.offsets_topic_replication_factor if config.zookeeper_connect else 1
    return {
        GROUP_KEY: InternalTopic(
            OFFSETS_TOPIC,
            config.offsets_topic_num_partitions,
            factor,
            config.offsets_topic_segment_bytes,
        )
    }


class InternalTopics:
    """Finds coordinators, creating their topics when need be. `Broker.internal_topics`."""

    def __init__(
        self,
        topics: dict[int, InternalTopic],
        metadata: MetadataCache,
        commands: TopicCommands,
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        self._topics = topics
        self._metadata = metadata
        self._commands = commands
        self._spawn = spawn
        self._waiting: dict[int, list[Callable[[ApiError | None], None]]] = {}
        self._last_failure = ""

    def partition_count(self, key_type: int) -> int:
        """How many partitions the topic has, or will have."""
        known = self._metadata.topic(self._topics[key_type].name)
        return self._topics[key_type].partitions if known is None else len(known.partitions)

    def when_ready(self, key_type: int, ready: Callable[[ApiError | None], None]) -> None:
        """Call `ready(None)` once the topic exists: at once if it does, else after creating it.

        It gets COORDINATOR_NOT_AVAILABLE, with the reason, when that is not possible now.
        """
        topic = self._topics.get(key_type)
        if topic is None:
            ready(ApiError(ErrorCode.INVALID_REQUEST, f"no coordinators of type {key_type} here"))
        elif self._metadata.topic(topic.name) is not None:
            ready(None)
        elif key_type in self._waiting:
            self._waiting[key_type].append(ready)
        else:
            self._waiting[key_type] = [ready]
            self._spawn(self._create(key_type, topic), f"create {topic.name}")

    def coordinator(self, key_type: int, key: str, listener: str) -> Node:
        """The broker that leads the key's partition; raises COORDINATOR_NOT_AVAILABLE."""
        index = partition_for(key, self.partition_count(key_type))
        state = self._metadata.partition(self._topics[key_type].name, index)
        node = None if state is None else self._metadata.node(state.leader, listener)
        if node is None:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return node

    async def _create(self, key_type: int, topic: InternalTopic) -> None:
        failure: ApiError | None = ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        try:
            async with asyncio.timeout(CREATION_TIMEOUT_SECONDS):
                failure = await self._try_to_create(topic)
        except TimeoutError:
            failure = self._refusal(topic, "it got no leaders in time")
        finally:
            for ready in self._waiting.pop(key_type):
                ready(failure)

    async def _try_to_create(self, topic: InternalTopic) -> ApiError | None:
        results = await self._commands.create([topic.new_topic()], self._metadata.racks)
        result = results[topic.name]
        if isinstance(result, ApiError) and result.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            return self._refusal(topic, result.message)
        await self._metadata.wait_until(lambda: self._has_leaders(topic))
        return None

    def _has_leaders(self, topic: InternalTopic) -> bool:
        known = self._metadata.topic(topic.name)
        return known is not None and known.has_all_leaders

    def _refusal(self, topic: InternalTopic, reason: str) -> ApiError:
        if reason != self._last_failure:
            logger.warning("%s cannot be created: %s", topic.name, reason)
            self._last_failure = reason
        return ApiError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic.name} cannot be created: {reason}"
        )
