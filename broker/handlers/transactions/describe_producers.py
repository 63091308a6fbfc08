"""DescribeProducers: the producers of a partition, and their open transactions (KIP-664).

Version 0. Any replica answers, with the producers in its log that have not expired. A partition is
described once, however often it is named: each may have thousands of producers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.records.local_replica import absence_error
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_topic
from broker.requests.encoded_response import encoded_in_slices
from broker.runtime.deferred import in_background
from controller.topics.topic_names import name_problem
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.producers import DescribeProducersRequest, DescribeProducersResponse

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred
    from broker.runtime.slices import Slices
    from storage.producer.producer import Producer

Topic = DescribeProducersResponse.Topic
Partition = DescribeProducersResponse.Topic.Partition
ActiveProducer = DescribeProducersResponse.Topic.Partition.ActiveProducer


@handles(DescribeProducersRequest, versions="0")
def describe_producers(
    context: Context, request: DescribeProducersRequest
) -> Deferred[DescribeProducersResponse]:
    """The producers of each partition."""

    async def work() -> DescribeProducersResponse:
        slices = context.broker.slices()
        wanted: dict[str, dict[int, None]] = {}
        async for topic in slices.each(request.topics):
            wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
        response = DescribeProducersResponse(topics=[])
        for name, indexes in wanted.items():
            refusal = _refusal(context, name)
            partitions = [
                await _describe(context, name, index, slices)
                if refusal is None
                else _not_described(index, refusal)
                async for index in slices.each(indexes)
            ]
            response.topics.append(Topic(name=name, partitions=partitions))
        return await encoded_in_slices(context, response)

    return in_background(context.broker.spawn, work(), "producers described")


def _refusal(context: Context, topic: str) -> ApiError | None:
    """Reason why no partition of a topic is described: an invalid name, or no READ access."""
    if (problem := name_problem(topic)) is not None:
        return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if not is_allowed_on_topic(context, AclOperation.READ, topic):
        return ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return None


def _not_described(index: int, error: ApiError) -> Partition:
    return Partition(
        partition_index=index,
        error_code=error.code,
        error_message=error.message or error.code.meaning,
        active_producers=[],
    )


async def _describe(context: Context, topic: str, index: int, slices: Slices) -> Partition:
    partition = context.broker.replicas.partition(topic, index)
    if partition is None:
        return _not_described(index, ApiError(absence_error(context.broker, topic, index)))
    producers = list(partition.log.producers.producers.values())
    return Partition(
        partition_index=index,
        error_code=ErrorCode.NONE,
        active_producers=[_active(producer) async for producer in slices.each(producers)],
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
