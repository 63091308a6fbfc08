"""A broker's metrics as one thing: the dispatcher that counts, and where they are served."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import generate_latest

from broker.metrics.clients import ClientCollector
from broker.metrics.collector import BrokerCollector
from broker.metrics.endpoint import CLIENTS_PATH, PARTITIONS_PATH, PATH
from broker.metrics.health import status_page
from broker.metrics.partitions import PartitionCollector
from broker.metrics.request_counts import CountingDispatcher
from broker.metrics.status_socket import METRICS, PARTITIONS, STATUS

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from broker.metrics.optional_metrics import Doors
    from broker.metrics.sources import Sources

logger = logging.getLogger(__name__)


class Metrics:
    """Made once the address is taken and the parts are there."""

    def __init__(self, doors: Doors, sources: Sources) -> None:
        self._doors = doors
        self._sources = sources
        self.dispatcher = CountingDispatcher(sources.services)

    def serve(self) -> None:
        """Begin to answer."""
        services, (endpoint, status) = self._sources.services, self._doors
        of_broker = _registry(BrokerCollector(self._sources, self.dispatcher.counts))
        ProcessCollector(registry=of_broker)
        whole = partial(generate_latest, of_broker)
        partitions = partial(generate_latest, _registry(PartitionCollector(services)))
        if endpoint is not None:
            pages = {PATH: whole, PARTITIONS_PATH: partitions}
            if services.telemetry is not None:
                clients = _registry(ClientCollector(services.telemetry))
                pages[CLIENTS_PATH] = partial(generate_latest, clients)
            endpoint.serve(pages)
            logger.info("metrics at %s%s", endpoint.url, PATH)
        if status is not None:
            of_status = partial(status_page, services)
            status.serve({STATUS: of_status, METRICS: whole, PARTITIONS: partitions})

    def close(self) -> None:
        """Stop answering."""
        self._doors.close()


def _registry(collector: Collector) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(collector)
    return registry
