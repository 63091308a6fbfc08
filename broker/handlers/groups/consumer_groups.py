"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: groups of the newer protocol (KIP-848).

ConsumerGroupHeartbeat 0-1: v1 regular expressions, and member ids that clients choose (KIP-1082).
ConsumerGroupDescribe 0-1: v1 the protocol of each member (KIP-1099). The first requires READ on the
group and DESCRIBE on the topics it names, the second for DESCRIBE on the group and on every topic
of its assignments.

Both are answered with UNSUPPORTED_VERSION if `group.coordinator.rebalance.protocols` lacks
"consumer", or the feature `group.version` is not finalised: some broker may not be able to
coordinate such a group.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker.handlers.groups.group_protocols import (
    Description,
    check_subscription,
    described_groups,
    is_served,
)
from broker.requests.api_table import handles
from broker.requests.authorization import allowed, is_allowed_on_group
from broker.requests.encoded_response import encoded_in_slices
from broker.requests.steps import in_steps
from broker.runtime.deferred import Deferred, in_background
from controller.features.levels import GROUP_VERSION
from coordinator.consumer_groups.heartbeats.checks import check_request
from coordinator.consumer_groups.heartbeats.request import HeartbeatCaller
from coordinator.consumer_groups.heartbeats.responses import heartbeat_error
from coordinator.consumer_groups.listing import not_described
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode
from protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.security.authorizer import Authorizer
    from coordinator.shard import GroupShard

CONSUMER_PROTOCOL = "consumer"
HIDDEN_TOPICS: Final = (
    "The group has described topic(s) that the client is not authorized to describe."
)

Described = ConsumerGroupDescribeResponse.Group


def _is_served(context: Context) -> bool:
    return is_served(context, GROUP_VERSION, CONSUMER_PROTOCOL)


@handles(ConsumerGroupHeartbeatRequest, versions="0-1")
@in_steps
def consumer_group_heartbeat(
    context: Context, request: ConsumerGroupHeartbeatRequest
) -> Steps[ConsumerGroupHeartbeatResponse | Deferred[ConsumerGroupHeartbeatResponse]]:
    """Join, stay in or leave a group; answered when its changes are committed."""
    try:
        _check(context, request)
        groups = context.broker.groups
        check_request(request, context.api_version, groups.assignors)
        shard = groups.shard_for(request.group_id)
        for topic in request.subscribed_topic_names or ():
            shard.groups.consumers.prepare_hash(topic)
            yield
    except ApiError as error:
        return heartbeat_error(error)
    reply: Deferred[ConsumerGroupHeartbeatResponse] = Deferred()
    caller = HeartbeatCaller(context.client_id or "", context.client_host, _may_describe(context))
    shard.run(shard.groups.consumers.heartbeat(request, caller, reply, context.now_ms))
    return reply


def _check(context: Context, request: ConsumerGroupHeartbeatRequest) -> None:
    if not _is_served(context):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    if not is_allowed_on_group(context, AclOperation.READ, request.group_id):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    check_subscription(context, request.subscribed_topic_names)
    names = set(request.subscribed_topic_names or ())
    if allowed(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names) != names:
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _may_describe(context: Context) -> partial[bool]:
    """Predicate of whether the client may describe a topic; it outlives the request."""
    broker = context.broker
    return partial(_is_visible, broker.authorizer, context.principal, context.client_host)


def _is_visible(authorizer: Authorizer | None, principal: str, host: str, topic: str) -> bool:
    return authorizer is None or authorizer.would_allow(
        principal, host, AclOperation.DESCRIBE, ResourceType.TOPIC, topic
    )


@handles(ConsumerGroupDescribeRequest, versions="0-1")
def consumer_group_describe(
    context: Context, request: ConsumerGroupDescribeRequest
) -> Deferred[ConsumerGroupDescribeResponse]:
    """State and members of each group, with their current and target assignments."""

    async def work() -> ConsumerGroupDescribeResponse:
        is_served = _is_served(context)
        groups = await described_groups(context, request, DESCRIPTION, is_served=is_served)
        return await encoded_in_slices(context, ConsumerGroupDescribeResponse(groups=groups))

    return in_background(context.broker.spawn, work(), "consumer groups described")


def _topics_of(group: Described) -> set[str]:
    return {
        each.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for each in assignment.topic_partitions
    }


def _described(shard: GroupShard, group_id: str) -> Steps[Described]:
    return shard.consumers.describe(group_id)


DESCRIPTION: Final = Description(_described, not_described, _topics_of)
