"""DescribeTransactions and ListTransactions, for administration tools (KIP-664).

ListTransactions 0-2: v1 filters by duration (KIP-994), v2 by a pattern of ids (KIP-1152).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.api_table import handles
from broker.requests.authorization import (
    is_allowed_on_topic,
    is_allowed_on_transaction,
    would_be_allowed,
)
from broker.requests.encoded_response import encoded_in_slices
from broker.runtime.deferred import in_background
from coordinator.transactions.listing import not_described, read_filters, unknown_states
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode
from protocol.messages.producers import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred
    from coordinator.transactions.listing import Description


@handles(DescribeTransactionsRequest, versions="0")
def describe_transactions(
    context: Context, request: DescribeTransactionsRequest
) -> Deferred[DescribeTransactionsResponse]:
    """Each transactional id with its producer, state and partitions, or its own error, once.

    Topics that the client may not describe are left out.
    """

    async def work() -> DescribeTransactionsResponse:
        slices = context.broker.slices()
        wanted = {each: None async for each in slices.each(request.transactional_ids)}
        states = [_describe(context, each) async for each in slices.each(wanted)]
        response = DescribeTransactionsResponse(transaction_states=states)
        return await encoded_in_slices(context, response)

    return in_background(context.broker.spawn, work(), "transactions described")


def _describe(context: Context, transactional_id: str) -> Description:
    if not is_allowed_on_transaction(context, AclOperation.DESCRIBE, transactional_id):
        return not_described(transactional_id, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not transactional_id:
        return not_described(transactional_id, ErrorCode.INVALID_REQUEST)
    try:
        shard = context.broker.transactions.shard_for(transactional_id)
    except ApiError as error:
        return not_described(transactional_id, error.code)
    described = shard.transactions.handle_describe(transactional_id)
    described.topics = [
        topic
        for topic in described.topics
        if is_allowed_on_topic(context, AclOperation.DESCRIBE, topic.topic)
    ]
    return described


def _may_see(context: Context, transactional_id: str) -> bool:
    kind = ResourceType.TRANSACTIONAL_ID
    return would_be_allowed(context, AclOperation.DESCRIBE, kind, transactional_id)


@handles(ListTransactionsRequest, versions="0-2")
def list_transactions(
    context: Context, request: ListTransactionsRequest
) -> ListTransactionsResponse | Deferred[ListTransactionsResponse]:
    """The transactions of this broker that pass the filters; none while some are loading."""
    coordinators = context.broker.transactions
    if coordinators.is_loading:
        return ListTransactionsResponse(
            error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            unknown_state_filters=[],
            transaction_states=[],
        )
    filters = read_filters(request, context.broker.config.transactional_id_pattern_max_length)

    async def work() -> ListTransactionsResponse:
        slices = context.broker.slices()
        states = [
            each
            for shard in list(coordinators.active_shards())
            async for each in slices.each(shard.transactions.handle_list(filters, context.now_ms))
            if each is not None and _may_see(context, each.transactional_id)
        ]
        response = ListTransactionsResponse(
            error_code=ErrorCode.NONE,
            unknown_state_filters=unknown_states(request),
            transaction_states=states,
        )
        return await encoded_in_slices(context, response)

    return in_background(context.broker.spawn, work(), "transactions listed")
