"""Applying a configuration that changed while the broker runs to the parts that it concerns.

Parts that read `BrokerServices.config` each time do not need this.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster
    from broker.maintenance.log_cleaner import LogCleaner
    from broker.maintenance.log_mover import LogMover
    from broker.network.connection_quotas import ConnectionQuotas
    from broker.requests.services import BrokerServices
    from broker.runtime.slices import Slices
    from config.broker import BrokerConfig
    from storage.directory.directories import LogDirectories


class Reconfigurable(NamedTuple):
    """The parts of a broker that a configuration concerns."""

    services: BrokerServices
    cluster: Cluster
    limits: ConnectionQuotas
    cleaner: LogCleaner | None
    """None when nothing is compacted here."""
    mover: LogMover


async def reconfigure(parts: Reconfigurable, config: BrokerConfig) -> None:
    """Go on with this configuration from now on."""
    broker = parts.services
    broker.config = config
    await broker.topic_configs.apply_defaults(config.topic_defaults(), broker.replicas.by_topic)
    broker.controller.allow_unclean(by_default=config.unclean_leader_election_enable)
    parts.cluster.reconfigure(config)
    broker.spawn(parts.limits.change(config), "limits of connections")
    await _change_log_settings(broker.logs, config, broker.slices())
    if parts.cleaner is not None:
        parts.cleaner.reconfigure(config)
    parts.mover.reconfigure(config)


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
