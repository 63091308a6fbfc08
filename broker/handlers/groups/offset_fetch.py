"""OffsetFetch and OffsetDelete: read and forget a group's positions.

OffsetFetch 0-10: v2 all topics of the group (null) and an error for the group, v5 leader epoch,
v7 require_stable (KIP-447), v8 several groups, v9 member id and epoch (KIP-848), v10 topic ids.
OffsetDelete 0.

Positions are read before they are committed, and the answer waits until they are: a consumer never
starts from a position that a failover could take back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker.coordinators.shard_runtime import Stage
from broker.requests.api_table import handles
from broker.requests.authorization import (
    allowed,
    is_allowed_on_group,
    is_allowed_on_topic,
    would_be_allowed_on_topic,
)
from broker.requests.steps import in_steps
from broker.runtime.countdown import Countdown
from broker.runtime.deferred import Deferred
from coordinator.groups.responses import offset_storage_error
from coordinator.offsets.offset_store import NO_LEADER_EPOCH, NO_OFFSET
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode
from protocol.messages.offset_fetch import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.requests.steps import Steps

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
    version = context.api_version
    response = OffsetFetchResponse()
    gather = Countdown(lambda: response if version >= GROUPS_SINCE else _single(response, version))
    for group in request.groups if version >= GROUPS_SINCE else [_only_group(request)]:
        response.groups.append(GroupResponse(group_id=group.group_id, topics=[]))
        reading = _Reading(group, response.groups[-1], require_stable=request.require_stable)
        yield from _fetch_group(context, reading, gather)
        yield
    gather.close()
    return gather.deferred


@handles(OffsetDeleteRequest, versions="0")
def offset_delete(context: Context, request: OffsetDeleteRequest) -> Deferred[OffsetDeleteResponse]:
    """Forget positions in topics that no member of the group consumes."""
    if not is_allowed_on_group(context, AclOperation.DELETE, request.group_id):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    shard = context.broker.groups.shard_for_member(request.group_id)
    names = (topic.name for topic in request.topics)
    readable = allowed(context, AclOperation.READ, ResourceType.TOPIC, names)
    known = OffsetDeleteRequest(
        group_id=request.group_id, topics=[each for each in request.topics if each.name in readable]
    )
    response, tombstones = shard.groups.handle_offset_delete(known)
    for topic in response.topics:
        for each in topic.partitions:
            if context.broker.metadata.partition(topic.name, each.partition_index) is None:
                each.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not response.error_code:
        response.topics += [_not_deleted(t) for t in request.topics if t.name not in readable]
    answer: Deferred[OffsetDeleteResponse] = Deferred()

    def committed(failure: ErrorCode) -> None:
        code = offset_storage_error(failure)
        answer.complete(
            response if code is ErrorCode.NONE else OffsetDeleteResponse(error_code=code, topics=[])
        )

    failure = shard.forget(tombstones)
    if failure is not ErrorCode.NONE:
        committed(failure)
    else:
        shard.when_committed(answer.guard(committed))
    return answer


def _not_deleted(topic: OffsetDeleteRequest.Topic) -> OffsetDeleteResponse.Topic:
    """The answer for a topic that the client may not READ."""
    return OffsetDeleteResponse.Topic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponse.Topic.Partition(
                partition_index=each.partition_index,
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            )
            for each in topic.partitions
        ],
    )


class _Reading(NamedTuple):
    """The part of a request that one group has, and its answer."""

    request: Group
    response: GroupResponse
    require_stable: bool


def _fetch_group(
    context: Context, reading: _Reading, gather: Countdown[OffsetFetchResponse]
) -> Steps[None]:
    """Fill in the response once the positions are committed."""
    request, response, require_stable = reading
    if not is_allowed_on_group(context, AclOperation.DESCRIBE, request.group_id):
        _refuse(request, response, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if context.api_version >= GROUP_ERROR_SINCE:
            response.topics = []
        return
    try:
        shard = context.broker.groups.shard_for(request.group_id)
    except ApiError as error:
        response.error_code = error.code
        for topic in request.topics or ():
            response.topics.append(_no_offsets(topic, ErrorCode.NONE))
            yield
        return
    try:
        shard.groups.check_offset_fetch(request)
    except ApiError as error:
        response.error_code = error.code
        return
    refused = yield from _refusals(context, request)
    groups = shard.groups
    fetched = yield from groups.handle_offset_fetch(request, require_stable=require_stable)
    if shard.stage is not Stage.ACTIVE:
        # Leadership moved while others were served: the next leader may have newer positions.
        _refuse(request, response, ErrorCode.NOT_COORDINATOR)
        return
    response.topics = yield from _visible(context, fetched.topics, refused)

    def committed(failure: ErrorCode) -> None:
        if failure is not ErrorCode.NONE:
            _refuse(request, response, offset_storage_error(failure))

    shard.when_committed(gather.expect(committed))


def _only_group(request: OffsetFetchRequest) -> Group:
    """The group of a request below version 8, in the form of the later ones."""
    topics = None
    if request.topics is not None:
        topics = [
            Group.Topic(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return Group(group_id=request.group_id, topics=topics)


def _single(response: OffsetFetchResponse, version: int) -> OffsetFetchResponse:
    """The response in its form below version 8; below 2 the partitions carry the group's error."""
    group = response.groups[0]
    error = group.error_code if version < GROUP_ERROR_SINCE else ErrorCode.NONE
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponse.Topic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponse.Topic.Partition(
                        partition_index=each.partition_index,
                        committed_offset=each.committed_offset,
                        committed_leader_epoch=each.committed_leader_epoch,
                        metadata=each.metadata,
                        error_code=error or each.error_code,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )


def _refuse(request: Group, response: GroupResponse, error: ErrorCode) -> None:
    """The whole group's error; the partitions are listed for versions that have no such field."""
    response.error_code = error
    response.topics = [_no_offsets(topic, ErrorCode.NONE) for topic in request.topics or ()]


def _no_offsets(topic: Group.Topic, error: ErrorCode) -> TopicResponse:
    return TopicResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            PartitionResponse(
                partition_index=index,
                committed_offset=NO_OFFSET,
                committed_leader_epoch=NO_LEADER_EPOCH,
                metadata="",
                error_code=error,
            )
            for index in topic.partition_indexes
        ],
    )


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
            refused[place] = _no_offsets(topic, ErrorCode.UNKNOWN_TOPIC_ID)
        elif not is_allowed_on_topic(context, AclOperation.DESCRIBE, name):
            refused[place] = _no_offsets(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        else:
            topic.name = name
            known.append(topic)
        yield
    request.topics = known
    return refused


def _visible(
    context: Context, answers: list[TopicResponse], refused: dict[int, TopicResponse]
) -> Steps[list[TopicResponse]]:
    """The answers that the client may see, and what it is refused at its index.

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
