"""A broker's metrics as one thing: the dispatcher that counts, and the endpoint."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.metrics.collector import BrokerCollector, Sources
from broker.metrics.endpoint import PATH, MetricsEndpoint
from broker.metrics.partitions import PartitionCollector
from broker.metrics.request_counts import CountingDispatcher

if TYPE_CHECKING:
    from broker.maintenance.housekeeping import Housekeeping
    from broker.maintenance.log_cleaner import LogCleaner
    from broker.metrics.collector import MeasuredBroker
    from broker.network.listener import Listeners

logger = logging.getLogger(__name__)


class Metrics:
    """Made with the broker, bound and served with its listeners."""

    def __init__(self, broker: MeasuredBroker) -> None:
        self._broker = broker
        self.dispatcher = CountingDispatcher(broker)
        self._endpoint: MetricsEndpoint | None = None

    @property
    def port(self) -> int:
        """Where they are served; only while they are."""
        assert self._endpoint is not None
        return self._endpoint.port

    def bind(self) -> None:
        """Take the address; raises ListenError."""
        config = self._broker.config
        self._endpoint = MetricsEndpoint(config.metrics_host, config.metrics_port)

    def serve(
        self, listeners: Listeners, housekeeping: Housekeeping, cleaner: LogCleaner | None
    ) -> None:
        """Begin to answer, once the parts are there."""
        assert self._endpoint is not None
        counts = self.dispatcher.counts
        sources = Sources(self._broker, listeners, housekeeping, cleaner)
        self._endpoint.serve(BrokerCollector(sources, counts), PartitionCollector(self._broker))
        logger.info("metrics at http://%s%s", self._endpoint.address, PATH)

    def close(self) -> None:
        """Answer no more."""
        if self._endpoint is not None:
            self._endpoint.close()
