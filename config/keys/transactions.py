"""Transactions, their coordinator and its topic."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, HIGH, LOW, boolean, integer, short


@dataclass(frozen=True, init=False, repr=False, eq=False)
class TransactionKeys:
    """Transactions, their coordinator and its topic."""

    add_partitions_to_txn_retry_backoff_max_ms: int = integer(
        100, low=0, importance=HIGH, acts=True
    )
    """Longest wait before a partition is added to a transaction again."""

    add_partitions_to_txn_retry_backoff_ms: int = integer(20, low=1, importance=HIGH, acts=True)
    """First wait before a partition is added to a transaction again."""

    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = integer(
        10_000, low=1, importance=LOW, acts=True
    )
    """Interval between checks for timed-out transactions."""

    transaction_max_timeout_ms: int = integer(900_000, low=1, importance=HIGH, acts=True)
    """Longest timeout a transactional producer may ask for."""

    transaction_partition_verification_enable: bool = boolean(
        True, importance=LOW, scope=CLUSTER_WIDE, acts=True
    )
    """Verify with the coordinator that a partition is in the transaction before appending its
    records."""

    transaction_remove_expired_transaction_cleanup_interval_ms: int = integer(
        3_600_000, low=1, importance=LOW, acts=True
    )
    """Interval between checks for expired transactional ids."""

    transaction_state_log_load_buffer_size: int = integer(5 << 20, low=1, importance=HIGH)
    """Bytes read at a time when transactions are loaded."""

    transaction_state_log_min_isr: int = integer(2, low=1, importance=HIGH, acts=True)
    """In-sync replicas a write to the transaction topic needs."""

    transaction_state_log_num_partitions: int = integer(50, low=1, importance=HIGH, acts=True)
    """Partitions of the transaction topic."""

    transaction_state_log_replication_factor: int = short(3, low=1, importance=HIGH, acts=True)
    """Replicas of the transaction topic."""

    transaction_state_log_segment_bytes: int = integer(100 << 20, low=1, importance=HIGH, acts=True)
    """Segment size of the transaction topic."""

    transaction_two_phase_commit_enable: bool = boolean(False, importance=LOW)
    """Allow transactions to take part in two-phase commit."""

    transactional_id_expiration_ms: int = integer(604_800_000, low=1, importance=HIGH, acts=True)
    """Disuse after which a transactional id is forgotten."""
