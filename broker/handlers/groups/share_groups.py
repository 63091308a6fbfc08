"""ShareGroupHeartbeat and ShareGroupDescribe: share groups (KIP-932).

Both in version 1, the first that is stable. The first requires READ on the group and DESCRIBE on
the topics it names, the second for DESCRIBE on the group and on every topic of its assignments.
Both are answered with UNSUPPORTED_VERSION if the feature `share.version` is not finalised.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker.handlers.groups.group_protocols import (
    Description,
    check_subscription,
    described_groups,
)
from broker.requests.api_table import handles
from broker.requests.authorization import allowed, is_allowed_on_group
from broker.requests.encoded_response import encoded_in_slices
from broker.requests.steps import in_steps
from broker.runtime.deferred import Deferred, in_background
from controller.features.levels import SHARE_VERSION
from coordinator.share_groups.checks import check_share_request, is_member_id
from coordinator.share_groups.heartbeats import ShareCaller, heartbeat_error
from coordinator.share_groups.listing import not_described
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode
from protocol.messages.share_groups import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from broker.coordinators.group_shard_runtime import GroupShardRuntime
    from broker.requests.context import Context
    from broker.requests.services import BrokerServices
    from broker.requests.steps import Steps
    from coordinator.shard import GroupShard
    from coordinator.share_groups.initialisation import Initialisation

HIDDEN_TOPICS: Final = (
    "The group has described topic(s) that the client is not authorized to describe."
)

Described = ShareGroupDescribeResponse.Group


def are_shares_served(context: Context) -> bool:
    """Return whether the cluster has share groups."""
    return context.broker.features.level(SHARE_VERSION) > 0


@handles(ShareGroupHeartbeatRequest, versions="1")
@in_steps
def share_group_heartbeat(
    context: Context, request: ShareGroupHeartbeatRequest
) -> Steps[ShareGroupHeartbeatResponse | Deferred[ShareGroupHeartbeatResponse]]:
    """Join, stay in or leave a group; answered when its changes are committed."""
    broker = context.broker
    try:
        check_subscription(context, request.subscribed_topic_names)
        refused = _refusal(context, request)
        if refused is not None:
            return ShareGroupHeartbeatResponse(
                error_code=refused, member_epoch=0, heartbeat_interval_ms=0
            )
        check_share_request(request)
        shard = broker.groups.shard_for(request.group_id)
        for topic in request.subscribed_topic_names or ():
            shard.groups.shares.prepare_hash(topic)
            yield
    except ApiError as error:
        return heartbeat_error(error)
    reply: Deferred[ShareGroupHeartbeatResponse] = Deferred()
    caller = ShareCaller(context.client_id or "", context.client_host)
    effects, wanted = shard.groups.shares.heartbeat(request, caller, reply, context.now_ms)
    if shard.run(effects) and wanted is not None:
        shard.when_committed(partial(_initialise, broker, shard, wanted))
    return reply


def _refusal(context: Context, request: ShareGroupHeartbeatRequest) -> ErrorCode | None:
    """Error that refuses the request unseen; without a message, as in Apache Kafka."""
    if not are_shares_served(context):
        return ErrorCode.UNSUPPORTED_VERSION
    if not is_allowed_on_group(context, AclOperation.READ, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not is_member_id(request.member_id):
        return ErrorCode.INVALID_REQUEST
    names = set(request.subscribed_topic_names or ())
    if allowed(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names) != names:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return None


def _initialise(
    broker: BrokerServices, shard: GroupShardRuntime, wanted: Initialisation, code: ErrorCode
) -> None:
    """In the background; a later heartbeat has the member's assignment."""
    if code is ErrorCode.NONE:
        initialising = broker.group_states.initialise(shard, wanted)
        broker.spawn(initialising, "share group initialised")


@handles(ShareGroupDescribeRequest, versions="1")
def share_group_describe(
    context: Context, request: ShareGroupDescribeRequest
) -> Deferred[ShareGroupDescribeResponse]:
    """State and members of each group, with their assignments."""

    async def work() -> ShareGroupDescribeResponse:
        is_served = are_shares_served(context)
        groups = await described_groups(context, request, DESCRIPTION, is_served=is_served)
        return await encoded_in_slices(context, ShareGroupDescribeResponse(groups=groups))

    return in_background(context.broker.spawn, work(), "share groups described")


def _topics_of(group: Described) -> set[str]:
    return {
        each.topic_name for member in group.members for each in member.assignment.topic_partitions
    }


def _described(shard: GroupShard, group_id: str) -> Steps[Described]:
    return shard.shares.describe(group_id)


DESCRIPTION: Final = Description(_described, not_described, _topics_of)
