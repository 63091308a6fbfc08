"""Streams groups (KIP-1071): members of Kafka Streams applications."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, INT_MAX, LOW, boolean, class_name, integer, long, strings
from config.rules import NotEmpty


@dataclass(frozen=True, init=False, repr=False, eq=False)
class StreamsKeys:
    """Streams groups (KIP-1071): members of Kafka Streams applications."""

    group_streams_acceptable_recovery_lag: int = long(10_000, low=0, internal=True, acts=True)
    """Lag up to which a task counts as restored; sent to members."""

    group_streams_assignment_interval_ms: int = integer(1000, low=0, scope=CLUSTER_WIDE, acts=True)
    """Wait between two assignments of one streams group."""

    group_streams_assignor_offload_enable: bool = boolean(True, internal=True, scope=CLUSTER_WIDE)
    """Compute assignments on a separate thread in Apache Kafka."""

    group_streams_assignors: tuple[str, ...] = strings("sticky", rule=NotEmpty())
    """Assignors offered to streams groups; the first is the default, and the only one."""

    group_streams_heartbeat_interval_ms: int = integer(5000, low=1, acts=True)
    """Interval between heartbeats of streams group members."""

    group_streams_initial_rebalance_delay_ms: int = integer(3000, low=0, acts=True)
    """Time that an empty streams group waits for more members."""

    group_streams_max_assignment_interval_ms: int = integer(15_000, low=0, acts=True)
    """Upper bound of a streams group's own assignment interval."""

    group_streams_max_heartbeat_interval_ms: int = integer(15_000, low=1, acts=True)
    """Upper bound of a streams group's own heartbeat interval."""

    group_streams_max_session_timeout_ms: int = integer(60_000, low=1, acts=True)
    """Upper bound of a streams group's own session timeout."""

    group_streams_max_size: int = integer(INT_MAX, low=1, acts=True)
    """Members a streams group may have."""

    group_streams_max_standby_replicas: int = integer(2, low=0, acts=True)
    """Upper bound of a streams group's own standby replicas."""

    group_streams_max_warmup_replicas: int = integer(20, low=0, internal=True, acts=True)
    """Upper bound of a streams group's own warm-up replicas."""

    group_streams_min_assignment_interval_ms: int = integer(0, low=0, acts=True)
    """Lower bound of a streams group's own assignment interval."""

    group_streams_min_heartbeat_interval_ms: int = integer(5000, low=1, acts=True)
    """Lower bound of a streams group's own heartbeat interval."""

    group_streams_min_session_timeout_ms: int = integer(45_000, low=1, acts=True)
    """Lower bound of a streams group's own session timeout."""

    group_streams_min_task_offset_interval_ms: int = integer(
        15_000, low=1, internal=True, acts=True
    )
    """Lower bound of a streams group's own interval of task offsets."""

    group_streams_num_standby_replicas: int = integer(0, low=0, acts=True)
    """Standby replicas of each task of a streams group."""

    group_streams_num_warmup_replicas: int = integer(2, low=0, internal=True)
    """Warm-up replicas of a streams group; Apache Kafka 4.4 assigns none either."""

    group_streams_rack_aware_assignment_tags: tuple[str, ...] = strings(importance=LOW, acts=True)
    """Tags that members of streams groups have to have."""

    group_streams_session_timeout_ms: int = integer(45_000, low=1, acts=True)
    """Silence after which a member of a streams group is removed."""

    group_streams_task_offset_interval_ms: int = integer(60_000, low=1, internal=True, acts=True)
    """Interval at which members of streams groups report the offsets of their tasks."""

    group_streams_topology_description_plugin_class: str | None = class_name()
    """Java class that stores descriptions of topologies."""
