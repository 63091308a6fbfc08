"""Share groups and their coordinators."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, HIGH, LOW, boolean, integer, short, string, strings
from config.rules import NotEmpty


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ShareKeys:
    """Share groups and their coordinators."""

    errors_deadletterqueue_auto_create_topics_enable: bool = boolean(False, scope=CLUSTER_WIDE)
    """Create dead letter topics of share groups when first needed."""

    errors_deadletterqueue_topic_name_prefix: str = string("dlq.", scope=CLUSTER_WIDE)
    """Prefix of the names of dead letter topics of share groups."""

    group_share_assignment_interval_ms: int = integer(1000, low=0, scope=CLUSTER_WIDE, acts=True)
    """Wait between two assignments of one share group."""

    group_share_assignor_offload_enable: bool = boolean(True, internal=True, scope=CLUSTER_WIDE)
    """Compute assignments on a separate thread in Apache Kafka."""

    group_share_assignors: tuple[str, ...] = strings("simple", rule=NotEmpty())
    """Assignors offered to share groups."""

    group_share_delivery_count_limit: int = integer(5, low=2, high=10, acts=True)
    """Deliveries after which a record counts as undeliverable."""

    group_share_dlq_manager_class_name: str = string(
        "org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager", internal=True
    )
    """Java class that writes dead letters of share groups."""

    group_share_enable: bool = boolean(False, internal=True)
    """Offer the preview of share groups in Apache Kafka 3.9."""

    group_share_heartbeat_interval_ms: int = integer(5000, low=1, acts=True)
    """Interval between heartbeats of share group members."""

    group_share_initialize_retry_interval_ms: int = integer(
        30_000, low=1, importance=LOW, internal=True, acts=True
    )
    """Wait before a share partition is set up again."""

    group_share_max_assignment_interval_ms: int = integer(15_000, low=0, acts=True)
    """Upper bound of a share group's own assignment interval."""

    group_share_max_delivery_count_limit: int = integer(10, low=5, high=25, acts=True)
    """Upper bound of a share group's own delivery limit."""

    group_share_max_groups: int = short(10, low=1, high=100)
    """Share groups that may exist."""

    group_share_max_heartbeat_interval_ms: int = integer(15_000, low=1, acts=True)
    """Upper bound of a share group's own heartbeat interval."""

    group_share_max_partition_max_record_locks: int = integer(
        4000, low=2000, high=10_000, acts=True
    )
    """Upper bound of a share group's own record locks."""

    group_share_max_record_lock_duration_ms: int = integer(
        60_000, low=30_000, high=3_600_000, acts=True
    )
    """Upper bound of a share group's own lock duration."""

    group_share_max_session_timeout_ms: int = integer(60_000, low=1, acts=True)
    """Upper bound of a share group's own session timeout."""

    group_share_max_share_sessions: int = integer(2000, low=1, acts=True)
    """Share sessions remembered at one time."""

    group_share_max_size: int = short(200, low=1, high=1000, acts=True)
    """Members a share group may have."""

    group_share_min_assignment_interval_ms: int = integer(0, low=0, acts=True)
    """Lower bound of a share group's own assignment interval."""

    group_share_min_delivery_count_limit: int = integer(2, low=2, high=5, acts=True)
    """Lower bound of a share group's own delivery limit."""

    group_share_min_heartbeat_interval_ms: int = integer(5000, low=1, acts=True)
    """Lower bound of a share group's own heartbeat interval."""

    group_share_min_partition_max_record_locks: int = integer(100, low=100, high=2000, acts=True)
    """Lower bound of a share group's own record locks."""

    group_share_min_record_lock_duration_ms: int = integer(15_000, low=1000, high=30_000, acts=True)
    """Lower bound of a share group's own lock duration."""

    group_share_min_session_timeout_ms: int = integer(45_000, low=1, acts=True)
    """Lower bound of a share group's own session timeout."""

    group_share_partition_max_record_locks: int = integer(2000, low=100, high=10_000, acts=True)
    """Records of one partition that may be in delivery at once."""

    group_share_persister_class_name: str = string(
        "org.apache.kafka.server.share.persister.DefaultStatePersister", internal=True
    )
    """Java class that keeps the state of share groups."""

    group_share_record_lock_duration_ms: int = integer(30_000, low=1000, high=3_600_000, acts=True)
    """Time for which an acquired record is locked for its member."""

    group_share_session_timeout_ms: int = integer(45_000, low=1, acts=True)
    """Silence after which a member of a share group is removed."""

    share_coordinator_append_linger_ms: int = integer(-1, low=-1)
    """Time for which the share coordinator gathers writes into one batch."""

    share_coordinator_cached_buffer_max_bytes: int = integer(
        1_048_588, low=512 << 10, scope=CLUSTER_WIDE
    )
    """Largest write buffer the share coordinator keeps for reuse."""

    share_coordinator_cold_partition_snapshot_interval_ms: int = integer(
        300_000, low=1, importance=LOW, internal=True, acts=True
    )
    """Interval at which snapshots of idle share partitions are written."""

    share_coordinator_load_buffer_size: int = integer(5 << 20, low=1, importance=HIGH)
    """Bytes read at a time when share state is loaded."""

    share_coordinator_snapshot_update_records_per_snapshot: int = integer(
        500, low=0, high=500, acts=True
    )
    """Changes written between two snapshots of a share partition."""

    share_coordinator_state_topic_compression_codec: int = integer(
        0, low=0, high=4, importance=HIGH
    )
    """Codec of the share state topic, by number."""

    share_coordinator_state_topic_min_isr: int = short(2, low=1, importance=HIGH, acts=True)
    """In-sync replicas a write to the share state topic needs."""

    share_coordinator_state_topic_num_partitions: int = integer(
        50, low=1, importance=HIGH, acts=True
    )
    """Partitions of the share state topic."""

    share_coordinator_state_topic_prune_interval_ms: int = integer(
        300_000, low=1, importance=LOW, internal=True, acts=True
    )
    """Interval at which the share state topic is pruned."""

    share_coordinator_state_topic_replication_factor: int = short(
        3, low=1, importance=HIGH, acts=True
    )
    """Replicas of the share state topic."""

    share_coordinator_state_topic_segment_bytes: int = integer(
        100 << 20, low=1, importance=HIGH, acts=True
    )
    """Segment size of the share state topic."""

    share_coordinator_threads: int = integer(1, low=1)
    """Threads the share coordinator runs on."""

    share_coordinator_write_timeout_ms: int = integer(5000, low=1, importance=HIGH, acts=True)
    """Timeout of a write to the share state topic."""

    share_fetch_purgatory_purge_interval_requests: int = integer(1000)
    """Finished share fetches after which their remains are cleared."""
