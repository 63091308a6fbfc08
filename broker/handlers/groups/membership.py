"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup: members of classic groups.

JoinGroup 0-9: v1 rebalance timeout, v4 MEMBER_ID_REQUIRED (KIP-394), v5 static members (KIP-345),
v7 protocol type and null protocol name, v8 reason, v9 skip_assignment (KIP-814).
SyncGroup 0-5: v3 static members, v5 requires protocol type and name.
Heartbeat 0-4: v3 static members. LeaveGroup 0-5: v3 batches, v5 reason.

While a shard is loading, Heartbeat answers NONE and SyncGroup REBALANCE_IN_PROGRESS, as in Apache
Kafka: the member retries here, without looking for another coordinator. All ask for READ on the
group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_group
from broker.requests.steps import in_appending_steps
from broker.runtime.deferred import Deferred
from coordinator.groups.group import NO_MEMBER_ID
from coordinator.groups.join import Caller
from coordinator.groups.responses import group_storage_error, join_error, sync_error
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.group_membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

if TYPE_CHECKING:
    from broker.coordinators.group_shard_runtime import GroupShardRuntime
    from broker.requests.context import Context
    from broker.requests.steps import Steps

NULL_PROTOCOL_SINCE = 7
LEAVE_BATCH_SINCE = 3
MOST_PROTOCOLS = 1000
"""Limit per member: a group looks at all of them at once. Real members have one or two."""
LEAVING_AT_ONCE = 100
"""Members that leave in one step; of a consumer group, in one group epoch."""
PROTOCOL_IN_SYNC_SINCE = 5


def _shard(context: Context, group_id: str) -> GroupShardRuntime:
    """The group's shard. Raises ApiError GROUP_AUTHORIZATION_FAILED without READ access."""
    if not is_allowed_on_group(context, AclOperation.READ, group_id):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return context.broker.groups.shard_for_member(group_id)


@handles(JoinGroupRequest, versions="0-9")
def join_group(context: Context, request: JoinGroupRequest) -> Deferred[JoinGroupResponse]:
    """Become or remain a member; answered when every member has joined."""
    reply: Deferred[JoinGroupResponse] = Deferred()
    version = context.api_version
    caller = Caller(context.client_id or "", context.client_host, version)
    try:
        shard = _shard(context, request.group_id)
        if len(request.protocols) > MOST_PROTOCOLS:
            raise ApiError(ErrorCode.INVALID_REQUEST)
        _change_to_classic(shard, request.group_id)
    except ApiError as error:
        is_refused = error.code is ErrorCode.GROUP_AUTHORIZATION_FAILED
        member_id = NO_MEMBER_ID if is_refused else request.member_id
        reply.complete(join_error(error.code, member_id))
    else:
        shard.run(shard.groups.handle_join(request, caller, reply, context.now_ms))
    return reply if version >= NULL_PROTOCOL_SINCE else reply.map(_without_null_protocol)


def _change_to_classic(shard: GroupShardRuntime, group_id: str) -> None:
    """Make room for a classic group, where there is a group of another kind without members."""
    tombstones = shard.groups.handle_change_to_classic(group_id)
    if tombstones:
        failure = shard.forget(tombstones)
        if failure is not ErrorCode.NONE:
            raise ApiError(group_storage_error(failure))


def _without_null_protocol(response: JoinGroupResponse) -> JoinGroupResponse:
    """Below version 7 "no protocol" is written as an empty string."""
    if response.protocol_name is None:
        response.protocol_name = ""
    return response


@handles(SyncGroupRequest, versions="0-5")
def sync_group(
    context: Context, request: SyncGroupRequest
) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
    """Receive the assignment of a generation; the group's leader supplies it."""
    if context.api_version >= PROTOCOL_IN_SYNC_SINCE and (
        request.protocol_type is None or request.protocol_name is None
    ):
        return sync_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    try:
        shard = _shard(context, request.group_id)
    except ApiError as error:
        is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return sync_error(ErrorCode.REBALANCE_IN_PROGRESS if is_loading else error.code)
    answer: Deferred[SyncGroupResponse] = Deferred()
    shard.run(shard.groups.handle_sync(request, answer, context.now_ms))
    return answer


@handles(HeartbeatRequest, versions="0-4")
def heartbeat(context: Context, request: HeartbeatRequest) -> HeartbeatResponse:
    """Keep a member's session alive. REBALANCE_IN_PROGRESS means that it has to join again."""
    try:
        shard = _shard(context, request.group_id)
    except ApiError as error:
        is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else error.code)
    return HeartbeatResponse(error_code=shard.groups.handle_heartbeat(request))


@handles(LeaveGroupRequest, versions="0-5")
@in_appending_steps
def leave_group(context: Context, request: LeaveGroupRequest) -> Steps[LeaveGroupResponse]:
    """Remove members. Below version 3 there is one, and its error is that of the response.

    Of many, `LEAVING_AT_ONCE` together: others are served and may join or leave in between.
    """
    if context.api_version < LEAVE_BATCH_SINCE:
        (left,) = _leave(context, request, [LeaveGroupRequest.Member(member_id=request.member_id)])
        return LeaveGroupResponse(error_code=left.error_code)
    response = LeaveGroupResponse(error_code=ErrorCode.NONE, members=[])
    for start in range(0, len(request.members) or 1, LEAVING_AT_ONCE):
        some = request.members[start : start + LEAVING_AT_ONCE]
        response.members += _leave(context, request, some)
        yield
    return response


def _leave(
    context: Context, request: LeaveGroupRequest, members: list[LeaveGroupRequest.Member]
) -> list[LeaveGroupResponse.Member]:
    shard = _shard(context, request.group_id)
    left, effects = shard.groups.handle_leave(request.group_id, members, context.now_ms)
    shard.run(effects)
    return left
