"""Keys and values of `__transaction_state`."""

from __future__ import annotations

from protocol.fields import array, int8, int16, int32, int64, string
from protocol.schema import Coded, Struct


class TransactionLogKey(Coded, versions="0", flexible="none", key_type=0):
    """Names a transaction by its transactional id."""

    transactional_id: str = string()


class TransactionLogValue(Coded, versions="0-1", flexible="1+"):
    """The state of a transaction."""

    class TransactionPartition(Struct):
        """Partitions of one topic that the transaction wrote to."""

        topic: str = string()
        partition_ids: list[int] = array(int32)

    producer_id: int = int64()
    previous_producer_id: int = int64("1+", default=-1, tag=0)
    next_producer_id: int = int64("1+", default=-1, tag=1)
    producer_epoch: int = int16()
    next_producer_epoch: int = int16("1+", default=-1, tag=3)
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    """0 empty, 1 ongoing, 2 prepare commit, 3 prepare abort, 4 complete commit, 5 complete abort, 6
    dead, 7 prepare epoch fence.
    """
    transaction_partitions: list[TransactionPartition] | None = array(
        TransactionPartition, nullable="0+"
    )
    """Null while the transaction is empty."""
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    """-1 if none was started."""
    client_transaction_version: int = int16("1+", default=0, tag=2)
