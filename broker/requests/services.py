"""What handlers reach of a broker: its parts, by name. `broker.app.Broker` provides them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

    from broker.cluster.control_request_queue import ControlRequestQueue
    from broker.coordinators.groups import GroupCoordinators
    from broker.coordinators.internal_topics import InternalTopics
    from broker.coordinators.producer_id_blocks import ProducerIdBlocks
    from broker.coordinators.transactions import TransactionCoordinators
    from broker.fetch.fetch_sessions import FetchSessions
    from broker.metadata.auto_topics import AutoTopics
    from broker.metadata.broker_configs import BrokerConfigs
    from broker.metadata.metadata_cache import MetadataCache
    from broker.metadata.topic_configs import TopicConfigs
    from broker.network.links import Links
    from broker.partitions.replicas import Replicas
    from broker.runtime.clock import Clock
    from broker.runtime.compute_pool import ComputePool
    from broker.runtime.slices import Slices
    from broker.runtime.timers import Timers
    from config.broker import BrokerConfig
    from controller.controller import Controller
    from controller.metadata_store.store import MetadataStore
    from controller.topics.topics import TopicCommands
    from storage.directory.directories import LogDirectories


class BrokerServices(Protocol):
    """A running broker as its handlers see it."""

    config: BrokerConfig
    clock: Clock
    timers: Timers
    compute_pool: ComputePool

    cluster_id: str
    broker_epoch: int
    endpoints: dict[str, tuple[str, int]]
    logs: LogDirectories
    store: MetadataStore
    metadata: MetadataCache
    topic_configs: TopicConfigs
    broker_configs: BrokerConfigs
    auto_topics: AutoTopics
    replicas: Replicas
    fetch_sessions: FetchSessions
    control: ControlRequestQueue
    controller: Controller
    topics: TopicCommands
    internal_topics: InternalTopics
    groups: GroupCoordinators
    transactions: TransactionCoordinators
    producer_ids: ProducerIdBlocks

    @property
    def cluster(self) -> Links:
        """The way to other brokers."""

    @property
    def is_in_cluster(self) -> bool:
        """Whether there may be other brokers."""

    def spawn(self, work: Coroutine[Any, Any, object], name: str, /) -> asyncio.Task[object]:
        """Run a coroutine in the background, in a task that the broker owns."""

    def slices(self) -> Slices:
        """For a piece of work that may be long."""
