"""Looking into producers and transactions (KIP-664)."""

from __future__ import annotations

from protocol.api_keys import ApiKey
from protocol.fields import array, int16, int32, int64, string
from protocol.schema import Request, Response, Struct


class DescribeProducersRequest(Request, key=ApiKey.DESCRIBE_PRODUCERS, versions="0", flexible="0+"):
    """List the producers that are active on partitions."""

    class Topic(Struct):
        """Partitions of one topic."""

        name: str = string()
        partition_indexes: list[int] = array(int32)

    topics: list[Topic] = array(Topic)


class DescribeProducersResponse(
    Response, request=DescribeProducersRequest, versions="0", flexible="0+"
):
    """Answer to DescribeProducersRequest."""

    class Topic(Struct):
        """Producers on one topic."""

        class Partition(Struct):
            """Producers on one partition."""

            class ActiveProducer(Struct):
                """A producer that wrote not long ago."""

                producer_id: int = int64()
                producer_epoch: int = int32()
                last_sequence: int = int32(default=-1)
                """-1 if it wrote only markers."""
                last_timestamp: int = int64(default=-1)
                """Of its last batch, in milliseconds; -1 if not known."""
                coordinator_epoch: int = int32()
                current_txn_start_offset: int = int64(default=-1)
                """First offset of its open transaction; -1 for none."""

            partition_index: int = int32()
            error_code: int = int16()
            error_message: str | None = string(default=None, nullable="0+")
            active_producers: list[ActiveProducer] = array(ActiveProducer)

        name: str = string()
        partitions: list[Partition] = array(Partition)

    throttle_time_ms: int = int32(default=0)
    topics: list[Topic] = array(Topic)


class DescribeTransactionsRequest(
    Request, key=ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+"
):
    """Describe transactions by their ids."""

    transactional_ids: list[str] = array(string)


class DescribeTransactionsResponse(
    Response, request=DescribeTransactionsRequest, versions="0", flexible="0+"
):
    """Answer to DescribeTransactionsRequest."""

    class TransactionState(Struct):
        """One transaction."""

        class Topic(Struct):
            """Partitions of one topic in the transaction."""

            topic: str = string()
            partitions: list[int] = array(int32)

        error_code: int = int16()
        transactional_id: str = string()
        transaction_state: str = string()
        transaction_timeout_ms: int = int32()
        transaction_start_time_ms: int = int64()
        """-1 if none is open."""
        producer_id: int = int64()
        producer_epoch: int = int16()
        topics: list[Topic] = array(Topic)

    throttle_time_ms: int = int32(default=0)
    transaction_states: list[TransactionState] = array(TransactionState)


class ListTransactionsRequest(Request, key=ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+"):
    """List the transactions that a broker coordinates."""

    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64("1+", default=-1)
    """Only those that run longer, in milliseconds; negative for all (KIP-994)."""
    transactional_id_pattern: str | None = string("2+", default=None, nullable="0+")
    """Regular expression; null for all (KIP-1152)."""


class ListTransactionsResponse(
    Response, request=ListTransactionsRequest, versions="0-2", flexible="0+"
):
    """Answer to ListTransactionsRequest."""

    class TransactionState(Struct):
        """One transaction, in brief."""

        transactional_id: str = string()
        producer_id: int = int64()
        transaction_state: str = string()

    throttle_time_ms: int = int32(default=0)
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)
    transaction_states: list[TransactionState] = array(TransactionState)
