"""Status of a broker, for rolling restarts of the brokers of a machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.metadata.metadata_cache import MetadataCache
    from broker.requests.services import BrokerServices

ATTEMPTS = 10
"""Maximum number of attempts at a count that is disturbed by changes of the metadata."""


def status_page(services: BrokerServices) -> bytes:
    """Status of a serving broker; on any thread.

    If it is cut off from ZooKeeper, the status is that of before.
    """
    broker_id = services.config.broker_id
    found = {
        "is_serving": True,
        "broker": broker_id,
        "out_of_sync": out_of_sync(services.metadata, broker_id),
        "is_cut_off": not services.store.is_reachable,
    }
    return json.dumps(found).encode()


def out_of_sync(metadata: MetadataCache, broker_id: int) -> int:
    """Partitions with a replica on this broker that lack a leader, or an in-sync replica.

    Whether it leads them or not: the replica that is missing may be its own.
    """
    for _ in range(ATTEMPTS):
        try:
            return _count(metadata, broker_id)
        except RuntimeError:  # a dictionary changed size during iteration
            continue
    return _count(metadata, broker_id)


def _count(metadata: MetadataCache, broker_id: int) -> int:
    return sum(
        state.leader < 0 or len(state.isr) < len(state.replicas)
        for topic in list(metadata.topics.values())
        for state in list(topic.partitions.values())
        if broker_id in state.replicas
    )
