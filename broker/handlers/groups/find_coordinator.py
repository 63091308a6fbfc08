"""FindCoordinator: which broker coordinates a group, a transactional id or a share-partition.

Versions 0-6: v1 key type, v3 flexible, v4 several keys (KIP-699), v6 share-partitions (KIP-932),
which brokers look up: "group:topic id:partition". The coordinator of a key leads the partition of
the internal topic that the key hashes to; the topic is created when the first key is looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from broker.coordinators.internal_topics import GROUP_KEY, SHARE_KEY, TRANSACTION_KEY
from broker.requests.api_table import handles
from broker.requests.authorization import (
    is_allowed_on_cluster,
    is_allowed_on_group,
    is_allowed_on_transaction,
)
from broker.requests.steps import in_steps
from broker.runtime.deferred import Deferred
from coordinator.share_state.state import is_coordinator_key
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.requests.steps import Steps

BATCH_SINCE = 4
SHARE_SINCE = 6
NO_NODE = -1
SUCCESS = ErrorCode.NONE.name
"""Error message of versions 1 to 3 on success, as in Apache Kafka: kafkajs checks it."""

Coordinator = FindCoordinatorResponse.Coordinator
Refused = Mapping[str, ApiError]
"""The keys that the client may not look up."""


@handles(FindCoordinatorRequest, versions="0-6")
@in_steps
def find_coordinator(
    context: Context, request: FindCoordinatorRequest
) -> Steps[FindCoordinatorResponse | Deferred[FindCoordinatorResponse]]:
    """Look the keys up, waiting for the internal topic if it has to be created first."""
    keys = _keys(context, request)
    refused: dict[str, ApiError] = {}
    for key in keys:
        error = _refusal(context, request.key_type, key)
        if error is not None:
            refused[key] = error
        yield
    if len(refused) == len(set(keys)):  # topics are not created for unauthorized clients
        return (yield from _responding(context, request, refused, None))
    return _when_ready(context, request, refused)


def _keys(context: Context, request: FindCoordinatorRequest) -> list[str]:
    return request.coordinator_keys if context.api_version >= BATCH_SINCE else [request.key]


def _refusal(context: Context, key_type: int, key: str) -> ApiError | None:
    """Reason why the client may not look up the coordinator of a key."""
    describe = AclOperation.DESCRIBE
    if key_type == GROUP_KEY and not is_allowed_on_group(context, describe, key):
        return ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if key_type == TRANSACTION_KEY and not is_allowed_on_transaction(context, describe, key):
        return ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    return _share_refusal(context, key) if key_type == SHARE_KEY else None


def _share_refusal(context: Context, key: str) -> ApiError | None:
    if context.api_version < SHARE_SINCE:
        return ApiError(ErrorCode.INVALID_REQUEST)
    if not is_allowed_on_cluster(context, AclOperation.CLUSTER_ACTION):
        return ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return None if is_coordinator_key(key) else ApiError(ErrorCode.INVALID_REQUEST)


def _when_ready(
    context: Context, request: FindCoordinatorRequest, refused: Refused
) -> Deferred[FindCoordinatorResponse]:
    answer: Deferred[FindCoordinatorResponse] = Deferred()

    def respond(failure: ApiError | None) -> None:
        outcome = _respond(context, request, refused, failure)
        if isinstance(outcome, Deferred):
            answer.follow(outcome)
        else:
            answer.complete(outcome)

    def ready(_: None) -> None:
        respond(None)

    def failed(error: Exception) -> None:
        if not isinstance(error, ApiError):
            raise error
        respond(error)

    topic = context.broker.internal_topics.when_ready(request.key_type)
    topic.then(answer.guard(ready), answer.guard(failed))
    return answer


def _responding(
    context: Context, request: FindCoordinatorRequest, refused: Refused, failure: ApiError | None
) -> Steps[FindCoordinatorResponse]:
    found = []
    for key in _keys(context, request):
        error = refused.get(key) or failure
        found.append(_look_up(context, request.key_type, key, error))
        yield
    if context.api_version >= BATCH_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    only = found[0]
    is_found = only.error_code == ErrorCode.NONE
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=SUCCESS if is_found else only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


_respond = in_steps(_responding)


def _look_up(context: Context, key_type: int, key: str, failure: ApiError | None) -> Coordinator:
    if failure is not None:
        return _not_found(key, failure)
    try:
        node = context.broker.internal_topics.coordinator(key_type, key, context.listener)
    except ApiError as error:
        return _not_found(key, error)
    return Coordinator(
        key=key,
        node_id=node.id,
        host=node.host,
        port=node.port,
        error_code=ErrorCode.NONE,
        error_message="",
    )


def _not_found(key: str, error: ApiError) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=NO_NODE,
        host="",
        port=NO_NODE,
        error_code=error.code,
        error_message=error.message or error.code.meaning,
    )
