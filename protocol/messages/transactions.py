"""Adding to, ending and marking transactions."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, boolean, int8, int16, int32, int64, string
from protocol.schema import Request, Response, Struct


class AddPartitionsToTxnTopic(Struct):
    """Partitions of one topic."""

    name: str = string()
    partitions: list[int] = array(int32)


class AddPartitionsToTxnRequest(
    Request, key=ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+"
):
    """Add partitions to a transaction, or verify (v4) that they are in it."""

    class Transaction(Struct):
        """Partitions for one transaction, from a broker."""

        transactional_id: str = string()
        producer_id: int = int64()
        producer_epoch: int = int16()
        verify_only: bool = boolean(default=False)
        """True to verify that they belong to the transaction, without adding them."""
        topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic)

    transactions: list[Transaction] = array(Transaction, "4+", default=())
    v3_and_below_transactional_id: str = string("0-3", default="")
    """Clients speak v3 and below; v4 and above is for brokers (KIP-890)."""
    v3_and_below_producer_id: int = int64("0-3", default=0)
    v3_and_below_producer_epoch: int = int16("0-3", default=0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(
        AddPartitionsToTxnTopic, "0-3", default=()
    )


class AddPartitionsToTxnPartitionResult(Struct):
    """Result for one partition."""

    partition_index: int = int32()
    partition_error_code: int = int16()


class AddPartitionsToTxnTopicResult(Struct):
    """Results for the partitions of one topic."""

    name: str = string()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(
        AddPartitionsToTxnPartitionResult
    )


class AddPartitionsToTxnResponse(
    Response, request=AddPartitionsToTxnRequest, versions="0-5", flexible="3+"
):
    """Answer to AddPartitionsToTxnRequest."""

    class ResultsByTransaction(Struct):
        """Results for the partitions of one transaction."""

        transactional_id: str = string()
        topic_results: list[AddPartitionsToTxnTopicResult] = array(AddPartitionsToTxnTopicResult)

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16("4+", default=0)
    results_by_transaction: list[ResultsByTransaction] = array(
        ResultsByTransaction, "4+", default=()
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnTopicResult, "0-3", default=()
    )


class AddOffsetsToTxnRequest(Request, key=ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+"):
    """Add a group's offsets partition to a transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


class AddOffsetsToTxnResponse(
    Response, request=AddOffsetsToTxnRequest, versions="0-4", flexible="3+"
):
    """Answer to AddOffsetsToTxnRequest."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()


class EndTxnRequest(Request, key=ApiKey.END_TXN, versions="0-5", flexible="3+"):
    """Commit or abort a transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


class EndTxnResponse(Response, request=EndTxnRequest, versions="0-5", flexible="3+"):
    """Answer to EndTxnRequest."""

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    producer_id: int = int64("5+", default=-1)
    producer_epoch: int = int16("5+", default=-1)
    """Epoch for the next transaction (KIP-890); -1 before v5."""


class WriteTxnMarkersRequest(Request, key=ApiKey.WRITE_TXN_MARKERS, versions="0-2", flexible="1+"):
    """A transaction coordinator has leaders write commit or abort markers."""

    class Marker(Struct):
        """Outcome of one transaction, and its partitions."""

        class Topic(Struct):
            """Partitions of one topic."""

            name: str = string()
            partition_indexes: list[int] = array(int32)

        producer_id: int = int64()
        producer_epoch: int = int16()
        transaction_result: bool = boolean()
        """True commits, false aborts."""
        topics: list[Topic] = array(Topic)
        coordinator_epoch: int = int32()
        """Leader epoch of the coordinator's partition; fences its predecessors."""
        transaction_version: int = int8("2+", default=0)
        """Transaction protocol of the producer (KIP-890)."""

    markers: list[Marker] = array(Marker)


class WriteTxnMarkersResponse(
    Response, request=WriteTxnMarkersRequest, versions="0-2", flexible="1+"
):
    """Answer to WriteTxnMarkersRequest."""

    class Marker(Struct):
        """Results for the markers of one transaction."""

        class Topic(Struct):
            """Results for the markers in one topic."""

            class Partition(Struct):
                """Result for the marker in one partition."""

                partition_index: int = int32()
                error_code: int = int16()

            name: str = string()
            partitions: list[Partition] = array(Partition)

        producer_id: int = int64()
        topics: list[Topic] = array(Topic)

    markers: list[Marker] = array(Marker)
