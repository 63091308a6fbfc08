"""What a broker's place among others needs of the broker itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine
    from concurrent.futures import Executor

    from broker.metadata.auto_topics import AutoTopics
    from broker.metadata.metadata_cache import MetadataCache
    from broker.partitions.replicas import Replicas
    from broker.runtime.clock import Clock
    from broker.runtime.supervision import Supervision
    from broker.runtime.timers import Timers
    from config.broker import BrokerConfig
    from controller.controller import Controller


class ClusterServices(Protocol):
    """A broker as `Cluster` sees it; the later ones are there once `Cluster.start` is called."""

    config: BrokerConfig
    clock: Clock
    timers: Timers
    supervision: Supervision
    metadata: MetadataCache
    broker_epoch: int
    replica_threads: Executor

    replicas: Replicas
    controller: Controller
    auto_topics: AutoTopics

    @property
    def is_in_cluster(self) -> bool:
        """Whether there may be other brokers."""

    def spawn(self, work: Coroutine[Any, Any, object], name: str, /) -> asyncio.Task[object]:
        """Run a coroutine in the background, in a task that the broker owns."""
