"""The metadata quorum of a broker without ZooKeeper: its embedded store, a quorum of one.

DescribeQuorum versions 0 to 2, AddRaftVoter 0 and 1, RemoveRaftVoter 0, UnregisterBroker 0,
UnregisterController 0; not served with ZooKeeper, as by Apache Kafka 3.9. To a tool the store looks
like the log `__cluster_metadata` of a combined node: its transactions count as offsets, the
controller's epoch is the leader's, and this broker the only voter. Voters cannot be added or
removed; the answer is that of an Apache Kafka node with the voters in its property file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.api_table import handles
from broker.requests.authorization import require_on_cluster
from broker.requests.background_answer import answer_later
from broker.requests.steps import in_steps
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.cluster import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    DescribeQuorumReplicaState,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.runtime.deferred import Deferred

QUORUM = ("__cluster_metadata", [0])
"""The one topic with a quorum, and its partitions."""


Topic = DescribeQuorumResponse.Topic
Node = DescribeQuorumResponse.Node


@handles(DescribeQuorumRequest, versions="0-2", for_one=True)
@in_steps
def describe_quorum(
    context: Context, request: DescribeQuorumRequest
) -> Steps[DescribeQuorumResponse]:
    """Describe the store; of any other partition, or of several, errors. Raises ApiError."""
    require_on_cluster(context, AclOperation.DESCRIBE)
    if _is_of_store(request):
        partition = _of_store(context)
        topics = [Topic(topic_name=QUORUM[0], partitions=[partition])]
        return DescribeQuorumResponse(
            error_code=ErrorCode.NONE, topics=topics, nodes=_nodes(context)
        )
    topics = []
    for asked in request.topics:
        topics.append(Topic(topic_name=asked.topic_name, partitions=[]))
        for each in asked.partitions:
            topics[-1].partitions.append(_not_hosted(each.partition_index))
            yield
        yield
    return DescribeQuorumResponse(error_code=ErrorCode.NONE, topics=topics)


def _is_of_store(request: DescribeQuorumRequest) -> bool:
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return False
    (topic,) = request.topics
    return (topic.topic_name, [topic.partitions[0].partition_index]) == QUORUM


def _of_store(context: Context) -> Topic.Partition:
    broker = context.broker
    end = broker.store.newest_transaction
    voter = DescribeQuorumReplicaState(
        replica_id=broker.config.broker_id,
        log_end_offset=end,
        last_fetch_timestamp=context.now_ms,
        last_caught_up_timestamp=context.now_ms,
    )
    return Topic.Partition(
        partition_index=QUORUM[1][0],
        error_code=ErrorCode.NONE,
        leader_id=broker.config.broker_id,
        leader_epoch=broker.metadata.controller_epoch,
        high_watermark=end,
        current_voters=[voter],
        observers=[],
    )


def _not_hosted(index: int) -> Topic.Partition:
    return Topic.Partition(
        partition_index=index,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message="This server does not host this topic-partition.",
        leader_id=0,
        leader_epoch=0,
        high_watermark=0,
        current_voters=[],
        observers=[],
    )


def _nodes(context: Context) -> list[Node]:
    """The voter, at the listener of the request: there is no controller listener."""
    return [
        Node(
            node_id=node.id,
            listeners=[Node.Listener(name=context.listener, host=node.host, port=node.port)],
        )
        for node in context.broker.metadata.nodes(context.listener)
    ]


@handles(AddRaftVoterRequest, versions="0-1", for_one=True)
def add_raft_voter(context: Context, request: AddRaftVoterRequest) -> AddRaftVoterResponse:
    """Refuse. Raises ApiError."""
    require_on_cluster(context, AclOperation.ALTER)
    error = _why_not(context, request.cluster_id, "adding")
    return AddRaftVoterResponse(error_code=error.code, error_message=error.message)


@handles(RemoveRaftVoterRequest, versions="0", for_one=True)
def remove_raft_voter(context: Context, request: RemoveRaftVoterRequest) -> RemoveRaftVoterResponse:
    """Refuse. Raises ApiError."""
    require_on_cluster(context, AclOperation.ALTER)
    error = _why_not(context, request.cluster_id, "removing")
    return RemoveRaftVoterResponse(error_code=error.code, error_message=error.message)


def _why_not(context: Context, cluster_id: str | None, doing: str) -> ApiError:
    own = context.broker.cluster_id
    if cluster_id is not None and cluster_id != own:
        reason = f'The given id "{cluster_id}" doesn\'t match the cluster id "{own}"'
        return ApiError(ErrorCode.INCONSISTENT_CLUSTER_ID, reason)
    reason = f"Cluster doesn't support {doing} voter because the kraft.version feature is 0"
    return ApiError(ErrorCode.UNSUPPORTED_VERSION, reason)


@handles(UnregisterBrokerRequest, versions="0", for_one=True)
def unregister_broker(
    context: Context, request: UnregisterBrokerRequest
) -> Deferred[UnregisterBrokerResponse]:
    """Take a broker out, which can only be this one: it registers again at once, being alive.

    Raises ApiError.
    """
    require_on_cluster(context, AclOperation.ALTER)
    broker, broker_id = context.broker, request.broker_id

    async def work() -> UnregisterBrokerResponse:
        if broker_id not in broker.metadata.brokers:
            raise ApiError(
                ErrorCode.BROKER_ID_NOT_REGISTERED,
                f"Broker ID {broker_id} is not currently registered",
            )
        await broker.registrar.renew()
        return UnregisterBrokerResponse(error_code=ErrorCode.NONE)

    def refuse(error: ApiError) -> UnregisterBrokerResponse:
        return UnregisterBrokerResponse(error_code=error.code, error_message=error.message)

    return answer_later(context, work(), refuse, "unregister broker")


@handles(UnregisterControllerRequest, versions="0", for_one=True)
def unregister_controller(
    context: Context, request: UnregisterControllerRequest
) -> UnregisterControllerResponse:
    """Refuse: the only controller is this broker, and active. Raises ApiError."""
    require_on_cluster(context, AclOperation.ALTER)
    controller_id = request.controller_id
    if controller_id == context.broker.config.broker_id:
        code = ErrorCode.INVALID_REQUEST
        message = "Controller cannot unregister itself while it is active."
    else:
        code = ErrorCode.CONTROLLER_ID_NOT_REGISTERED
        message = f"Controller ID {controller_id} is not currently registered."
    return UnregisterControllerResponse(error_code=code, error_message=message)
