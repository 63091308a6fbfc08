"""Transactions, their coordinator and its topic."""

from __future__ import annotations

from dataclasses import dataclass

from config.key import CLUSTER_WIDE, HIGH, LOW, boolean, integer, short


@dataclass(frozen=True, init=False, repr=False, eq=False)
class TransactionKeys:
    """Transactions, their coordinator and its topic."""

    add_partitions_to_txn_retry_backoff_max_ms: int = integer(100, low=0, importance=HIGH)

    add_partitions_to_txn_retry_backoff_ms: int = integer(20, low=1, importance=HIGH)

    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = integer(
        10_000, low=1, importance=LOW
    )

    transaction_max_timeout_ms: int = integer(900_000, low=1, importance=HIGH)

    transaction_partition_verification_enable: bool = boolean(
        True, importance=LOW, scope=CLUSTER_WIDE
    )

    transaction_remove_expired_transaction_cleanup_interval_ms: int = integer(
        3_600_000, low=1, importance=LOW
    )

    transaction_state_log_load_buffer_size: int = integer(5 << 20, low=1, importance=HIGH)

    transaction_state_log_min_isr: int = integer(2, low=1, importance=HIGH)

    transaction_state_log_num_partitions: int = integer(50, low=1, importance=HIGH)

    transaction_state_log_replication_factor: int = short(3, low=1, importance=HIGH)

    transaction_state_log_segment_bytes: int = integer(100 << 20, low=1, importance=HIGH)

    transaction_two_phase_commit_enable: bool = boolean(False, importance=LOW)

    transactional_id_expiration_ms: int = integer(604_800_000, low=1, importance=HIGH)
