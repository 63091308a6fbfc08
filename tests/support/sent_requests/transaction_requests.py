"""Requests of transactional producers, with a producer id that was not allocated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.messages.producer_ids import InitProducerIdRequest
from protocol.messages.producers import (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    WriteTxnMarkersRequest,
)
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

if TYPE_CHECKING:
    from tests.support.sent_requests.about import About, Maker

TOPIC_ID_SINCE = 6
"""First version of TxnOffsetCommit with topic ids."""
UNKNOWN_PRODUCER = 4_000_000
BATCHED_SINCE = 4


def init_producer_id(about: About, _: int) -> InitProducerIdRequest:
    """An id; in the other form a transactional one."""
    return InitProducerIdRequest(
        transactional_id=about.transactional_id if about.is_form(1) else None,
        transaction_timeout_ms=10_000,
    )


def add_partitions_to_txn(about: About, version: int) -> AddPartitionsToTxnRequest:
    """The first partition of each topic."""
    topics = [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in about.topics]
    if version < BATCHED_SINCE:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=about.transactional_id,
            v3_and_below_producer_id=UNKNOWN_PRODUCER,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=topics,
        )
    wanted = AddPartitionsToTxnRequest.Transaction(
        transactional_id=about.transactional_id,
        producer_id=UNKNOWN_PRODUCER,
        producer_epoch=0,
        verify_only=True,
        topics=topics,
    )
    return AddPartitionsToTxnRequest(transactions=[wanted])


def add_offsets_to_txn(about: About, _: int) -> AddOffsetsToTxnRequest:
    """The group's positions."""
    return AddOffsetsToTxnRequest(
        transactional_id=about.transactional_id,
        producer_id=UNKNOWN_PRODUCER,
        producer_epoch=0,
        group_id=about.group,
    )


def end_txn(about: About, _: int) -> EndTxnRequest:
    """Commit what was never begun."""
    return EndTxnRequest(
        transactional_id=about.transactional_id,
        producer_id=UNKNOWN_PRODUCER,
        producer_epoch=0,
        committed=True,
    )


def write_txn_markers(about: About, _: int) -> WriteTxnMarkersRequest:
    """An abort in the first partition of each topic."""
    kind = WriteTxnMarkersRequest.Marker
    marker = kind(
        producer_id=UNKNOWN_PRODUCER,
        producer_epoch=0,
        transaction_result=False,
        topics=[kind.Topic(name=name, partition_indexes=[0]) for name in about.topics],
        coordinator_epoch=-1,
    )
    return WriteTxnMarkersRequest(markers=[marker])


def txn_offset_commit(about: About, version: int) -> TxnOffsetCommitRequest:
    """A position in each topic."""
    kind, has_ids = TxnOffsetCommitRequest.Topic, version >= TOPIC_ID_SINCE
    partitions = [kind.Partition(partition_index=0, committed_offset=1, committed_metadata="")]
    return TxnOffsetCommitRequest(
        transactional_id=about.transactional_id,
        group_id=about.group,
        producer_id=UNKNOWN_PRODUCER,
        producer_epoch=0,
        topics=[
            kind(topic_id=about.id_of(name), partitions=partitions)
            if has_ids
            else kind(name=name, partitions=partitions)
            for name in about.topics
        ],
    )


def describe_producers(about: About, _: int) -> DescribeProducersRequest:
    """Describe the producers of the first partition of each topic."""
    kind = DescribeProducersRequest.Topic
    return DescribeProducersRequest(
        topics=[kind(name=name, partition_indexes=[0]) for name in about.topics]
    )


def describe_transactions(about: About, _: int) -> DescribeTransactionsRequest:
    """Describe the transaction of the transactional id."""
    return DescribeTransactionsRequest(transactional_ids=[about.transactional_id])


def list_transactions(_: About, __: int) -> ListTransactionsRequest:
    """List all transactions."""
    return ListTransactionsRequest(state_filters=[], producer_id_filters=[])


MAKERS: dict[ApiKey, Maker] = {
    ApiKey.INIT_PRODUCER_ID: init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: add_offsets_to_txn,
    ApiKey.END_TXN: end_txn,
    ApiKey.WRITE_TXN_MARKERS: write_txn_markers,
    ApiKey.TXN_OFFSET_COMMIT: txn_offset_commit,
    ApiKey.DESCRIBE_PRODUCERS: describe_producers,
    ApiKey.DESCRIBE_TRANSACTIONS: describe_transactions,
    ApiKey.LIST_TRANSACTIONS: list_transactions,
}
