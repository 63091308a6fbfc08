"""Produce and fetch requests: limits and caches."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, LOW, integer


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ProducerKeys:
    """Produce and fetch requests: limits and caches."""

    fetch_max_bytes: int = integer(55 << 20, low=1024, acts=True)
    """Most bytes of records in one answer to Fetch, whatever the client asks for."""

    fetch_purgatory_purge_interval_requests: int = integer(1000)
    """Finished fetches after which their remains are cleared."""

    max_incremental_fetch_session_cache_slots: int = integer(1000, low=0, acts=True)
    """Incremental fetch sessions remembered at one time."""

    producer_id_expiration_check_interval_ms: int = integer(
        600_000, low=1, importance=LOW, acts=True, internal=True
    )
    """Interval between checks for producers whose state has expired."""

    producer_id_expiration_ms: int = integer(
        86_400_000, low=1, importance=LOW, scope=CLUSTER_WIDE, acts=True
    )
    """Time without a record after which a partition forgets a producer."""

    producer_purgatory_purge_interval_requests: int = integer(1000)
    """Finished produces after which their remains are cleared."""
