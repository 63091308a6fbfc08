"""The internal topics of coordinators, and the broker that coordinates a key.

They are created when a client first looks for a coordinator. Apache Kafka answers that look-up with
COORDINATOR_NOT_AVAILABLE and lets the client retry; here it is answered once the topic exists,
which saves the first client of a new cluster a round of retries.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.runtime.deferred import Deferred, in_background
from controller.topics.topic_names import (
    GROUP_METADATA_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from coordinator.partitioner import partition_for
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from broker.metadata.auto_topics import AutoTopics
    from broker.metadata.metadata_cache import MetadataCache, Node
    from config.broker import BrokerConfig

GROUP_KEY: Final = 0
TRANSACTION_KEY: Final = 1
SHARE_KEY: Final = 2
NO_LEADER: Final = -1
CREATION_TIMEOUT_SECONDS = 5
"""Time that a look-up waits for the topic. Fixed: the client retries after that."""

UNDER_WAY = (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""Results of `AutoTopics.request` that mean that the topic is being created."""


class InternalTopic(NamedTuple):
    """One of the topics, and the number of partitions it is created with."""

    name: str
    partitions: int


class InternalTopics:
    """Finds coordinators by the key types of FindCoordinator. `BrokerServices.internal_topics`."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata: MetadataCache,
        auto_topics: AutoTopics,
        spawn: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[object]],
    ) -> None:
        self._topics = {
            GROUP_KEY: InternalTopic(GROUP_METADATA_TOPIC, config.offsets_topic_num_partitions),
            TRANSACTION_KEY: InternalTopic(
                TRANSACTION_STATE_TOPIC, config.transaction_state_log_num_partitions
            ),
            SHARE_KEY: InternalTopic(
                SHARE_STATE_TOPIC, config.share_coordinator_state_topic_num_partitions
            ),
        }
        self._metadata = metadata
        self._auto_topics = auto_topics
        self._spawn = spawn

    def partition_count(self, key_type: int) -> int:
        """Number of partitions of the topic, now or once it is created."""
        known = self._metadata.topic(self._topics[key_type].name)
        return self._topics[key_type].partitions if known is None else len(known.partitions)

    def when_ready(self, key_type: int) -> Deferred[None]:
        """Complete once the topic exists: at once if it does, else after creating it.

        Fails with INVALID_REQUEST for an unknown type of coordinator, and with
        COORDINATOR_NOT_AVAILABLE if the topic cannot be created now.
        """
        topic = self._topics.get(key_type)
        ready: Deferred[None] = Deferred()
        if topic is None:
            reason = f"no coordinators of type {key_type} here"
            ready.fail(ApiError(ErrorCode.INVALID_REQUEST, reason))
        elif self._metadata.topic(topic.name) is not None:
            ready.complete(None)
        elif self._auto_topics.request(topic.name) in UNDER_WAY:
            return in_background(self._spawn, self._wait(topic), f"wait for {topic.name}")
        else:
            reason = "there are not enough brokers for its replication factor"
            ready.fail(_refusal(topic, reason))
        return ready

    def leader(self, key_type: int, key: str) -> int:
        """Broker id of the leader of the key's partition; negative if none is known."""
        index = partition_for(key, self.partition_count(key_type))
        state = self._metadata.partition(self._topics[key_type].name, index)
        return NO_LEADER if state is None else state.leader

    def coordinator(self, key_type: int, key: str, listener: str) -> Node:
        """The broker that leads the key's partition. Raises ApiError COORDINATOR_NOT_AVAILABLE."""
        node = self._metadata.node(self.leader(key_type, key), listener)
        if node is None:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return node

    async def _wait(self, topic: InternalTopic) -> None:
        def has_leaders() -> bool:
            known = self._metadata.topic(topic.name)
            return known is not None and known.has_all_leaders

        try:
            async with asyncio.timeout(CREATION_TIMEOUT_SECONDS):
                await self._metadata.wait_until(has_leaders)
        except TimeoutError:
            raise _refusal(topic, "it has no leaders yet") from None


def _refusal(topic: InternalTopic, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic.name} cannot be created: {reason}"
    )
