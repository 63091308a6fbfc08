"""OffsetFetch: read the positions of groups.

Versions 0-10: v2 all topics of the group (null) and an error for the group, v5 leader epoch,
v7 require_stable (KIP-447), v8 several groups, v9 member id and epoch (KIP-848), v10 topic ids.

A repeated position is answered once (`asked_positions`).

Positions are read before they are committed, and the answer waits until they are: a consumer never
starts from a position that a failover could revert.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING

from broker.coordinators.shard_runtime import Stage
from broker.handlers.groups.asked_positions import AskedPositions
from broker.requests.api_table import handles
from broker.requests.authorization import (
    is_allowed_on_group,
    is_allowed_on_topic,
    would_be_allowed_on_topic,
)
from broker.requests.steps import in_steps
from broker.runtime.countdown import Countdown
from coordinator.offsets.offset_store import NO_LEADER_EPOCH, NO_OFFSET
from coordinator.storage_errors import reading_error
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.runtime.deferred import Deferred

GROUP_ERROR_SINCE = 2
GROUPS_SINCE = 8
TOPIC_ID_SINCE = 10

Group = OffsetFetchRequest.Group
GroupResponse = OffsetFetchResponse.Group
TopicResponse = OffsetFetchResponse.Group.Topic
PartitionResponse = OffsetFetchResponse.Group.Topic.Partition


@handles(OffsetFetchRequest, versions="0-10")
@in_steps
def offset_fetch(
    context: Context, request: OffsetFetchRequest
) -> Steps[Deferred[OffsetFetchResponse]]:
    """Positions of one or several groups, in the order of the request."""
    readings: list[_Reading] = []
    gather: Countdown[list[_Reading]] = Countdown(lambda: readings)
    is_single = context.api_version < GROUPS_SINCE
    groups = [(yield from _only_group(request))] if is_single else request.groups
    asked = AskedPositions()
    for group in groups:
        if not (yield from _is_news(group, asked)):
            yield
            continue
        answer = GroupResponse(group_id=group.group_id, topics=[])
        readings.append(_Reading(group, answer, require_stable=request.require_stable))
        yield from _fetch_group(context, readings[-1], gather)
        yield
    gather.close()
    return gather.deferred.map(partial(_respond, context))


@in_steps
def _respond(context: Context, readings: Sequence[_Reading]) -> Steps[OffsetFetchResponse]:
    """The answer once all positions are committed, or are not."""
    response = OffsetFetchResponse(groups=[])
    for reading in readings:
        if reading.failure is not ErrorCode.NONE:
            yield from _refuse(reading.request, reading.response, reading.failure)
        response.groups.append(reading.response)
        yield
    if context.api_version < GROUPS_SINCE:
        if context.remains is not None:
            context.remains.keep(response)
        return (yield from _single(readings[0].response, context.api_version))
    return response


@dataclasses.dataclass(slots=True)
class _Reading:
    """The part of a request that one group has, and its answer."""

    request: Group
    response: GroupResponse
    require_stable: bool
    failure: ErrorCode = ErrorCode.NONE
    """Error that keeps its positions uncommitted, so that none is returned."""


def _fetch_group(
    context: Context, reading: _Reading, gather: Countdown[list[_Reading]]
) -> Steps[None]:
    """Fill in the response once the positions are committed."""
    request, response = reading.request, reading.response
    if not is_allowed_on_group(context, AclOperation.DESCRIBE, request.group_id):
        response.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        if context.api_version < GROUP_ERROR_SINCE:
            yield from _refuse(request, response, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return
    try:
        shard = context.broker.groups.shard_for(request.group_id)
    except ApiError as error:
        yield from _refuse(request, response, error.code)
        return
    try:
        shard.groups.check_offset_fetch(request)
    except ApiError as error:
        response.error_code = error.code
        return
    refused = yield from _refusals(context, request)
    groups = shard.groups
    fetched = yield from groups.handle_offset_fetch(request, require_stable=reading.require_stable)
    if shard.stage is not Stage.ACTIVE:
        # Leadership moved while others were served: the next leader may have newer positions.
        yield from _refuse(request, response, ErrorCode.NOT_COORDINATOR)
        return
    response.topics = yield from _visible(context, fetched.topics, refused)

    def committed(failure: ErrorCode) -> None:
        if failure is not ErrorCode.NONE:
            reading.failure = reading_error(failure)

    shard.when_committed(gather.expect(committed))


def _is_news(group: Group, asked: AskedPositions) -> Steps[bool]:
    """Keep the positions of a group not asked for before; return whether there are any."""
    if group.topics is None:
        return asked.is_new(group.group_id)
    topics = []
    for topic in group.topics:
        place = (group.group_id, topic.name, topic.topic_id)
        indexes = yield from asked.new_indexes(place, topic.partition_indexes)
        if indexes or not topic.partition_indexes:
            topic.partition_indexes = indexes
            topics.append(topic)
        yield
    is_news = bool(topics) or not group.topics
    group.topics = topics
    return is_news


def _only_group(request: OffsetFetchRequest) -> Steps[Group]:
    """The group of a request below version 8, in the form of the later ones."""
    topics = None
    if request.topics is not None:
        topics = []
        for topic in request.topics:
            topics.append(Group.Topic(name=topic.name, partition_indexes=topic.partition_indexes))
            yield
    return Group(group_id=request.group_id, topics=topics)


def _single(group: GroupResponse, version: int) -> Steps[OffsetFetchResponse]:
    """The response in its form below version 8; below 2 the partitions carry the group's error."""
    error = group.error_code if version < GROUP_ERROR_SINCE else ErrorCode.NONE
    response = OffsetFetchResponse(error_code=group.error_code, topics=[])
    for topic in group.topics:
        answer = OffsetFetchResponse.Topic(name=topic.name, partitions=[])
        response.topics.append(answer)
        for each in topic.partitions:
            answer.partitions.append(
                OffsetFetchResponse.Topic.Partition(
                    partition_index=each.partition_index,
                    committed_offset=each.committed_offset,
                    committed_leader_epoch=each.committed_leader_epoch,
                    metadata=each.metadata,
                    error_code=error or each.error_code,
                )
            )
            yield
        yield
    return response


