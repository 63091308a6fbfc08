"""Share groups and their coordinator; this broker has none yet."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, HIGH, LOW, boolean, integer, short, string, strings


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ShareKeys:
    """Share groups and their coordinator; this broker has none yet."""

    group_share_assignment_interval_ms: int = integer(1000, low=0, scope=CLUSTER_WIDE)

    group_share_assignors: tuple[str, ...] = strings("simple")

    group_share_delivery_count_limit: int = integer(5, low=2, high=10)

    group_share_enable: bool = boolean(False, internal=True)

    group_share_heartbeat_interval_ms: int = integer(5000, low=1)

    group_share_initialize_retry_interval_ms: int = integer(
        30_000, low=1, importance=LOW, internal=True
    )

    group_share_max_assignment_interval_ms: int = integer(15_000, low=0)

    group_share_max_delivery_count_limit: int = integer(10, low=5, high=25)

    group_share_max_groups: int = short(10, low=1, high=100)

    group_share_max_heartbeat_interval_ms: int = integer(15_000, low=1)

    group_share_max_partition_max_record_locks: int = integer(4000, low=2000, high=10_000)

    group_share_max_record_lock_duration_ms: int = integer(60_000, low=30_000, high=3_600_000)

    group_share_max_session_timeout_ms: int = integer(60_000, low=1)

    group_share_max_share_sessions: int = integer(2000, low=1)

    group_share_max_size: int = short(200, low=10, high=1000)

    group_share_min_assignment_interval_ms: int = integer(0, low=0)

    group_share_min_delivery_count_limit: int = integer(2, low=2, high=5)

    group_share_min_heartbeat_interval_ms: int = integer(5000, low=1)

    group_share_min_partition_max_record_locks: int = integer(100, low=100, high=2000)

    group_share_min_record_lock_duration_ms: int = integer(15_000, low=1000, high=30_000)

    group_share_min_session_timeout_ms: int = integer(45_000, low=1)

    group_share_partition_max_record_locks: int = integer(200, low=100, high=10_000)

    group_share_persister_class_name: str = string(
        "org.apache.kafka.server.share.persister.DefaultStatePersister", internal=True
    )

    group_share_record_lock_duration_ms: int = integer(30_000, low=1000, high=60_000)

    group_share_session_timeout_ms: int = integer(45_000, low=1)

    share_coordinator_append_linger_ms: int = integer(-1, low=-1)

    share_coordinator_cached_buffer_max_bytes: int = integer(
        1_048_588, low=512 << 10, scope=CLUSTER_WIDE
    )

    share_coordinator_cold_partition_snapshot_interval_ms: int = integer(
        300_000, low=1, importance=LOW, internal=True
    )

    share_coordinator_load_buffer_size: int = integer(5 << 20, low=1, importance=HIGH)

    share_coordinator_snapshot_update_records_per_snapshot: int = integer(500, low=0, high=500)

    share_coordinator_state_topic_compression_codec: int = integer(0, importance=HIGH)

    share_coordinator_state_topic_min_isr: int = short(2, low=1, importance=HIGH)

    share_coordinator_state_topic_num_partitions: int = integer(50, low=1, importance=HIGH)

    share_coordinator_state_topic_prune_interval_ms: int = integer(
        300_000, low=1, importance=LOW, internal=True
    )

    share_coordinator_state_topic_replication_factor: int = short(3, low=1, importance=HIGH)

    share_coordinator_state_topic_segment_bytes: int = integer(100 << 20, low=1, importance=HIGH)

    share_coordinator_threads: int = integer(1, low=1)

    share_coordinator_write_timeout_ms: int = integer(5000, low=1, importance=HIGH)

    share_fetch_purgatory_purge_interval_requests: int = integer(1000)
