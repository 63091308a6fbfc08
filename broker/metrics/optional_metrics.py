"""Metrics if they are wanted; otherwise something that costs nothing and does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.dispatch import Dispatcher

if TYPE_CHECKING:
    from broker.maintenance.housekeeping import Housekeeping
    from broker.maintenance.log_cleaner import LogCleaner
    from broker.metrics.broker_metrics import Metrics
    from broker.metrics.collector import MeasuredBroker
    from broker.network.listener import Listeners


def wanted_metrics(broker: MeasuredBroker) -> Metrics | NoMetrics:
    """What `metrics.port` asks for; only then is the library imported, which takes 100 ms."""
    if broker.config.metrics_port < 0:
        return NoMetrics(broker)
    from broker.metrics.broker_metrics import Metrics  # noqa: PLC0415

    return Metrics(broker)


class NoMetrics:
    """Stands for `Metrics` when nobody wants any."""

    def __init__(self, broker: MeasuredBroker) -> None:
        self.dispatcher = Dispatcher(broker)

    def bind(self) -> None:
        """Take no address."""

    def serve(
        self, listeners: Listeners, housekeeping: Housekeeping, cleaner: LogCleaner | None
    ) -> None:
        """Answer nothing."""

    def close(self) -> None:
        """Nothing was opened."""
