"""Keys of brokers that keep metadata in a Raft quorum, which this one does not."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import HIGH, LOW, boolean, integer, long, optional_strings, string, strings


@dataclass(frozen=True, init=False, repr=False, eq=False)
class KraftKeys:
    """Keys of brokers that keep metadata in a Raft quorum, which this one does not."""

    broker_heartbeat_interval_ms: int = integer(2000)
    """Interval between heartbeats of a broker in a Raft quorum."""

    broker_session_timeout_ms: int = integer(9000)
    """Silence after which such a broker counts as dead."""

    controller_listener_names: tuple[str, ...] = optional_strings(importance=HIGH, acts=True)
    """Listeners of Raft controllers, which this broker does not open."""

    controller_performance_always_log_threshold_ms: int = long(2000, low=0, internal=True)
    """Duration from which a slow controller event is logged."""

    controller_performance_sample_period_ms: int = long(60_000, low=100, internal=True)
    """Interval at which the slowest controller event is logged."""

    controller_quorum_append_linger_ms: int = integer(25, low=0)
    """Time for which the Raft leader gathers writes."""

    controller_quorum_auto_join_enable: bool = boolean(False, importance=LOW)
    """Let a controller join its quorum by itself."""

    controller_quorum_bootstrap_servers: tuple[str, ...] = strings(importance=HIGH)
    """Addresses of the Raft quorum."""

    controller_quorum_election_backoff_max_ms: int = integer(1000, low=0, importance=HIGH)
    """Longest wait before a new Raft election."""

    controller_quorum_election_timeout_ms: int = integer(1000, low=0, importance=HIGH)
    """Time that a Raft candidate waits for votes."""

    controller_quorum_fetch_max_bytes: int = integer(1 << 20, low=1, importance=LOW)
    """Most bytes of one Raft fetch."""

    controller_quorum_fetch_snapshot_max_bytes: int = integer(1 << 20, low=1, importance=LOW)
    """Most bytes of one fetch of a Raft snapshot."""

    controller_quorum_fetch_timeout_ms: int = integer(2000, low=0, importance=HIGH)
    """Time that a Raft follower waits for its leader."""

    controller_quorum_request_timeout_ms: int = integer(2000, low=0)
    """Timeout of a Raft request."""

    controller_quorum_retry_backoff_ms: int = integer(20, low=0, importance=LOW)
    """Wait before a Raft request is sent again."""

    controller_quorum_voters: tuple[str, ...] = strings(importance=HIGH)
    """Voters of the Raft quorum, as `id@host:port`."""

    initial_broker_registration_timeout_ms: int = integer(60_000)
    """Time for which a starting broker tries to register with its quorum."""

    internal_metadata_delete_delay_millis: int = long(60_000, importance=LOW, internal=True)
    """Time for which deleted files of the metadata log stay on disk."""

    internal_metadata_log_segment_bytes: int | None = integer(None, importance=LOW, internal=True)
    """Segment size of the metadata log without its lower bound, for tests."""

    internal_metadata_max_batch_size_in_bytes: int = integer(8 << 20, importance=LOW, internal=True)
    """Largest batch of the metadata log."""

    metadata_log_dir: str | None = string(None, importance=HIGH)
    """Directory of the metadata log of a Raft quorum."""

    metadata_log_max_record_bytes_between_snapshots: int = long(20 << 20, low=1, importance=HIGH)
    """Bytes of the metadata log after which a snapshot is taken."""

    metadata_log_max_snapshot_interval_ms: int = long(3_600_000, low=0, importance=HIGH)
    """Time after which a snapshot of the metadata log is taken."""

    metadata_log_segment_bytes: int = integer(1 << 30, low=12, importance=HIGH)
    """Segment size of the metadata log."""

    metadata_log_segment_min_bytes: int = integer(8 << 20, low=12, importance=HIGH, internal=True)
    """Lower bound of that, for tests of Apache Kafka itself."""

    metadata_log_segment_ms: int = long(604_800_000, importance=HIGH)
    """Age at which a segment of the metadata log is closed."""

    metadata_max_idle_interval_ms: int = integer(500, low=0, importance=LOW)
    """Interval at which an idle Raft leader writes a no-op record."""

    metadata_max_retention_bytes: int = long(100 << 20, importance=HIGH)
    """Size the metadata log and its snapshots may reach."""

    metadata_max_retention_ms: int = long(604_800_000, importance=HIGH)
    """Age at which parts of the metadata log are deleted."""

    process_roles: tuple[str, ...] = strings(choices=("broker", "controller"), importance=HIGH)
    """Roles of a process in a Raft quorum; this broker takes part in none."""
