"""Produce and fetch requests: what the broker remembers and how much it answers."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, LOW, integer


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ProducerKeys:
    """Produce and fetch requests: what the broker remembers and how much it answers."""

    fetch_max_bytes: int = integer(55 << 20, low=1024)

    fetch_purgatory_purge_interval_requests: int = integer(1000)

    max_incremental_fetch_session_cache_slots: int = integer(1000, low=0)

    producer_id_expiration_check_interval_ms: int = integer(
        600_000, low=1, importance=LOW, internal=True
    )

    producer_id_expiration_ms: int = integer(86_400_000, low=1, importance=LOW, scope=CLUSTER_WIDE)

    producer_purgatory_purge_interval_requests: int = integer(1000)
