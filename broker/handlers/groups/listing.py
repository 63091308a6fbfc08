"""ListGroups, DescribeGroups, DeleteGroups: the requests of administration tools.

ListGroups 0-5: v4 states filter (KIP-518), v5 types filter (KIP-848).
DescribeGroups 0-6: v3 authorized operations, v4 static members, v6 GROUP_ID_NOT_FOUND (KIP-1043).
DeleteGroups 0-2. Groups of one request may live in different shards; each has its own error. One
that is named again is described, and deleted, once: a few bytes must not cost all its members.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker.coordinators.share_state.group_states import store
from broker.requests.api_table import handles
from broker.requests.authorization import (
    is_allowed_on_group,
    would_be_allowed,
    would_be_allowed_on_cluster,
)
from broker.requests.authorized_operations import authorized_operations
from broker.requests.encoded_response import encoded_in_slices
from broker.runtime.countdown import Countdown
from broker.runtime.deferred import errors_to, in_background
from coordinator.storage_errors import storage_error
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode
from protocol.messages.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)

if TYPE_CHECKING:
    from broker.coordinators.group_shard_runtime import GroupShardRuntime
    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred

ERROR_MESSAGE_SINCE = 6

Result = DeleteGroupsResponse.Result


@handles(ListGroupsRequest, versions="0-5")
def list_groups(context: Context, request: ListGroupsRequest) -> Deferred[ListGroupsResponse]:
    """All groups of this broker, with COORDINATOR_LOAD_IN_PROGRESS while some are loading.

    Without DESCRIBE on the cluster, those on which the client has DESCRIBE.
    """
    coordinators = context.broker.groups
    is_loading = coordinators.is_loading
    states, types = request.states_filter, request.types_filter
    may_see_all = would_be_allowed_on_cluster(context, AclOperation.DESCRIBE)

    async def work() -> ListGroupsResponse:
        slices = context.broker.slices()
        groups = [
            group
            for shard in list(coordinators.active_shards())
            async for group in slices.each(shard.groups.handle_list(states, types))
            if may_see_all or _may_see(context, group.group_id)
        ]
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NONE
        response = ListGroupsResponse(error_code=error, groups=groups)
        return await encoded_in_slices(context, response)

    return in_background(context.broker.spawn, work(), "groups listed")


def _may_see(context: Context, group_id: str) -> bool:
    return would_be_allowed(context, AclOperation.DESCRIBE, ResourceType.GROUP, group_id)


@handles(DescribeGroupsRequest, versions="0-6")
def describe_groups(
    context: Context, request: DescribeGroupsRequest
) -> Deferred[DescribeGroupsResponse]:
    """State and members of each group."""

    async def work() -> DescribeGroupsResponse:
        described, slices = [], context.broker.slices()
        wanted = {group_id: None async for group_id in slices.each(request.groups)}
        async for group_id in slices.each(wanted):
            group = _describe(context, group_id)
            if request.include_authorized_operations and not group.error_code:
                group.authorized_operations = authorized_operations(
                    context, ResourceType.GROUP, group_id
                )
            described.append(group)
        return await encoded_in_slices(context, DescribeGroupsResponse(groups=described))

    return in_background(context.broker.spawn, work(), "groups described")


def _describe(context: Context, group_id: str) -> DescribeGroupsResponse.Group:
    version = context.api_version
    try:
        if not is_allowed_on_group(context, AclOperation.DESCRIBE, group_id):
            raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return context.broker.groups.shard_for(group_id).groups.handle_describe(group_id, version)
    except ApiError as error:
        return DescribeGroupsResponse.Group(
            error_code=error.code,
            error_message=error.message if version >= ERROR_MESSAGE_SINCE else None,
            group_id=group_id,
            group_state="",
            protocol_type="",
            protocol_data="",
            members=[],
        )


@handles(DeleteGroupsRequest, versions="0-3")
def delete_groups(context: Context, request: DeleteGroupsRequest) -> Deferred[DeleteGroupsResponse]:
    """Delete empty groups; answered when that is committed."""
    response = DeleteGroupsResponse(results=[])
    gather = Countdown(lambda: response)

    async def work() -> None:
        with errors_to(gather.deferred):
            async for group_id in context.broker.slices().each(dict.fromkeys(request.groups_names)):
                result = Result(group_id=group_id, error_code=ErrorCode.NONE)
                response.results.append(result)
                _delete(context, result, gather)
            gather.close()

    context.broker.spawn(work(), "groups deleted")
    return gather.deferred


def _delete(context: Context, result: Result, gather: Countdown[DeleteGroupsResponse]) -> None:
    try:
        if not is_allowed_on_group(context, AclOperation.DELETE, result.group_id):
            raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        shard = context.broker.groups.shard_for(result.group_id)
    except ApiError as error:
        result.error_code = error.code
        return
    if result.group_id in shard.groups.shares:
        deleting = _delete_share_group(context, shard, result.group_id)
        deleted = in_background(context.broker.spawn, deleting, "share group deleted")
        gather.await_(deleted, partial(setattr, result, "error_code"))
        return
    code, tombstones = shard.groups.handle_delete_group(result.group_id)
    result.error_code = code or storage_error(shard.forget(tombstones))

    def committed(failure: ErrorCode) -> None:
        result.error_code = result.error_code or storage_error(failure)

    shard.when_committed(gather.expect(committed))


async def _delete_share_group(
    context: Context, shard: GroupShardRuntime, group_id: str
) -> ErrorCode:
    """Delete an empty group once the share coordinators have forgotten its state."""
    shares = shard.groups.shares
    try:
        with shares.forgetting(group_id):
            begun = shares.handle_delete_all(group_id)
            await store(shard, begun.records)
            errors = await context.broker.group_states.forget(group_id, begun.places)
        if errors:
            raise next(iter(errors.values()))
        code, tombstones = shard.groups.handle_delete_group(group_id)
        if code is ErrorCode.NONE:
            await store(shard, tombstones)
    except ApiError as error:
        return error.code
    return code
