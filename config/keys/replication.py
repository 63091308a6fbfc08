"""How replicas follow their leaders."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, HIGH, LOW, boolean, integer, long, string


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ReplicationKeys:
    """How replicas follow their leaders."""

    alter_log_dirs_replication_quota_window_num: int = integer(11, low=1, importance=LOW)

    alter_log_dirs_replication_quota_window_size_seconds: int = integer(1, low=1, importance=LOW)

    controller_socket_timeout_ms: int = integer(30_000)

    eligible_leader_replicas_enable: bool = boolean(False, importance=HIGH)

    inter_broker_protocol_version: str = string("3.9-IV0")

    num_replica_fetchers: int = integer(1, importance=HIGH, scope=CLUSTER_WIDE)

    replica_fetch_backoff_ms: int = integer(1000, low=0)

    replica_fetch_max_bytes: int = integer(1 << 20, low=0)

    replica_fetch_min_bytes: int = integer(1, importance=HIGH)

    replica_fetch_response_max_bytes: int = integer(10 << 20, low=0)

    replica_fetch_wait_max_ms: int = integer(500, importance=HIGH)

    replica_high_watermark_checkpoint_interval_ms: int = long(5000, importance=HIGH)

    replica_lag_time_max_ms: int = long(30_000, importance=HIGH)

    replica_selector_class: str | None = string(None)

    replica_socket_receive_buffer_bytes: int = integer(65_536, importance=HIGH)

    replica_socket_timeout_ms: int = integer(30_000, importance=HIGH)

    replication_quota_window_num: int = integer(11, low=1, importance=LOW)

    replication_quota_window_size_seconds: int = integer(1, low=1, importance=LOW)
