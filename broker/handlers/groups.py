"""ListGroups, DescribeGroups, DeleteGroups: what tools ask about groups.

ListGroups 0-5: v4 states filter (KIP-518), v5 types filter (KIP-848).
DescribeGroups 0-6: v3 authorized operations, v4 static members, v6 GROUP_ID_NOT_FOUND (KIP-1043).
DeleteGroups 0-2. Groups of one request may live in different shards; each has its own error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.coordinators.gather import Gather
from broker.routing import handles
from coordinator.responses import group_storage_error
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
    from broker.context import Context
    from broker.deferred import Deferred

ERROR_MESSAGE_SINCE = 6
ALL_GROUP_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
"""Read, Delete, Describe, DescribeConfigs, AlterConfigs: nothing is restricted yet."""

Result = DeleteGroupsResponse.Result


@handles(ListGroupsRequest, versions="0-5")
def list_groups(context: Context, request: ListGroupsRequest) -> ListGroupsResponse:
    """All groups that this broker coordinates; says so if it does not know all of them yet."""
    coordinators = context.broker.groups
    is_loading = coordinators.is_loading
    return ListGroupsResponse(
        error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NONE,
        groups=[
            group
            for shard in coordinators.active_shards()
            for group in shard.groups.handle_list(request.states_filter, request.types_filter)
        ],
    )


@handles(DescribeGroupsRequest, versions="0-6")
def describe_groups(context: Context, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """State and members of each group."""
    described = [_describe(context, group_id) for group_id in request.groups]
    if request.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = ALL_GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=described)


def _describe(context: Context, group_id: str) -> DescribeGroupsResponse.Group:
    version = context.api_version
    try:
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


@handles(DeleteGroupsRequest, versions="0-2")
def delete_groups(context: Context, request: DeleteGroupsRequest) -> Deferred[DeleteGroupsResponse]:
    """Delete empty groups; answered when that is committed."""
    response = DeleteGroupsResponse(results=[])
    gather = Gather(lambda: response)
    for group_id in dict.fromkeys(request.groups_names):
        result = Result(group_id=group_id, error_code=ErrorCode.NONE)
        response.results.append(result)
        _delete(context, result, gather)
    gather.close()
    return gather.deferred


def _delete(context: Context, result: Result, gather: Gather[DeleteGroupsResponse]) -> None:
    try:
        shard = context.broker.groups.shard_for(result.group_id)
    except ApiError as error:
        result.error_code = error.code
        return
    code, tombstones = shard.groups.handle_delete_group(result.group_id)
    result.error_code = code or group_storage_error(shard.forget(tombstones))

    def committed(failure: ErrorCode) -> None:
        result.error_code = result.error_code or group_storage_error(failure)

    shard.when_committed(gather.expect(committed))
