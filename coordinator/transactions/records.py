"""Records of `__transaction_state`: typed on the way through a shard, bytes in the log.

Values are of version 0 until the cluster has finalised transaction version 1, which makes them
flexible (version 1): so that every broker and tool of a cluster can read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from coordinator.transactions.states import TransactionState
from coordinator.transactions.transaction import Transaction
from protocol.messages.transaction_state_records import TransactionLogKey, TransactionLogValue
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable

FLEXIBLE_SINCE = 1
KEY_TYPE_BYTES = 2

Topic = TransactionLogValue.TransactionPartition


class TransactionRecord(NamedTuple):
    """One record: a transactional id and its current state, None for a tombstone."""

    transactional_id: str
    transaction: Transaction | None


class TransactionFormat:
    """Encodes and decodes records as a cluster with this transaction version writes them."""

    def __init__(self, transaction_version: Callable[[], int]) -> None:
        """Write as of the version at that time."""
        self._version = transaction_version

    def encode_key(self, record: TransactionRecord, /) -> bytes:
        """The record's key."""
        return TransactionLogKey(transactional_id=record.transactional_id).encode_versioned()

    def encode_value(self, record: TransactionRecord, /) -> bytes | None:
        """The record's value; None for a tombstone."""
        transaction = record.transaction
        if transaction is None:
            return None
        return TransactionLogValue(
            producer_id=transaction.producer_id,
            previous_producer_id=transaction.previous_producer_id,
            next_producer_id=transaction.next_producer_id,
            producer_epoch=transaction.producer_epoch,
            transaction_timeout_ms=transaction.timeout_ms,
            transaction_status=transaction.state,
            transaction_partitions=_topics(transaction),
            transaction_last_update_timestamp_ms=transaction.updated_ms,
            transaction_start_timestamp_ms=transaction.started_ms,
            client_transaction_version=transaction.client_version,
        ).encode_versioned(1 if self._version() >= FLEXIBLE_SINCE else 0)

    def step_of(self, record: TransactionRecord, /) -> str:
        """The state that is stored, by the name that it is shown with; Dead for a tombstone."""
        return "Dead" if record.transaction is None else record.transaction.state.shown

    def decode(self, key: bytes, value: bytes | None, /) -> TransactionRecord | None:
        """Inverse of the two; None for keys of another kind.

        Raises DecodeError for a damaged record, and for a value version that is not known.
        """
        if len(key) < KEY_TYPE_BYTES:
            raise DecodeError(f"key of a transaction record is {key!r}")
        if int.from_bytes(key[:KEY_TYPE_BYTES], "big") != TransactionLogKey.KEY_TYPE:
            return None
        transactional_id = TransactionLogKey.decode(0, key, KEY_TYPE_BYTES).transactional_id
        if value is None:
            return TransactionRecord(transactional_id, None)
        read = TransactionLogValue.decode_versioned(value)[1]
        return TransactionRecord(transactional_id, _transaction(transactional_id, read))


def _topics(transaction: Transaction) -> list[Topic] | None:
    if transaction.state is TransactionState.EMPTY:
        return None
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        by_topic.setdefault(topic, []).append(partition)
    return [Topic(topic=topic, partition_ids=indexes) for topic, indexes in by_topic.items()]


def _transaction(transactional_id: str, value: TransactionLogValue) -> Transaction:
    try:
        state = TransactionState(value.transaction_status)
    except ValueError as error:
        raise DecodeError(str(error)) from None
    return Transaction(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        timeout_ms=value.transaction_timeout_ms,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        state=state,
        partitions=frozenset(
            (topic.topic, index)
            for topic in value.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )
