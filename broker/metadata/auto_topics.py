"""Creates topics on first use, by Metadata or FindCoordinator (`auto.create.topics.enable`).

Creation runs in the background; the client retries. A topic is created once at a time, and at most
as many partitions at a time as one request may create. Topics requested while others are being
created are created together afterwards, as each creation looks at the names of all topics.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from controller.metadata_store.store import StoreError
from controller.topics.topic_names import (
    GROUP_METADATA_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    collision_key,
    name_problem,
)
from controller.topics.topics import NewTopic
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any

    from broker.metadata.metadata_cache import MetadataCache
    from config.broker import BrokerConfig
    from controller.topics.topics import CreatedTopic, TopicCommands

logger = logging.getLogger(__name__)


def internal_topic_configs(config: BrokerConfig) -> dict[str, dict[str, str]]:
    """The topic configurations of the internal topics, for their creation or import."""
    return {
        GROUP_METADATA_TOPIC: {
            "compression.type": "producer",
            "cleanup.policy": "compact",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        },
        TRANSACTION_STATE_TOPIC: {
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "min.insync.replicas": str(config.transaction_state_log_min_isr),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        },
        SHARE_STATE_TOPIC: {
            "compression.type": "producer",
            "cleanup.policy": "delete",
            "min.insync.replicas": str(config.share_coordinator_state_topic_min_isr),
            "retention.ms": "-1",
            "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
        },
    }


class AutoTopics:
    """Creates topics with the broker's defaults, internal ones with their own configurations."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata: MetadataCache,
        commands: TopicCommands,
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
    ) -> None:
        """`spawn(coroutine, name)` runs a creation in the background."""
        self._config = config
        self._metadata = metadata
        self._commands = commands
        self._spawn = spawn
        self._under_way: dict[str, int] = {}
        self._keys_under_way: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        """Existing topics by collision key, as of a revision of metadata."""
        self._keys_revision = -1
        self._waiting: list[NewTopic] = []
        self._is_creating = False
        self._partitions_under_way = 0
        self.is_alone = True
        """True if no other broker can ever join: then no replication factor above 1 can be met."""

    def request(self, name: str) -> ErrorCode:
        """Begin to create a topic; returns the error code for the client until it exists."""
        if name in self._under_way:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if name_problem(name):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        topic = self._new_topic(name)
        if self._under_way and self._is_too_much(topic):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self._collides(name):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        brokers = self._metadata.racks
        if topic.replication_factor > len(brokers):
            logger.error(
                "topic %s not created: it needs %d replicas and there are %d live brokers",
                name,
                topic.replication_factor,
                len(brokers),
            )
            return ErrorCode.INVALID_REPLICATION_FACTOR
        self._under_way[name] = topic.partitions
        self._keys_under_way[collision_key(name)] = name
        self._partitions_under_way += topic.partitions
        self._waiting.append(topic)
        if not self._is_creating:
            self._is_creating = True
            self._spawn(self._create_all(), "create topics on first use")
        return ErrorCode.LEADER_NOT_AVAILABLE

    async def _create_all(self) -> None:
        try:
            while self._waiting:
                topics, self._waiting = self._waiting, []
                await self._create(topics)
        finally:
            self._is_creating = False

    async def _create(self, topics: list[NewTopic]) -> None:
        results: Mapping[str, CreatedTopic | ApiError | StoreError] = {}
        try:
            results = await self._commands.create(topics, self._metadata.racks)
        except StoreError as error:
            results = {topic.name: error for topic in topics}
        finally:
            for topic in topics:
                self._partitions_under_way -= self._under_way.pop(topic.name)
                del self._keys_under_way[collision_key(topic.name)]
        for topic in topics:
            self._tell(topic, results[topic.name])

    @staticmethod
    def _tell(topic: NewTopic, result: CreatedTopic | ApiError | StoreError) -> None:
        if isinstance(result, StoreError):
            logger.error("topic %s not created: %s", topic.name, result)
        elif not isinstance(result, ApiError):
            logger.info("topic %s auto-created: %s", topic.name, result)
        elif result.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            # An error the client can provoke and retry, as a collision with another creation.
            logger.warning("topic %s not created: %s", topic.name, result)

    def _collides(self, name: str) -> bool:
        """Return whether a topic has a name that differs in periods and underscores only.

        A request may name thousands of topics: existing ones are not all compared with each.
        """
        key = collision_key(name)
        if "_" not in key:
            return False
        if self._keys_revision != self._metadata.revision:
            self._keys_revision = self._metadata.revision
            named = ((collision_key(one), one) for one in self._metadata.topics)
            self._keys = {known: one for known, one in named if "_" in known}
        others = (self._keys.get(key, name), self._keys_under_way.get(key, name))
        return any(other != name for other in others)

    def _is_too_much(self, topic: NewTopic) -> bool:
        """Return whether this, with those under way, exceeds `max.new.partitions.per.request`."""
        wanted = self._partitions_under_way + topic.partitions
        return wanted > self._config.max_new_partitions_per_request

    def _new_topic(self, name: str) -> NewTopic:
        config = self._config
        counts = {
            GROUP_METADATA_TOPIC: (
                config.offsets_topic_num_partitions,
                1 if self.is_alone else config.offsets_topic_replication_factor,
            ),
            TRANSACTION_STATE_TOPIC: (
                config.transaction_state_log_num_partitions,
                1 if self.is_alone else config.transaction_state_log_replication_factor,
            ),
            SHARE_STATE_TOPIC: (
                config.share_coordinator_state_topic_num_partitions,
                1 if self.is_alone else config.share_coordinator_state_topic_replication_factor,
            ),
        }
        defaults = (config.num_partitions, config.default_replication_factor)
        partitions, factor = counts.get(name, defaults)
        configs = internal_topic_configs(config).get(name, {})
        return NewTopic(name, partitions, factor, configs=configs)
