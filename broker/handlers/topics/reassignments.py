"""AlterPartitionReassignments and ListPartitionReassignments: moving replicas (KIP-455).

Served by the controller. A request is answered when its moves are stored, not when they are
complete; null replicas cancel a move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.metadata.metadata_watch import not_controller
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_cluster, require_on_cluster
from broker.requests.background_answer import answer_later
from broker.requests.steps import in_steps
from controller.context import TopicPartition
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.reassignment import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.runtime.deferred import Deferred
    from controller.znodes import Replicas

Altered = AlterPartitionReassignmentsResponse.Response
Listed = ListPartitionReassignmentsResponse.Topic


@handles(AlterPartitionReassignmentsRequest, versions="0-1")
def alter_reassignments(
    context: Context, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse | Deferred[AlterPartitionReassignmentsResponse]:
    """Begin, redirect or cancel moves; errors are per partition."""
    if not is_allowed_on_cluster(context, AclOperation.ALTER):
        return _refuse_all(context, request, ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))

    def refuse(error: ApiError) -> AlterPartitionReassignmentsResponse:
        return AlterPartitionReassignmentsResponse(
            error_code=error.code, error_message=error.message or error.code.meaning, responses=[]
        )

    if not context.broker.controller.is_active:
        return refuse(not_controller())
    return answer_later(context, _alter(context, request), refuse, "reassignment")


@in_steps
def _refuse_all(
    _: Context, request: AlterPartitionReassignmentsRequest, error: ApiError
) -> Steps[AlterPartitionReassignmentsResponse]:
    """The same error for the request and for each of its partitions."""
    response = AlterPartitionReassignmentsResponse(
        error_code=error.code, error_message=error.code.meaning, responses=[]
    )
    for topic in request.topics:
        answer = Altered(name=topic.name, partitions=[])
        response.responses.append(answer)
        for one in topic.partitions:
            answer.partitions.append(_altered(one.partition_index, error))
            yield
        yield
    return response


async def _alter(
    context: Context, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    results: dict[TopicPartition, ApiError | None] = {}
    wanted: dict[TopicPartition, Replicas | None] = {}
    slices = context.broker.slices()
    async for topic in slices.each(request.topics):
        async for partition in slices.each(topic.partitions):
            at = TopicPartition(topic.name, partition.partition_index)
            target = None if partition.replicas is None else tuple(partition.replicas)
            error = _check_factor(context, request, at, target)
            if error is None:
                wanted[at] = target
            else:
                results[at] = error
    results |= await context.broker.controller.commands.reassign(wanted)
    responses = []
    async for topic in slices.each(request.topics):
        answers: dict[int, Altered.Partition] = {}
        async for partition in slices.each(topic.partitions):
            index = partition.partition_index
            answers[index] = _altered(index, results[TopicPartition(topic.name, index)])
        responses.append(Altered(name=topic.name, partitions=list(answers.values())))
    return AlterPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=responses,
    )


def _check_factor(
    context: Context,
    request: AlterPartitionReassignmentsRequest,
    at: TopicPartition,
    target: Replicas | None,
) -> ApiError | None:
    """Since v1 (KIP-860) a client may forbid a change of the replication factor."""
    known = context.broker.metadata.partition(*at)
    if request.allow_replication_factor_change or target is None or known is None:
        return None
    if len(target) == len(known.replicas):
        return None
    return ApiError(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"The replication factor is changed from {len(known.replicas)} to {len(target)}",
    )


def _altered(
    index: int, error: ApiError | None
) -> AlterPartitionReassignmentsResponse.Response.Partition:
    return Altered.Partition(
        partition_index=index,
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message or error.code.meaning,
    )


@handles(ListPartitionReassignmentsRequest, versions="0")
@in_steps
def list_reassignments(
    context: Context, request: ListPartitionReassignmentsRequest
) -> Steps[ListPartitionReassignmentsResponse]:
    """List the moves in progress. Raises ApiError CLUSTER_AUTHORIZATION_FAILED."""
    require_on_cluster(context, AclOperation.DESCRIBE)
    controller = context.broker.controller.context
    if controller is None:
        error = not_controller()
        return ListPartitionReassignmentsResponse(
            error_code=error.code, error_message=error.message, topics=[]
        )
    named = None
    if request.topics is not None:
        named = set()
        for asked in request.topics:
            for index in asked.partition_indexes:
                named.add(TopicPartition(asked.name, index))
                yield
            yield
    topics: dict[str, ListPartitionReassignmentsResponse.Topic] = {}
    for at, move in list(controller.reassigning.items()):
        yield
        if named is not None and at not in named:
            continue
        topic = topics.setdefault(at.topic, Listed(name=at.topic, partitions=[]))
        topic.partitions.append(
            Listed.Partition(
                partition_index=at.partition,
                replicas=list(move.replicas),
                adding_replicas=list(move.adding),
                removing_replicas=list(move.removing),
            )
        )
    return ListPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE, error_message=None, topics=list(topics.values())
    )
