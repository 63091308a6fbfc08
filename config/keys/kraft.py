"""Keys of brokers that keep metadata in a Raft quorum, which this one does not."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import HIGH, LOW, boolean, integer, long, string, strings


@dataclass(frozen=True, init=False, repr=False, eq=False)
class KraftKeys:
    """Keys of brokers that keep metadata in a Raft quorum, which this one does not."""

    broker_heartbeat_interval_ms: int = integer(2000)

    broker_session_timeout_ms: int = integer(9000)

    controller_listener_names: tuple[str, ...] = strings(importance=HIGH)

    controller_performance_always_log_threshold_ms: int = long(2000, low=0, internal=True)

    controller_performance_sample_period_ms: int = long(60_000, low=100, internal=True)

    controller_quorum_append_linger_ms: int = integer(25)

    controller_quorum_auto_join_enable: bool = boolean(False, importance=LOW)

    controller_quorum_bootstrap_servers: tuple[str, ...] = strings(importance=HIGH)

    controller_quorum_election_backoff_max_ms: int = integer(1000, importance=HIGH)

    controller_quorum_election_timeout_ms: int = integer(1000, importance=HIGH)

    controller_quorum_fetch_max_bytes: int = integer(1 << 20, low=1, importance=LOW)

    controller_quorum_fetch_snapshot_max_bytes: int = integer(1 << 20, low=1, importance=LOW)

    controller_quorum_fetch_timeout_ms: int = integer(2000, importance=HIGH)

    controller_quorum_request_timeout_ms: int = integer(2000)

    controller_quorum_retry_backoff_ms: int = integer(20, importance=LOW)

    controller_quorum_voters: tuple[str, ...] = strings(importance=HIGH)

    initial_broker_registration_timeout_ms: int = integer(60_000)

    internal_metadata_delete_delay_millis: int = long(60_000, importance=LOW, internal=True)

    internal_metadata_log_segment_bytes: int | None = integer(None, importance=LOW, internal=True)

    internal_metadata_max_batch_size_in_bytes: int = integer(8 << 20, importance=LOW, internal=True)

    metadata_log_dir: str | None = string(None, importance=HIGH)

    metadata_log_max_record_bytes_between_snapshots: int = long(20 << 20, low=1, importance=HIGH)

    metadata_log_max_snapshot_interval_ms: int = long(3_600_000, low=0, importance=HIGH)

    metadata_log_segment_bytes: int = integer(1 << 30, low=12, importance=HIGH)

    metadata_log_segment_min_bytes: int = integer(8 << 20, low=12, importance=HIGH, internal=True)

    metadata_log_segment_ms: int = long(604_800_000, importance=HIGH)

    metadata_max_idle_interval_ms: int = integer(500, low=0, importance=LOW)

    metadata_max_retention_bytes: int = long(100 << 20, importance=HIGH)

    metadata_max_retention_ms: int = long(604_800_000, importance=HIGH)

    process_roles: tuple[str, ...] = strings(choices=("broker", "controller"), importance=HIGH)
