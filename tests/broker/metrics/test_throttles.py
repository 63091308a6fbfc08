"""Numbers of clients that had to rest."""

from __future__ import annotations

import asyncio

from broker.metrics.throttles import throttles
from broker.quotas.client_quotas import ClientQuotas
from broker.quotas.quota_keys import QuotaKey
from config.broker import BrokerConfig


def samples(quotas: ClientQuotas) -> dict[str, dict[str, float]]:
    """Values by metric and quota."""
    return {
        metric.name: {sample.labels["quota"]: sample.value for sample in metric.samples}
        for metric in throttles(quotas)
    }


def test_throttle_metrics_are_labelled_by_quota() -> None:
    quotas = ClientQuotas(BrokerConfig(), lambda work, _: work.close())
    for kind, entity, key in (
        ("users", "alice", QuotaKey.PRODUCER_BYTE_RATE),
        ("ips", "10.0.0.1", QuotaKey.CONNECTION_CREATION_RATE),
    ):
        asyncio.run(quotas.changed(kind, entity, {str(key): "1"}))
    quotas.produce.of("alice", "x")
    quotas.produce.note_throttle(1500)
    quotas.produce.note_throttle(500)
    for _ in range(12):
        quotas.connections.throttle_ms("10.0.0.1", 0)

    told = samples(quotas)

    assert told["kafka_server_clientquota_throttles"] == {
        "producer_byte_rate": 2,
        "consumer_byte_rate": 0,
        "request_percentage": 0,
        "controller_mutation_rate": 0,
        "connection_creation_rate": 2,
    }
    assert told["kafka_server_clientquota_throttletime_seconds"]["producer_byte_rate"] == 2.0
    assert told["kafka_server_clientquota_tracked"]["producer_byte_rate"] == 1
