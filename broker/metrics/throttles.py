"""Number and duration of throttles, by quota."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

from broker.quotas.quota_keys import QuotaKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

    from broker.quotas.client_quotas import ClientQuotas

SECOND_MS = 1000


def throttles(quotas: ClientQuotas) -> Iterator[Metric]:
    """By quota. Users and client ids are left out: strangers determine their number."""
    name = "kafka_server_clientquota_"
    label = ["quota"]
    counts = CounterMetricFamily(f"{name}throttles", "Answers that made rest", labels=label)
    text = "Time for which clients had to rest"
    times = CounterMetricFamily(f"{name}throttletime_seconds", text, labels=label)
    text = "Users, client ids or both whose use is kept"
    kept = GaugeMetricFamily(f"{name}tracked", text, labels=label)
    for key, meters in quotas.by_key.items():
        counts.add_metric([key], meters.throttle_count)
        times.add_metric([key], meters.throttle_ms / SECOND_MS)
        kept.add_metric([key], len(meters))
    refused = quotas.connections.throttle_count
    counts.add_metric([QuotaKey.CONNECTION_CREATION_RATE], refused)
    yield counts
    yield times
    yield kept
