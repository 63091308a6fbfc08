"""CreatePartitions: add partitions to topics. Served by the controller.

Versions 0 to 3. The count is the new total. The request may assign the new replicas. Answered once
metadata shows the leaders of the new partitions. With `validate_only` nothing is created. Topics
that exceed `max.new.partitions.per.request` are refused; Apache Kafka fails with
UNKNOWN_SERVER_ERROR at its own limit.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.handlers.topics.mutation_quota import note_growth
from broker.metadata.metadata_watch import (
    not_controller,
    repeated_among,
    timed_out,
    wait_for_topics,
)
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_topic
from broker.requests.background_answer import answer_later
from controller.partitions.partition_growth import PartitionGrowth
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode, detached
from protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsResponse

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.runtime.deferred import Deferred

logger = logging.getLogger(__name__)

Wanted = CreatePartitionsRequest.Topic
Answer = CreatePartitionsResponse.Result


@handles(CreatePartitionsRequest, versions="0-3")
def create_partitions(
    context: Context, request: CreatePartitionsRequest
) -> CreatePartitionsResponse | Deferred[CreatePartitionsResponse]:
    """Grow each topic; errors are per topic."""

    async def refuse(error: ApiError) -> CreatePartitionsResponse:
        slices = context.broker.slices()
        answers = {t.name: _answer(t.name, error) async for t in slices.each(request.topics)}
        return CreatePartitionsResponse(results=list(answers.values()))

    return answer_later(context, _grow_all(context, request), refuse, "create partitions")


async def _grow_all(context: Context, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    if not context.broker.controller.is_active:
        raise not_controller()
    slices = context.broker.slices()
    doubles = await repeated_among((topic.name for topic in request.topics), slices)
    results: dict[str, ApiError | None] = {}
    totals: dict[str, int] = {}
    added = 0
    async for topic in slices.each(request.topics):
        try:
            if topic.name in doubles:
                raise ApiError(ErrorCode.INVALID_REQUEST, "The request names this topic twice.")
            if not is_allowed_on_topic(context, AclOperation.ALTER, topic.name):
                raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            growth = _growth(topic)
            await note_growth(context, growth)
            added += await context.broker.topics.grow(
                growth,
                context.broker.metadata.racks,
                validate_only=request.validate_only,
                added_before=added,
            )
        except ApiError as error:
            results[topic.name] = detached(error)
        else:
            results[topic.name] = None
            totals[topic.name] = topic.count
    if not request.validate_only:
        async for name, total in slices.each(totals.items()):
            who = context.client_host
            logger.info("topic %s: partitions increased to %d, requested by %s", name, total, who)
        for name in await _wait_for_leaders(context, totals, request.timeout_ms):
            results[name] = timed_out(name, "grown")
    return CreatePartitionsResponse(
        results=[_answer(name, error) async for name, error in slices.each(results.items())]
    )


def _growth(topic: Wanted) -> PartitionGrowth:
    assignments = None
    if topic.assignments is not None:
        assignments = [tuple(assignment.broker_ids) for assignment in topic.assignments]
    return PartitionGrowth(topic.name, topic.count, assignments)


async def _wait_for_leaders(context: Context, totals: dict[str, int], timeout_ms: int) -> set[str]:
    cache = context.broker.metadata

    def is_shown(name: str) -> bool:
        known = cache.topic(name)
        return known is not None and len(known.partitions) >= totals[name] and known.has_all_leaders

    return await wait_for_topics(cache, totals, is_shown, timeout_ms)


def _answer(name: str, error: ApiError | None) -> Answer:
    return Answer(
        name=name,
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
    )
