"""Consumer groups, classic and of the newer protocol, and their coordinator."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, HIGH, INT_MAX, boolean, integer, string, strings
from config.rules import NotEmpty, OneOf


@dataclass(frozen=True, init=False, repr=False, eq=False)
class GroupKeys:
    """Consumer groups, classic and of the newer protocol, and their coordinator."""

    group_consumer_assignment_interval_ms: int = integer(1000, low=0, scope=CLUSTER_WIDE, acts=True)
    """Wait between two assignments of one consumer group."""

    group_consumer_assignor_offload_enable: bool = boolean(True, internal=True, scope=CLUSTER_WIDE)
    """Compute assignments on a separate thread in Apache Kafka."""

    group_consumer_assignors: tuple[str, ...] = strings(
        "org.apache.kafka.coordinator.group.assignor.UniformAssignor",
        "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
        rule=NotEmpty(),
        acts=True,
    )
    """Assignors the broker offers to consumer groups; the first is the default."""

    group_consumer_heartbeat_interval_ms: int = integer(5000, low=1, acts=True)
    """Interval between heartbeats of consumer group members."""

    group_consumer_max_assignment_interval_ms: int = integer(15_000, low=0, acts=True)
    """Upper bound of a group's own assignment interval."""

    group_consumer_max_heartbeat_interval_ms: int = integer(15_000, low=1, acts=True)
    """Upper bound of a group's own heartbeat interval."""

    group_consumer_max_session_timeout_ms: int = integer(60_000, low=1, acts=True)
    """Upper bound of a group's own session timeout."""

    group_consumer_max_size: int = integer(INT_MAX, low=1, acts=True)
    """Members a consumer group may have."""

    group_consumer_migration_policy: str = string(
        "bidirectional",
        rule=OneOf(("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"), ignore_case=True),
        acts=True,
    )
    """Conversions of groups between the two protocols that are allowed while they have members."""

    group_consumer_min_assignment_interval_ms: int = integer(0, low=0, acts=True)
    """Lower bound of a group's own assignment interval."""

    group_consumer_min_heartbeat_interval_ms: int = integer(5000, low=1, acts=True)
    """Lower bound of a group's own heartbeat interval."""

    group_consumer_min_session_timeout_ms: int = integer(45_000, low=1, acts=True)
    """Lower bound of a group's own session timeout."""

    group_consumer_regex_refresh_interval_ms: int = integer(
        600_000, low=10_000, internal=True, acts=True
    )
    """Interval at which subscriptions by pattern are matched against the topics."""

    group_consumer_session_timeout_ms: int = integer(45_000, low=1, acts=True)
    """Silence after which a member of a consumer group is removed."""

    group_coordinator_append_linger_ms: int = integer(10, low=-1)
    """Time for which the group coordinator gathers writes into one batch."""

    group_coordinator_background_threads: int = integer(2, low=1, importance=HIGH)
    """Threads for the group coordinator's slow work."""

    group_coordinator_cached_buffer_max_bytes: int = integer(
        1_048_588, low=512 << 10, scope=CLUSTER_WIDE
    )
    """Largest write buffer the group coordinator keeps for reuse."""

    group_coordinator_new_enable: bool = boolean(False, internal=True)
    """Use the newer coordinator in Apache Kafka 3.9."""

    group_coordinator_rebalance_protocols: tuple[str, ...] = strings(
        *("classic", "consumer", "streams"),
        choices=("classic", "consumer", "share", "streams"),
        acts=True,
    )
    """Group protocols that are offered."""

    group_coordinator_threads: int = integer(1, low=1)
    """Threads the group coordinator runs on."""

    group_initial_rebalance_delay_ms: int = integer(3000, acts=True)
    """Time that an empty classic group waits for more members to join."""

    group_max_session_timeout_ms: int = integer(1_800_000, acts=True)
    """Longest session timeout a member of a classic group may ask for."""

    group_max_size: int = integer(INT_MAX, low=1, acts=True)
    """Members a classic group may have."""

    group_min_session_timeout_ms: int = integer(6000, acts=True)
    """Shortest session timeout a member of a classic group may ask for."""
