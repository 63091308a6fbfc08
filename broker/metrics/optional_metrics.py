"""Metrics if they are wanted; otherwise something that costs nothing and does nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.requests.dispatch import Dispatcher

if TYPE_CHECKING:
    from broker.metrics.broker_metrics import Metrics
    from broker.metrics.endpoint import MetricsEndpoint
    from broker.metrics.sources import Sources
    from config.broker import BrokerConfig


async def wanted_endpoint(config: BrokerConfig) -> MetricsEndpoint | None:
    """Take the address that `metrics.port` asks for, on a thread; raises what is wrong with it.

    That is ListenError or ConfigError. Only then is the library imported, which takes 100 ms.
    """
    if config.metrics_port < 0:
        return None
    return await asyncio.to_thread(_bound, config)


def _bound(config: BrokerConfig) -> MetricsEndpoint:
    from broker.metrics.endpoint import MetricsEndpoint  # noqa: PLC0415
    from broker.metrics.endpoint_protection import protection_of  # noqa: PLC0415

    return MetricsEndpoint(config.metrics_host, config.metrics_port, protection_of(config))


def metrics_at(endpoint: MetricsEndpoint | None, sources: Sources) -> Metrics | NoMetrics:
    """What is served there, and the dispatcher that counts for it."""
    if endpoint is None:
        return NoMetrics(sources)
    from broker.metrics.broker_metrics import Metrics  # noqa: PLC0415

    return Metrics(endpoint, sources)


class NoMetrics:
    """Stands for `Metrics` when nobody wants any."""

    def __init__(self, sources: Sources) -> None:
        self.dispatcher = Dispatcher(sources.services)

    def serve(self) -> None:
        """Answer nothing."""

    def close(self) -> None:
        """Nothing was opened."""
