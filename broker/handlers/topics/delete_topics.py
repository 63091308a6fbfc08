"""DeleteTopics: served by the controller, answered once the topic is gone from the metadata.

Versions 0 to 6. From v6 a topic is given by name or by id. If all replicas are online, the answer
also waits until they have removed their logs, so that the name can be reused at once; otherwise the
deletion stays pending until the missing broker returns.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from broker.handlers.topics.mutation_quota import refused_deletions
from broker.metadata.metadata_watch import (
    not_controller,
    repeated_among,
    timed_out,
    wait_for_topics,
)
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_topic, would_be_allowed_on_cluster
from broker.requests.background_answer import answer_later
from controller.metadata_store.store import StoreError
from controller.topics.topics import unknown_topic
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred
    from broker.runtime.slices import Slices

logger = logging.getLogger(__name__)

Answer = DeleteTopicsResponse.Response

FIRST_VERSION_WITH_DISABLED_ERROR = 3


@handles(DeleteTopicsRequest, versions="0-6")
def delete_topics(
    context: Context, request: DeleteTopicsRequest
) -> DeleteTopicsResponse | Deferred[DeleteTopicsResponse]:
    """Resolve ids, delete the existing topics, wait until they are gone."""

    async def refuse(error: ApiError) -> DeleteTopicsResponse:
        wanted = context.broker.slices().each(_wanted(request))
        return DeleteTopicsResponse(
            responses=[_answer(name, topic_id, error) async for name, topic_id in wanted]
        )

    return answer_later(context, _delete(context, request), refuse, "delete topics")


def _wanted(request: DeleteTopicsRequest) -> Iterator[tuple[str | None, UUID]]:
    for topic in request.topics:
        yield topic.name, topic.topic_id
    for name in request.topic_names:
        yield name, ZERO_UUID


def _disabled(version: int) -> ApiError:
    code = (
        ErrorCode.TOPIC_DELETION_DISABLED
        if version >= FIRST_VERSION_WITH_DISABLED_ERROR
        else ErrorCode.INVALID_REQUEST
    )
    return ApiError(code, "Topic deletion is disabled (delete.topic.enable=false).")


async def _delete(context: Context, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    broker = context.broker
    slices = broker.slices()
    if not broker.controller.is_active:
        raise not_controller()
    if not broker.config.delete_topic_enable:
        raise _disabled(context.api_version)
    answers: dict[tuple[str | None, UUID], Answer] = {}
    names: dict[str, UUID] = {}
    ids: dict[str, UUID] = {}
    found = await _resolve(context, request, slices)
    async for (name, topic_id), resolved in slices.each(found.items()):
        if isinstance(resolved, ApiError):
            shown = _shown_name(context, topic_id, resolved) if name is None else name
            answers[name, topic_id] = _answer(shown, topic_id, resolved)
        else:
            names[resolved] = broker.metadata.topic_id(resolved)
            if name is None:
                ids[resolved] = topic_id
    results: dict[str, ApiError | None] = {**await refused_deletions(context, names)}
    results |= await broker.topics.delete([name for name in names if name not in results], ids)
    going = [name for name, error in results.items() if error is None]
    async for name in slices.each(going):
        logger.info("topic %s: deletion requested by %s", name, context.client_host)
    late = await _wait_until_gone(context, going, request.timeout_ms)
    async for name, topic_id in slices.each(names.items()):
        error = timed_out(name, "deleted") if name in late else results[name]
        is_other = error is not None and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if name in ids and is_other:
            answers[None, topic_id] = _answer(None, topic_id, _unknown_id(topic_id))
        else:
            answers[name, topic_id] = _answer(name, topic_id, error)
    return DeleteTopicsResponse(responses=list(answers.values()))


async def _resolve(
    context: Context, request: DeleteTopicsRequest, slices: Slices
) -> dict[tuple[str | None, UUID], str | ApiError]:
    """The name of each requested topic, or the error in how it was named."""
    doubles = await repeated_among((name for name, _ in _wanted(request)), slices)
    ids = (None if topic_id == ZERO_UUID else topic_id for _, topic_id in _wanted(request))
    double_ids = await repeated_among(ids, slices)
    resolved: dict[tuple[str | None, UUID], str | ApiError] = {}
    async for name, topic_id in slices.each(_wanted(request)):
        if name is not None and topic_id != ZERO_UUID:
            result: str | ApiError = ApiError(
                ErrorCode.INVALID_REQUEST, "A topic is given by its name or its id, not by both."
            )
        elif name in doubles or topic_id in double_ids:
            result = ApiError(ErrorCode.INVALID_REQUEST, "The request names this topic twice.")
        elif name is not None:
            result = _resolve_name(context, name)
        else:
            result = _resolve_id(context, topic_id)
        resolved[name, topic_id] = result
    return resolved


def _resolve_name(context: Context, name: str) -> str | ApiError:
    """With ZooKeeper a topic that the client may not delete is refused even if there is none."""
    seen = AclOperation.DELETE if context.broker.config.zookeeper_connect else AclOperation.DESCRIBE
    if not _may(context, seen, name):
        return ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if context.broker.metadata.topic(name) is None:
        return unknown_topic(name)
    if not _may(context, AclOperation.DELETE, name):
        return ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return name


def _resolve_id(context: Context, topic_id: UUID) -> str | ApiError:
    name = context.broker.metadata.topic_name(topic_id)
    if name is None:
        return _unknown_id(topic_id)
    if not _may(context, AclOperation.DELETE, name):
        return ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return name


def _shown_name(context: Context, topic_id: UUID, error: ApiError) -> str | None:
    """The name of a topic given by id, if the client may describe and not delete it."""
    name = context.broker.metadata.topic_name(topic_id)
    if error.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED or name is None:
        return None
    return name if _may(context, AclOperation.DESCRIBE, name) else None


def _may(context: Context, operation: AclOperation, name: str) -> bool:
    """Return whether the client may do this to a topic.

    DELETE on the cluster allows deletion of all topics, but not with ZooKeeper: Apache Kafka grants
    it only where a KRaft controller deletes topics.
    """
    has_right_of_cluster = not context.broker.config.zookeeper_connect
    if has_right_of_cluster and would_be_allowed_on_cluster(context, AclOperation.DELETE):
        return True
    return is_allowed_on_topic(context, operation, name)


def _unknown_id(topic_id: UUID) -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with id {topic_id}.")


async def _wait_until_gone(context: Context, names: Iterable[str], timeout_ms: int) -> set[str]:
    cache = context.broker.metadata
    going = list(names)
    late = await wait_for_topics(cache, going, lambda n: cache.topic(n) is None, timeout_ms)
    if not late and going:
        controller = context.broker.controller
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await controller.wait_until_settled(going)
        except TimeoutError:
            return late
        except StoreError as error:  # the deletion goes on, and the client has left
            logger.warning("topic deletion not awaited: %s", error)
    return late


def _answer(name: str | None, topic_id: UUID, error: ApiError | None) -> Answer:
    return Answer(
        name=name,
        topic_id=topic_id,
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
    )
