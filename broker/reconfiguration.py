"""Applying a configuration that changed while the broker runs to the parts that it concerns.

Whoever reads `broker.config` each time needs nothing of this.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

    from broker.cluster.cluster import Cluster
    from broker.maintenance.log_cleaner import LogCleaner
    from broker.metadata.topic_configs import TopicConfigs
    from broker.network.connection_quotas import ConnectionQuotas
    from broker.partitions.replicas import Replicas
    from broker.runtime.slices import Slices
    from config.broker import BrokerConfig
    from controller.controller import Controller
    from storage.directory.directories import LogDirectories


class Reconfigurable(Protocol):
    """The parts of a broker that a configuration concerns."""

    config: BrokerConfig
    topic_configs: TopicConfigs
    replicas: Replicas
    controller: Controller
    cluster: Cluster
    limits: ConnectionQuotas
    logs: LogDirectories
    cleaner: LogCleaner | None

    def spawn(self, work: Coroutine[Any, Any, object], name: str, /) -> asyncio.Task[object]:
        """Run a coroutine in the background, in a task that the broker owns."""

    def slices(self) -> Slices:
        """For a piece of work that may be long."""


async def reconfigure(broker: Reconfigurable, config: BrokerConfig) -> None:
    """Go on with this configuration from now on."""
    broker.config = config
    await broker.topic_configs.apply_defaults(config.topic_defaults(), broker.replicas.by_topic)
    broker.controller.allow_unclean(by_default=config.unclean_leader_election_enable)
    broker.cluster.reconfigure(config)
    broker.spawn(broker.limits.change(config), "limits of connections")
    await _change_log_settings(broker.logs, config, broker.slices())
    if broker.cleaner is not None:
        broker.cleaner.reconfigure(config)


async def _change_log_settings(logs: LogDirectories, config: BrokerConfig, slices: Slices) -> None:
    settings = replace(
        logs.settings,
        producer_id_expiration_ms=config.producer_id_expiration_ms,
        verifies_transactions=config.transaction_partition_verification_enable,
    )
    if settings == logs.settings:
        return
    logs.settings = settings
    async for log in slices.each(logs):
        log.producers.guards.is_required = settings.verifies_transactions
