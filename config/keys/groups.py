"""Consumer groups, classic and of the newer protocol, and their coordinator."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, HIGH, INT_MAX, boolean, integer, string, strings
from config.rules import OneOf


@dataclass(frozen=True, init=False, repr=False, eq=False)
class GroupKeys:
    """Consumer groups, classic and of the newer protocol, and their coordinator."""

    group_consumer_assignment_interval_ms: int = integer(1000, low=0, scope=CLUSTER_WIDE)

    group_consumer_assignors: tuple[str, ...] = strings(
        "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
        "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
    )

    group_consumer_heartbeat_interval_ms: int = integer(5000, low=1)

    group_consumer_max_assignment_interval_ms: int = integer(15_000, low=0)

    group_consumer_max_heartbeat_interval_ms: int = integer(15_000, low=1)

    group_consumer_max_session_timeout_ms: int = integer(60_000, low=1)

    group_consumer_max_size: int = integer(INT_MAX, low=1)

    group_consumer_migration_policy: str = string(
        "disabled",
        rule=OneOf(("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"), ignore_case=True),
    )

    group_consumer_min_assignment_interval_ms: int = integer(0, low=0)

    group_consumer_min_heartbeat_interval_ms: int = integer(5000, low=1)

    group_consumer_min_session_timeout_ms: int = integer(45_000, low=1)

    group_consumer_regex_refresh_interval_ms: int = integer(600_000, low=10_000, internal=True)

    group_consumer_session_timeout_ms: int = integer(45_000, low=1)

    group_coordinator_append_linger_ms: int = integer(10, low=0)

    group_coordinator_background_threads: int = integer(2, low=1, importance=HIGH)

    group_coordinator_cached_buffer_max_bytes: int = integer(
        1_048_588, low=512 << 10, scope=CLUSTER_WIDE
    )

    group_coordinator_new_enable: bool = boolean(False, internal=True)

    group_coordinator_rebalance_protocols: tuple[str, ...] = strings(
        "classic", choices=("classic", "consumer", "share", "streams")
    )

    group_coordinator_threads: int = integer(1, low=1)

    group_initial_rebalance_delay_ms: int = integer(3000)

    group_max_session_timeout_ms: int = integer(1_800_000)

    group_max_size: int = integer(INT_MAX, low=1)

    group_min_session_timeout_ms: int = integer(6000)
