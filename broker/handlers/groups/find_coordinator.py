"""FindCoordinator: which broker coordinates a group or a transactional id.

Versions 0-6: v1 key type, v3 flexible, v4 several keys (KIP-699), v6 share groups (KIP-932), which
this broker does not serve. The coordinator of a key leads the partition of the internal topic that
the key hashes to; the topic is created when the first key is looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.requests.api_table import handles
from broker.requests.steps import in_steps
from broker.runtime.deferred import Deferred
from protocol.errors import ApiError, ErrorCode
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.requests.steps import Steps

BATCH_SINCE = 4
NO_NODE = -1
SUCCESS = ErrorCode.NONE.name
"""The message of versions 1 to 3 when there is no error, as in Apache Kafka: kafkajs checks it."""

Coordinator = FindCoordinatorResponse.Coordinator


@handles(FindCoordinatorRequest, versions="0-6")
def find_coordinator(
    context: Context, request: FindCoordinatorRequest
) -> Deferred[FindCoordinatorResponse]:
    """Look the keys up, waiting for the internal topic if it has to be created first."""
    answer: Deferred[FindCoordinatorResponse] = Deferred()

    def respond(failure: ApiError | None) -> None:
        outcome = _respond(context, request, failure)
        if isinstance(outcome, Deferred):
            answer.follow(outcome)
        else:
            answer.complete(outcome)

    def ready(_: None) -> None:
        respond(None)

    def refused(error: Exception) -> None:
        if not isinstance(error, ApiError):
            raise error
        respond(error)

    topic = context.broker.internal_topics.when_ready(request.key_type)
    topic.then(answer.guard(ready), answer.guard(refused))
    return answer


@in_steps
def _respond(
    context: Context, request: FindCoordinatorRequest, failure: ApiError | None
) -> Steps[FindCoordinatorResponse]:
    is_batch = context.api_version >= BATCH_SINCE
    keys = request.coordinator_keys if is_batch else [request.key]
    found = []
    for key in keys:
        found.append(_look_up(context, request.key_type, key, failure))
        yield
    if is_batch:
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
