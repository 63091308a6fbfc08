"""ShareAcknowledge: a member's acknowledgements of records, without a fetch (KIP-932).

Versions 1 and 2, the latter with renewals. It takes an epoch of the member's session, as ShareFetch
does; epoch -1 ends the session. Source: `KafkaApis.handleShareAcknowledgeRequest`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.records.current_leader import current_leader
from broker.handlers.records.fetch_read import LED_OTHERWISE
from broker.handlers.share_groups.acknowledgements import Acknowledgements
from broker.handlers.share_groups.membership import checked_member
from broker.handlers.share_groups.topic_access import TopicAccess
from broker.requests.api_table import handles
from broker.requests.steps import in_steps
from broker.share_partitions.share_sessions import CLOSING_EPOCH, OPENING_EPOCH, TopicPartition
from protocol.errors import ApiError, ErrorCode
from protocol.messages.share_fetch import ShareAcknowledgeRequest, ShareAcknowledgeResponse

if TYPE_CHECKING:
    from broker.handlers.share_groups.acknowledgements import Outcomes
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.runtime.deferred import Deferred
    from broker.share_partitions.share_sessions import ShareSession

Topic = ShareAcknowledgeResponse.Response
Answer = Topic.Partition
NodeEndpoint = ShareAcknowledgeResponse.NodeEndpoint


@handles(ShareAcknowledgeRequest, versions="1-2")
@in_steps
def share_acknowledge(
    context: Context, request: ShareAcknowledgeRequest
) -> Steps[Deferred[ShareAcknowledgeResponse]]:
    """Answered when all of it is stored, or refused."""
    member = checked_member(context, request.group_id, request.member_id)
    if request.share_session_epoch == OPENING_EPOCH:
        raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    sessions = context.broker.share_partitions.sessions
    session = sessions.require(member, request.share_session_epoch)
    access = TopicAccess(context)
    acknowledging = Acknowledgements(context, member, access, is_renewal=request.is_renew_ack)
    for topic in request.topics:
        for partition in topic.partitions:
            wanted = TopicPartition(topic.topic_id, partition.partition_index)
            yield from acknowledging.add(wanted, partition.acknowledgement_batches)
            yield
    acknowledging.close()
    return acknowledging.outcomes.map(
        lambda known: _response(context, request, session, access, known)
    )


@in_steps
def _response(
    context: Context,
    request: ShareAcknowledgeRequest,
    session: ShareSession,
    access: TopicAccess,
    known: Outcomes,
) -> Steps[ShareAcknowledgeResponse]:
    shares = context.broker.share_partitions
    if request.share_session_epoch == CLOSING_EPOCH:
        shares.end_session(session)
    endpoints: dict[int, NodeEndpoint] = {}
    topics: dict[object, Topic] = {}
    for wanted, error in known.items():
        topic = topics.get(wanted.topic_id)
        if topic is None:
            topic = topics[wanted.topic_id] = Topic(topic_id=wanted.topic_id, partitions=[])
        topic.partitions.append(_answer(context, access, wanted, error, endpoints))
        yield
    settings = shares.groups.settings_of(session.member.group_id)
    return ShareAcknowledgeResponse(
        error_code=ErrorCode.NONE,
        acquisition_lock_timeout_ms=settings.record_lock_duration_ms,
        responses=list(topics.values()),
        node_endpoints=list(endpoints.values()),
    )


def _answer(
    context: Context,
    access: TopicAccess,
    wanted: TopicPartition,
    error: ApiError | None,
    endpoints: dict[int, NodeEndpoint],
) -> Answer:
    leader = Answer.CurrentLeader(leader_id=0, leader_epoch=0)
    answer = Answer(
        partition_index=wanted.partition, error_code=ErrorCode.NONE, current_leader=leader
    )
    if error is not None:
        answer.error_code = error.code
        answer.error_message = error.message
        if error.code in LED_OTHERWISE:
            name = access.name(wanted.topic_id)
            leader_id, epoch, node = current_leader(context, name, wanted.partition)
            answer.current_leader = Answer.CurrentLeader(leader_id=leader_id, leader_epoch=epoch)
            if node is not None:
                endpoints[node.id] = NodeEndpoint(
                    node_id=node.id, host=node.host, port=node.port, rack=node.rack
                )
    return answer
