"""Successful and failed authentications of clients, by listener."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.metrics_core import CounterMetricFamily

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client.metrics_core import Metric

    from broker.network.authentication.sasl_listener import SaslListener

NAME = "kafka_server_socketservermetrics_"


def authentications(listeners: Mapping[str, SaslListener]) -> Iterator[Metric]:
    """Named as Apache Kafka's; none on a broker without SASL."""
    if not listeners:
        return
    counts = {name: listener.counts for name, listener in listeners.items()}
    told = {
        "successful_authentication": {name: one.first.succeeded for name, one in counts.items()},
        "failed_authentication": {name: one.first.failed for name, one in counts.items()},
        "successful_reauthentication": {name: one.again.succeeded for name, one in counts.items()},
        "failed_reauthentication": {name: one.again.failed for name, one in counts.items()},
        "expired_connections_killed": {name: one.expired for name, one in counts.items()},
    }
    for what, values in told.items():
        family = CounterMetricFamily(
            f"{NAME}{what}", f"{what.replace('_', ' ').capitalize()}, by SASL", labels=["listener"]
        )
        for listener, value in values.items():
            family.add_metric([listener], value)
        yield family
