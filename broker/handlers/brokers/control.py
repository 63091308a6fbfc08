"""Requests between the controller and the brokers, in both directions (ZooKeeper mode).

LeaderAndIsr, UpdateMetadata and StopReplica are refused from an older controller, and when they
were meant for an earlier registration of this broker (KIP-380). AlterPartition (KIP-497),
ControlledShutdown and AllocateProducerIds are served by the controller only. All are refused with
CLUSTER_AUTHORIZATION_FAILED unless the client may do CLUSTER_ACTION, as brokers may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.api_table import handles
from broker.requests.authorization import require_on_cluster
from broker.requests.background_answer import answer_later
from broker.runtime.deferred import Deferred, from_future
from controller.brokers.producer_ids import allocate_producer_ids
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from protocol.messages.leader_and_isr import LeaderAndIsrRequest
from protocol.messages.producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from protocol.messages.stop_replica import StopReplicaRequest
from protocol.messages.update_metadata import UpdateMetadataRequest

if TYPE_CHECKING:
    from broker.requests.context import Context
    from protocol.schema import Response

ANY_EPOCH = -1


@handles(LeaderAndIsrRequest, versions="2-7", for_clusters=True)
def leader_and_isr(context: Context, request: LeaderAndIsrRequest) -> Deferred[Response]:
    """Make this broker leader or follower of partitions. Raises ApiError STALE_BROKER_EPOCH."""
    return _in_turn(context, request)


@handles(UpdateMetadataRequest, versions="5-8", for_clusters=True)
def update_metadata(context: Context, request: UpdateMetadataRequest) -> Deferred[Response]:
    """Learn the live brokers and the partition leaders. Raises ApiError STALE_BROKER_EPOCH."""
    return _in_turn(context, request)


@handles(StopReplicaRequest, versions="3-4", for_clusters=True)
def stop_replica(context: Context, request: StopReplicaRequest) -> Deferred[Response]:
    """Stop serving replicas, and delete them if asked to. Raises ApiError STALE_BROKER_EPOCH."""
    return _in_turn(context, request)


@handles(AlterPartitionRequest, versions="2-3", for_clusters=True)
def alter_partition(
    context: Context, request: AlterPartitionRequest
) -> Deferred[AlterPartitionResponse]:
    """Store the in-sync sets that a leader proposes."""

    def refuse(error: ApiError) -> AlterPartitionResponse:
        return AlterPartitionResponse(error_code=error.code, topics=[])

    require_on_cluster(context, AclOperation.CLUSTER_ACTION)
    work = context.broker.controller.commands.alter_partitions(request)
    return answer_later(context, work, refuse, "in-sync replicas")


@handles(ControlledShutdownRequest, versions="2-3", for_clusters=True)
def controlled_shutdown(
    context: Context, request: ControlledShutdownRequest
) -> Deferred[ControlledShutdownResponse]:
    """Move leadership away from a broker that is about to stop."""
    require_on_cluster(context, AclOperation.CLUSTER_ACTION)

    async def work() -> ControlledShutdownResponse:
        remaining = await context.broker.controller.commands.relieve(
            request.broker_id, request.broker_epoch
        )
        return ControlledShutdownResponse(
            error_code=ErrorCode.NONE,
            remaining_partitions=[
                ControlledShutdownResponse.RemainingPartition(
                    topic_name=at.topic, partition_index=at.partition
                )
                for at in remaining
            ],
        )

    def refuse(error: ApiError) -> ControlledShutdownResponse:
        return ControlledShutdownResponse(error_code=error.code, remaining_partitions=[])

    return answer_later(context, work(), refuse, "controlled shutdown")


@handles(AllocateProducerIdsRequest, versions="0", for_clusters=True)
def allocate(
    context: Context, request: AllocateProducerIdsRequest
) -> Deferred[AllocateProducerIdsResponse]:
    """Give a broker the next block of producer ids."""
    require_on_cluster(context, AclOperation.CLUSTER_ACTION)

    async def work() -> AllocateProducerIdsResponse:
        context.broker.controller.require_broker(request.broker_id, request.broker_epoch)
        block = await allocate_producer_ids(context.broker.store, request.broker_id)
        return AllocateProducerIdsResponse(
            error_code=ErrorCode.NONE, producer_id_start=block.start, producer_id_len=len(block)
        )

    def refuse(error: ApiError) -> AllocateProducerIdsResponse:
        return AllocateProducerIdsResponse(
            error_code=error.code, producer_id_start=0, producer_id_len=0
        )

    return answer_later(context, work(), refuse, "producer ids")


def _in_turn(
    context: Context, request: LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
) -> Deferred[Response]:
    """Apply a control request after those received before it, from whatever controller.

    Raises ApiError STALE_BROKER_EPOCH for one that was meant for this broker before it restarted,
    CLUSTER_AUTHORIZATION_FAILED for one that is not a broker's.
    """
    require_on_cluster(context, AclOperation.CLUSTER_ACTION)
    if _is_for_earlier_life(context, request.broker_epoch):
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH)
    return from_future(context.broker.control.send(context.broker.config.broker_id, request))


def _is_for_earlier_life(context: Context, broker_epoch: int) -> bool:
    """Return whether the request is for an older epoch than ours; the controller's may be newer."""
    return ANY_EPOCH < broker_epoch < context.broker.broker_epoch
