"""The parts of a broker that coordinators use: leaders here, other brokers, metadata, time."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

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


@dataclasses.dataclass(frozen=True, slots=True)
class CoordinatorServices:
    """A running broker, as seen by its coordinators."""

    config: BrokerConfig
    """As it was when the broker started: nothing of it that concerns coordinators changes."""
    clock: Clock
    timers: Timers
    spawn: Callable[[Coroutine[Any, Any, None], str], object]
    """Runs a coroutine in the background, in a task that the broker owns."""
    slices: Callable[[], Slices]
    """Slices for one piece of work that may take long."""
    store: MetadataStore
    metadata: MetadataCache
    replicas: Replicas
    links: Links
    """The links to other brokers."""
    internal_topics: InternalTopics
    groups: GroupCoordinators
