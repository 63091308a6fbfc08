"""Metrics pushed by clients, and counts of their pushes: a page of its own, because of its size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from broker.metrics.collector import steadily

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.telemetry.telemetry import Telemetry

_GROUP = "kafka_server_client_metrics_"


class ClientCollector(Collector):
    """Numbers of clients have no type here, as two clients may push one name as two things."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    def collect(self) -> list[Metric]:
        """Read all that there is."""
        return steadily(self._families)

    def _families(self) -> Iterator[Metric]:
        telemetry = self._telemetry
        instances, series = len(telemetry.instances), len(telemetry.series)
        yield GaugeMetricFamily(f"{_GROUP}instance_count", "Clients that push", instances)
        yield GaugeMetricFamily(f"{_GROUP}series", "Numbers kept of what they push", series)
        for name, text, number in (
            ("throttle", "Requests that came too soon", telemetry.throttled),
            (
                "unknown_subscription_request",
                "Pushes for subscriptions that have changed",
                telemetry.unknown_subscriptions,
            ),
            ("plugin_error", "Pushes that could not be read", telemetry.unreadable),
            ("left_out", "Data points that were not kept", telemetry.series.left_out),
        ):
            yield CounterMetricFamily(f"{_GROUP}{name}", text, number)
        families: dict[str, Metric] = {}
        for sample in telemetry.series.samples():
            family = families.get(sample.name)
            if family is None:
                family = families[sample.name] = Metric(sample.name, "Pushed by clients", "unknown")
            family.add_sample(sample.name, sample.labels, sample.value)
        yield from families.values()
