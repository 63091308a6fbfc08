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
def elect_leaders(
    context: Context, request: ElectLeadersRequest
) -> ElectLeadersResponse | Deferred[ElectLeadersResponse]:
    """Elect; errors are per partition."""

    def refuse(error: ApiError) -> ElectLeadersResponse:
        named = dict.fromkeys(_named(request) or (), error.code)
        return _answer(named, error.code)

    if not is_allowed_on_cluster(context, AclOperation.ALTER):
        return refuse(ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
    if not context.broker.controller.is_active:
        return refuse(not_controller())
    if request.election_type not in set(ElectionType):
        return refuse(ApiError(ErrorCode.INVALID_REQUEST, "no such type of election"))
    return answer_later(context, _elect(context, request), refuse, "leader election")


async def _elect(context: Context, request: ElectLeadersRequest) -> ElectLeadersResponse:
    named = _named(request)
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
    return _answer(results)


def _named(request: ElectLeadersRequest) -> list[TopicPartition] | None:
    if request.topic_partitions is None:
        return None
    return [
        TopicPartition(topic.topic, index)
        for topic in request.topic_partitions
        for index in topic.partitions
    ]


def _answer(
    results: dict[TopicPartition, ErrorCode], code: ErrorCode = ErrorCode.NONE
) -> ElectLeadersResponse:
    topics: dict[str, ElectLeadersResponse.ReplicaElectionResult] = {}
    for at, error in results.items():
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
