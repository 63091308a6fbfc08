"""A broker's metrics as one thing: the dispatcher that counts, and the endpoint."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.metrics.collector import BrokerCollector
from broker.metrics.endpoint import PATH
from broker.metrics.partitions import PartitionCollector
from broker.metrics.request_counts import CountingDispatcher

if TYPE_CHECKING:
    from broker.metrics.endpoint import MetricsEndpoint
    from broker.metrics.sources import Sources

logger = logging.getLogger(__name__)


class Metrics:
    """Made once the address is taken and the parts are there."""

    def __init__(self, endpoint: MetricsEndpoint, sources: Sources) -> None:
        self._endpoint = endpoint
        self._sources = sources
        self.dispatcher = CountingDispatcher(sources.services)

    def serve(self) -> None:
        """Begin to answer."""
        self._endpoint.serve(
            BrokerCollector(self._sources, self.dispatcher.counts),
            PartitionCollector(self._sources.services),
        )
        logger.info("metrics at http://%s%s", self._endpoint.address, PATH)

    def close(self) -> None:
        """Answer no more."""
        self._endpoint.close()