def _refuse(request: Group, response: GroupResponse, error: ErrorCode) -> Steps[None]:
    """The whole group's error; the partitions are listed for versions that have no such field."""
    response.error_code = error
    response.topics = []
    for topic in request.topics or ():
        response.topics.append((yield from _no_offsets(topic, ErrorCode.NONE)))
        yield


def _no_offsets(topic: Group.Topic, error: ErrorCode) -> Steps[TopicResponse]:
    partitions = []
    for index in topic.partition_indexes:
        partitions.append(
            PartitionResponse(
                partition_index=index,
                committed_offset=NO_OFFSET,
                committed_leader_epoch=NO_LEADER_EPOCH,
                metadata="",
                error_code=error,
            )
        )
        yield
    return TopicResponse(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _refusals(context: Context, request: Group) -> Steps[dict[int, TopicResponse]]:
    """Put names to ids (version 10), and remove topics that are unknown or not for the client.

    Returns the answers to those, by their index in the request.
    """
    refused: dict[int, TopicResponse] = {}
    if request.topics is None:
        return refused
    known = []
    for place, topic in enumerate(request.topics):
        name: str | None = topic.name
        if context.api_version >= TOPIC_ID_SINCE:
            name = context.broker.metadata.topic_name(topic.topic_id)
        if name is None:
            refused[place] = yield from _no_offsets(topic, ErrorCode.UNKNOWN_TOPIC_ID)
        elif not is_allowed_on_topic(context, AclOperation.DESCRIBE, name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused[place] = yield from _no_offsets(topic, code)
        else:
            topic.name = name
            known.append(topic)
        yield
    request.topics = known
    return refused


def _visible(
    context: Context, answers: list[TopicResponse], refused: dict[int, TopicResponse]
) -> Steps[list[TopicResponse]]:
    """Visible answers of the client, with errors at the index of refused ones.

    Version 10: with ids for names, without deleted topics.
    """
    remaining = iter(answers)
    topics: list[TopicResponse] = []
    has_ids = context.api_version >= TOPIC_ID_SINCE
    for place in range(len(answers) + len(refused)):
        yield
        topic = refused.get(place)
        if topic is None:
            topic = next(remaining)
            if not would_be_allowed_on_topic(context, AclOperation.DESCRIBE, topic.name):
                continue
            if has_ids:
                topic.topic_id = context.broker.metadata.topic_id(topic.name)
                if topic.topic_id == ZERO_UUID:
                    continue
        topics.append(topic)
    return topics
