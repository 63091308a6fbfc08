"""Metrics if enabled; otherwise a placeholder without cost or effect."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from broker.metrics.health import status_page
from broker.metrics.status_socket import STATUS, StatusSocket
from broker.requests.dispatch import Dispatcher

if TYPE_CHECKING:
    from broker.metrics.broker_metrics import Metrics
    from broker.metrics.endpoint import MetricsEndpoint
    from broker.metrics.sources import Sources
    from config.broker import BrokerConfig


class Doors(NamedTuple):
    """Endpoints for metrics and status; each is None if not wanted."""

    endpoint: MetricsEndpoint | None
    status: StatusSocket | None

    def close(self) -> None:
        """Stop answering."""
        if self.endpoint is not None:
            self.endpoint.close()
        if self.status is not None:
            self.status.close()


async def wanted_doors(config: BrokerConfig) -> Doors:
    """Bind the addresses of `metrics.port` and `status.socket`, on a thread.

    Raises ListenError or ConfigError. The library is imported with a port only, which takes 100 ms.
    """
    if config.metrics_port < 0 and config.status_socket is None:
        return Doors(None, None)
    return await asyncio.to_thread(_bound, config)


def _bound(config: BrokerConfig) -> Doors:
    status = None if config.status_socket is None else StatusSocket(config.status_socket)
    try:
        endpoint = None if config.metrics_port < 0 else bound_endpoint(config)
    except BaseException:
        Doors(None, status).close()
        raise
    return Doors(endpoint, status)


def bound_endpoint(config: BrokerConfig) -> MetricsEndpoint:
    """Take the address of `metrics.port`, which is one; raises ListenError or ConfigError."""
    from broker.http.protection import guard_of_metrics, protection_of  # noqa: PLC0415
    from broker.metrics.endpoint import MetricsEndpoint  # noqa: PLC0415

    protection = protection_of(config, guard_of_metrics(config))
    return MetricsEndpoint(config.metrics_host, config.metrics_port, protection)


def metrics_at(doors: Doors, sources: Sources) -> Metrics | NoMetrics:
    """Metrics served there, and the dispatcher that counts for them."""
    if doors.endpoint is None and not sources.services.config.status_socket_metrics:
        return NoMetrics(doors, sources)
    from broker.metrics.broker_metrics import Metrics  # noqa: PLC0415

    return Metrics(doors, sources)


class NoMetrics:
    """Placeholder for `Metrics` if they are disabled."""

    def __init__(self, doors: Doors, sources: Sources) -> None:
        self.dispatcher = Dispatcher(sources.services)
        self._doors = doors
        self._status = partial(status_page, sources.services)

    def serve(self) -> None:
        """Answer status requests, if enabled."""
        if self._doors.status is not None:
            self._doors.status.serve({STATUS: self._status})

    def close(self) -> None:
        """Stop answering."""
        self._doors.close()
