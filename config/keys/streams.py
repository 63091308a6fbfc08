"""Streams groups; this broker has none yet."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, INT_MAX, integer


@dataclass(frozen=True, init=False, repr=False, eq=False)
class StreamsKeys:
    """Streams groups; this broker has none yet."""

    group_streams_assignment_interval_ms: int = integer(1000, low=0, scope=CLUSTER_WIDE)

    group_streams_heartbeat_interval_ms: int = integer(5000, low=1)

    group_streams_initial_rebalance_delay_ms: int = integer(3000, low=0)

    group_streams_max_assignment_interval_ms: int = integer(15_000, low=0)

    group_streams_max_heartbeat_interval_ms: int = integer(15_000, low=1)

    group_streams_max_session_timeout_ms: int = integer(60_000, low=1)

    group_streams_max_size: int = integer(INT_MAX, low=1)

    group_streams_max_standby_replicas: int = integer(2, low=0)

    group_streams_min_assignment_interval_ms: int = integer(0, low=0)

    group_streams_min_heartbeat_interval_ms: int = integer(5000, low=1)

    group_streams_min_session_timeout_ms: int = integer(45_000, low=1)

    group_streams_num_standby_replicas: int = integer(0, low=0)

    group_streams_session_timeout_ms: int = integer(45_000, low=1)
