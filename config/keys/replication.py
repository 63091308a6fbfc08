"""Replication."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, HIGH, LOW, boolean, integer, long, string


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ReplicationKeys:
    """Replication."""

    alter_log_dirs_replication_quota_window_num: int = integer(11, low=1, importance=LOW, acts=True)
    """Samples kept to throttle moves between log directories."""

    alter_log_dirs_replication_quota_window_size_seconds: int = integer(
        1, low=1, importance=LOW, acts=True
    )
    """Span of each of those samples."""

    controller_socket_timeout_ms: int = integer(30_000, acts=True)
    """Time that the controller waits for a broker's response."""

    eligible_leader_replicas_enable: bool = boolean(False, importance=HIGH)
    """Track eligible leader replicas (KIP-966)."""

    inter_broker_protocol_version: str = string("3.9-IV0")
    """Version in which brokers talk to each other; this one speaks 3.9-IV0."""

    num_replica_fetchers: int = integer(1, low=1, importance=HIGH, scope=CLUSTER_WIDE, acts=True)
    """Connections with which each other broker is followed."""

    replica_fetch_backoff_ms: int = integer(1000, low=0, acts=True)
    """Rest after a fetch from a leader failed."""

    replica_fetch_max_bytes: int = integer(1 << 20, low=0, acts=True)
    """Bytes a follower asks for per partition."""

    replica_fetch_min_bytes: int = integer(1, importance=HIGH, acts=True)
    """Bytes a follower waits for."""

    replica_fetch_response_max_bytes: int = integer(10 << 20, low=0, acts=True)
    """Bytes a follower asks for per answer."""

    replica_fetch_wait_max_ms: int = integer(500, importance=HIGH, acts=True)
    """Time that a follower waits for its bytes."""

    replica_high_watermark_checkpoint_interval_ms: int = long(5000, importance=HIGH, acts=True)
    """Interval between checkpoints of high watermarks."""

    replica_lag_time_max_ms: int = long(30_000, importance=HIGH, acts=True)
    """Time after which a follower that has not caught up is out of sync."""

    replica_selector_class: str | None = string(None, acts=True)
    """Java class that chooses where a consumer reads; known is RackAwareReplicaSelector."""

    replica_socket_receive_buffer_bytes: int = integer(65_536, importance=HIGH)
    """Receive buffer of a follower's sockets."""

    replica_socket_timeout_ms: int = integer(30_000, importance=HIGH, acts=True)
    """Time that a follower waits for its leader's response."""

    replication_quota_window_num: int = integer(11, low=1, importance=LOW, acts=True)
    """Samples kept to throttle replication."""

    replication_quota_window_size_seconds: int = integer(1, low=1, importance=LOW, acts=True)
    """Span of each of those samples."""
