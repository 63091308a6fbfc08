"""DescribeProducers: who writes to a partition, and since when with an open transaction (KIP-664).

Version 0. Any replica answers, from what its log knows: producers that are not expired.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.routing import handles
from protocol.errors import ErrorCode
from protocol.messages.producers import DescribeProducersRequest, DescribeProducersResponse

if TYPE_CHECKING:
    from broker.context import Context
    from storage.producer import Producer

Topic = DescribeProducersResponse.Topic
Partition = DescribeProducersResponse.Topic.Partition
ActiveProducer = DescribeProducersResponse.Topic.Partition.ActiveProducer


@handles(DescribeProducersRequest, versions="0")
def describe_producers(
    context: Context, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """The producers of each partition."""
    return DescribeProducersResponse(
        topics=[
            Topic(
                name=topic.name,
                partitions=[
                    _describe(context, topic.name, index) for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _describe(context: Context, topic: str, index: int) -> Partition:
    partition = context.broker.replicas.partition(topic, index)
    if partition is None:
        is_known = context.broker.metadata.partition(topic, index) is not None
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_known:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return Partition(partition_index=index, error_code=code, active_producers=[])
    producers = partition.log.producers.producers.values()
    return Partition(
        partition_index=index,
        error_code=ErrorCode.NONE,
        active_producers=[_active(producer) for producer in producers],
    )


def _active(producer: Producer) -> ActiveProducer:
    return ActiveProducer(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch,
        current_txn_start_offset=producer.transaction_first_offset,
    )
