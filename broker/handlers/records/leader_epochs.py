"""OffsetForLeaderEpoch 2 to 4: where a leader epoch ends in our log (KIP-101, KIP-320)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.records.local_replica import require_replica
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_topic, would_be_allowed_on_cluster
from broker.requests.steps import in_steps
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.leader_epochs import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.requests.steps import Steps

Answer = OffsetForLeaderEpochResponse.Topic.Partition
Wanted = OffsetForLeaderEpochRequest.Topic.Partition


@handles(OffsetForLeaderEpochRequest, versions="2-4")
@in_steps
def offset_for_leader_epoch(
    context: Context, request: OffsetForLeaderEpochRequest
) -> Steps[OffsetForLeaderEpochResponse]:
    """Answer per partition; -1, -1 for an epoch newer than any known here.

    Allowed to brokers (CLUSTER_ACTION), and with DESCRIBE on the topic.
    """
    response = OffsetForLeaderEpochResponse(topics=[])
    is_broker = would_be_allowed_on_cluster(context, AclOperation.CLUSTER_ACTION)
    for topic in request.topics:
        may = is_broker or is_allowed_on_topic(context, AclOperation.DESCRIBE, topic.topic)
        answers: list[Answer] = []
        for wanted in topic.partitions:
            answers.append(_answer(context, topic.topic, wanted) if may else _refused(wanted))
            yield
        response.topics.append(
            OffsetForLeaderEpochResponse.Topic(topic=topic.topic, partitions=answers)
        )
        yield
    return response


def _refused(wanted: Wanted) -> Answer:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return Answer(partition=wanted.partition, error_code=code)


def _answer(context: Context, topic: str, wanted: Wanted) -> Answer:
    try:
        partition = require_replica(context.broker, topic, wanted.partition)
        partition.check_leader(wanted.current_leader_epoch)
        epoch, end_offset = partition.log.end_offset_for_epoch(wanted.leader_epoch)
    except ApiError as error:
        return Answer(partition=wanted.partition, error_code=error.code)
    return Answer(
        partition=wanted.partition,
        error_code=ErrorCode.NONE,
        leader_epoch=epoch,
        end_offset=end_offset,
    )
