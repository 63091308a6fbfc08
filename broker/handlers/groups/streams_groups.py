"""StreamsGroupHeartbeat and StreamsGroupDescribe: groups of Kafka Streams applications (KIP-1071).

StreamsGroupHeartbeat 0 and 1 require READ on the group and DESCRIBE on all topics of the topology,
and for CREATE on internal topics that are missing. StreamsGroupDescribe 0 and 1 require DESCRIBE on
the group and on all topics of its topology. StreamsGroupTopologyDescriptionUpdate 0 requires READ
on the group; no descriptions are stored, as by an Apache Kafka broker without a plug-in for them
(KIP-1331).

All are answered with UNSUPPORTED_VERSION if `group.coordinator.rebalance.protocols` lacks
"streams", or the feature `streams.version` is not finalised: some broker may not be able to
coordinate such a group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.handlers.groups.group_protocols import Description, described_groups, is_served
from broker.handlers.groups.streams_topic_creation import create_missing
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_group, is_allowed_on_topic
from broker.requests.encoded_response import encoded_in_slices
from broker.requests.steps import in_steps
from broker.runtime.deferred import Deferred, in_background
from controller.features.levels import STREAMS_VERSION
from controller.topics.topic_names import INTERNAL_TOPICS, name_problem
from coordinator.streams_groups.heartbeats.checks import check_request, check_size
from coordinator.streams_groups.heartbeats.membership import HeartbeatCaller
from coordinator.streams_groups.heartbeats.responses import error_response
from coordinator.streams_groups.listing import not_described
from coordinator.streams_groups.partition_counts import invalid_topology
from coordinator.streams_groups.topology import required_topics
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.streams_groups import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from coordinator.shard import GroupShard
    from coordinator.streams_groups.heartbeats.responses import Outcome

STREAMS_PROTOCOL: Final = "streams"
NOT_STORED: Final = 1
HIDDEN_TOPICS: Final = (
    "The described group uses topics that the client is not authorized to describe."
)

Described = StreamsGroupDescribeResponse.Group
Subtopology = StreamsGroupHeartbeatRequest.Topology.Subtopology


def _is_served(context: Context) -> bool:
    return is_served(context, STREAMS_VERSION, STREAMS_PROTOCOL)


@handles(StreamsGroupHeartbeatRequest, versions="0-1")
@in_steps
def streams_group_heartbeat(
    context: Context, request: StreamsGroupHeartbeatRequest
) -> Steps[StreamsGroupHeartbeatResponse | Deferred[StreamsGroupHeartbeatResponse]]:
    """Join, stay in or leave a group; answered when its changes are committed."""
    groups = context.broker.groups
    try:
        yield from _check(context, request)
        check_request(request, groups.settings.streams.max_tasks)
        shard = groups.shard_for(request.group_id)
        yield from shard.groups.streams.hash_topics(request)
    except ApiError as error:
        return error_response(error)
    outcome: Deferred[Outcome] = Deferred()
    caller = HeartbeatCaller(context.client_id or "", context.client_host, context.api_version)
    shard.run(shard.groups.streams.heartbeat(request, caller, outcome, context.now_ms))

    def answered(decided: Outcome) -> StreamsGroupHeartbeatResponse:
        if decided.missing:
            create_missing(context, request.group_id, decided.missing, decided.response)
        return decided.response

    return outcome.map(answered)


def _check(context: Context, request: StreamsGroupHeartbeatRequest) -> Steps[None]:
    if not _is_served(context):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    if not is_allowed_on_group(context, AclOperation.READ, request.group_id):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if request.topology is None:
        return
    check_size(request.topology, context.broker.groups.settings.streams.max_topology_size)
    topics = list(dict.fromkeys(_topics(request.topology.subtopologies)))
    internal = [topic for topic in topics if topic in INTERNAL_TOPICS]
    if internal:
        raise invalid_topology(
            f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is "
            "prohibited."
        )
    illegal = [topic for topic in topics if name_problem(topic)]
    if illegal:
        raise invalid_topology(f"Topic names {','.join(illegal)} are not valid topic names.")
    is_hidden = False
    for topic in topics:
        is_hidden = not is_allowed_on_topic(context, AclOperation.DESCRIBE, topic) or is_hidden
        yield
    if is_hidden:
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _topics(subtopologies: Iterable[Subtopology]) -> Iterator[str]:
    """All topics of a topology."""
    for each in subtopologies:
        yield from each.repartition_sink_topics
        yield from required_topics([each])


@handles(StreamsGroupDescribeRequest, versions="0-1")
def streams_group_describe(
    context: Context, request: StreamsGroupDescribeRequest
) -> Deferred[StreamsGroupDescribeResponse]:
    """State, topology and members of each group, with their current and target tasks."""

    async def work() -> StreamsGroupDescribeResponse:
        is_served = _is_served(context)
        groups = await described_groups(context, request, DESCRIPTION, is_served=is_served)
        if request.include_topology_description:
            for group in groups:
                if group.error_code == ErrorCode.NONE:
                    group.topology_description_status = NOT_STORED
        return await encoded_in_slices(context, StreamsGroupDescribeResponse(groups=groups))

    return in_background(context.broker.spawn, work(), "streams groups described")


def _topics_of(group: Described) -> set[str]:
    topology = group.topology
    return {
        topic
        for each in (topology.subtopologies if topology is not None else None) or ()
        for topic in (
            *each.source_topics,
            *each.repartition_sink_topics,
            *(info.name for info in each.repartition_source_topics),
            *(info.name for info in each.state_changelog_topics),
        )
    }


def _described(shard: GroupShard, group_id: str) -> Steps[Described]:
    return shard.streams.describe(group_id)


@handles(StreamsGroupTopologyDescriptionUpdateRequest, versions="0")
def update_topology_description(
    context: Context, request: StreamsGroupTopologyDescriptionUpdateRequest
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    """Refuse, with what Apache Kafka says where no plug-in stores descriptions."""
    if not _is_served(context):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    if not is_allowed_on_group(context, AclOperation.READ, request.group_id):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return StreamsGroupTopologyDescriptionUpdateResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        error_message="The broker has no streams group topology description plugin configured.",
    )


DESCRIPTION: Final = Description(_described, not_described, _topics_of, HIDDEN_TOPICS)
