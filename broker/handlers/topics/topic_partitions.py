"""DescribeTopicPartitions: topics page by page (KIP-966).

Version 0. Topics come sorted by name, and behind them those that the client may not see, if it has
named them; partitions by index. The limit counts partitions over all topics. A page that ends early
names the partition where the next one begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.topics.metadata import leader_error, unknown_topic_error
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_topic, would_be_allowed_on_topic
from broker.requests.authorized_operations import topic_operations
from broker.requests.steps import in_steps
from controller.topics.topic_names import INTERNAL_TOPICS
from protocol.acl_types import AclOperation
from protocol.errors import ErrorCode
from protocol.messages.topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from broker.metadata.metadata_cache import TopicMetadata
    from broker.requests.context import Context
    from broker.requests.steps import Steps

Topic = DescribeTopicPartitionsResponse.Topic
Partition = DescribeTopicPartitionsResponse.Topic.Partition
NextCursor = DescribeTopicPartitionsResponse.NextCursor


@handles(DescribeTopicPartitionsRequest, versions="0")
@in_steps
def describe_topic_partitions(
    context: Context, request: DescribeTopicPartitionsRequest
) -> Steps[DescribeTopicPartitionsResponse]:
    """Describe one page of some or, with an empty list, all topics."""
    cache = context.broker.metadata
    cursor = request.cursor
    if cursor is not None and cursor.partition_index < 0:
        return DescribeTopicPartitionsResponse(
            topics=[_error(topic.name, ErrorCode.INVALID_REQUEST) for topic in request.topics]
        )
    limit = context.broker.config.max_request_partition_size_limit
    left = max(1, min(limit, request.response_partition_limit))
    names = sorted({topic.name for topic in request.topics} or cache.topics)
    response = DescribeTopicPartitionsResponse(topics=[])
    refused: list[Topic] = []
    for name in names:
        yield
        if cursor is not None and name < cursor.topic_name:
            continue
        if not _may_see(context, name, is_named=bool(request.topics)):
            if request.topics:
                refused.append(_error(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        if left <= 0:
            response.next_cursor = NextCursor(topic_name=name, partition_index=0)
            break
        known = cache.topic(name)
        if known is None:
            unknown = _error(name, unknown_topic_error(name))
            unknown.is_internal = name in INTERNAL_TOPICS
            unknown.topic_authorized_operations = topic_operations(context, name, is_requested=True)
            response.topics.append(unknown)
            continue
        first = cursor.partition_index if cursor and cursor.topic_name == name else 0
        described = _describe(context, known, range(first, first + left))
        left -= len(described.partitions)
        response.topics.append(described)
        following = first + len(described.partitions)
        if following in known.partitions:
            response.next_cursor = NextCursor(topic_name=name, partition_index=following)
            break
    response.topics += refused
    return response


def _may_see(context: Context, name: str, *, is_named: bool) -> bool:
    may = is_allowed_on_topic if is_named else would_be_allowed_on_topic
    return may(context, AclOperation.DESCRIBE, name)


def _error(name: str, code: ErrorCode) -> Topic:
    return Topic(
        error_code=code,
        name=name,
        topic_id=ZERO_UUID,
        partitions=[],
    )


def _describe(context: Context, topic: TopicMetadata, wanted: range) -> Topic:
    cache = context.broker.metadata
    partitions = []
    for index, state in topic.partitions.items():
        if index not in wanted:
            continue
        code = leader_error(cache.brokers, state, context.listener)
        partitions.append(
            Partition(
                error_code=code,
                partition_index=index,
                leader_id=state.leader if code is ErrorCode.NONE else -1,
                leader_epoch=state.leader_epoch,
                replica_nodes=state.replicas,
                isr_nodes=state.isr,
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=state.offline_replicas,
            )
        )
    return Topic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=topic_operations(context, topic.name, is_requested=True),
    )
