"""ElectLeaders: preferred leaders, or any replica for a partition without a leader (KIP-460).

Versions 0 to 2; v0 knows preferred leaders only. Served by the controller. When the request is for
all partitions, those that need no election are omitted from the answer.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.metadata.metadata_watch import not_controller
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_cluster
from broker.requests.background_answer import answer_later
from controller.context import TopicPartition
from controller.partitions.leader_balance import ElectionType
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.reassignment import ElectLeadersRequest, ElectLeadersResponse

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred

logger = logging.getLogger(__name__)

Result = ElectLeadersResponse.ReplicaElectionResult


@handles(ElectLeadersRequest, versions="0-2")
def elect_leaders(context: Context, request: ElectLeadersRequest) -> Deferred[ElectLeadersResponse]:
    """Elect; errors are per partition."""

    async def refuse(error: ApiError) -> ElectLeadersResponse:
        named = await _named(context, request)
        return await _answer(context, dict.fromkeys(named or (), error.code), error.code)

    return answer_later(context, _elect(context, request), refuse, "leader election")


async def _elect(context: Context, request: ElectLeadersRequest) -> ElectLeadersResponse:
    if not is_allowed_on_cluster(context, AclOperation.ALTER):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not context.broker.controller.is_active:
        raise not_controller()
    if request.election_type not in set(ElectionType):
        raise ApiError(ErrorCode.INVALID_REQUEST, "no such type of election")
    named = await _named(context, request)
    kind = ElectionType(request.election_type)
    results = await context.broker.controller.commands.elect_leaders(named, kind)
    elected = [at for at, code in results.items() if code is ErrorCode.NONE]
    if elected:
        names = ", ".join(f"{at.topic}-{at.partition}" for at in elected[:10])
        more = f" and {len(elected) - 10} more" if len(elected) > 10 else ""  # noqa: PLR2004
        who = context.client_host
        logger.info(
            "%s leader election of %s%s, requested by %s", kind.name.lower(), names, more, who
        )
    if named is None:
        results = {
            at: code for at, code in results.items() if code is not ErrorCode.ELECTION_NOT_NEEDED
        }
    return await _answer(context, results)


async def _named(context: Context, request: ElectLeadersRequest) -> list[TopicPartition] | None:
    """Each once, in the order of the request."""
    if request.topic_partitions is None:
        return None
    slices = context.broker.slices()
    named: dict[TopicPartition, None] = {}
    async for topic in slices.each(request.topic_partitions):
        async for index in slices.each(topic.partitions):
            named[TopicPartition(topic.topic, index)] = None
    return list(named)


async def _answer(
    context: Context, results: dict[TopicPartition, ErrorCode], code: ErrorCode = ErrorCode.NONE
) -> ElectLeadersResponse:
    topics: dict[str, ElectLeadersResponse.ReplicaElectionResult] = {}
    async for at, error in context.broker.slices().each(results.items()):
        topic = topics.get(at.topic)
        if topic is None:
            topic = topics[at.topic] = Result(topic=at.topic, partition_result=[])
        topic.partition_result.append(
            Result.PartitionResult(
                partition_id=at.partition,
                error_code=error,
                error_message=None if error is ErrorCode.NONE else error.meaning,
            )
        )
    return ElectLeadersResponse(error_code=code, replica_election_results=list(topics.values()))
