"""The parts of a broker that coordinators use: leaders here, other brokers, metadata, time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

    from broker.coordinators.groups import GroupCoordinators
    from broker.coordinators.internal_topics import InternalTopics
    from broker.metadata.metadata_cache import MetadataCache
    from broker.network.links import Links
    from broker.partitions.replicas import Replicas
    from broker.runtime.clock import Clock
    from broker.runtime.slices import Slices
    from broker.runtime.timers import Timers
    from config.broker import BrokerConfig
    from controller.metadata_store.store import MetadataStore


class CoordinatorServices(Protocol):
    """A running broker, as seen by its coordinators."""

    config: BrokerConfig
    clock: Clock
    timers: Timers
    store: MetadataStore
    metadata: MetadataCache
    replicas: Replicas
    internal_topics: InternalTopics
    groups: GroupCoordinators

    @property
    def cluster(self) -> Links:
        """The links to other brokers."""

    def spawn(self, work: Coroutine[Any, Any, object], name: str, /) -> asyncio.Task[object]:
        """Run a coroutine in the background, in a task that the broker owns."""

    def slices(self) -> Slices:
        """Slices for one piece of work that may take long."""
