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
from broker.requests.steps import in_steps
from broker.runtime.countdown import Countdown
from broker.runtime.deferred import Deferred
from coordinator.groups.responses import offset_storage_error
from coordinator.offsets.offset_store import NO_LEADER_EPOCH, NO_OFFSET
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
    shard = context.broker.groups.shard_for_member(request.group_id)
    response, tombstones = shard.groups.handle_offset_delete(request)
    for topic in response.topics:
        for each in topic.partitions:
            if context.broker.metadata.partition(topic.name, each.partition_index) is None:
                each.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
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
    try:
        shard = context.broker.groups.shard_for(request.group_id)
    except ApiError as error:
        response.error_code = error.code
        for topic in request.topics or ():
            response.topics.append(_no_offsets(topic, ErrorCode.NONE))
            yield
        return
    unknown = yield from _resolve_ids(context, request)
    groups = shard.groups
    fetched = yield from groups.handle_offset_fetch(request, require_stable=require_stable)
    if shard.stage is not Stage.ACTIVE:
        # Leadership moved while others were served: the next leader may have newer positions.
        _refuse(request, response, ErrorCode.NOT_COORDINATOR)
        return
    response.topics = fetched.topics
    if context.api_version >= TOPIC_ID_SINCE:
        response.topics = yield from _with_ids(context, response.topics, unknown)

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


def _resolve_ids(context: Context, request: Group) -> Steps[dict[int, TopicResponse]]:
    """Version 10: put names to ids, and remove topics of unknown ids.

    Returns the answers to those, by their index in the request.
    """
    unknown: dict[int, TopicResponse] = {}
    if context.api_version < TOPIC_ID_SINCE or request.topics is None:
        return unknown
    known = []
    for place, topic in enumerate(request.topics):
        name = context.broker.metadata.topic_name(topic.topic_id)
        if name is None:
            unknown[place] = _no_offsets(topic, ErrorCode.UNKNOWN_TOPIC_ID)
        else:
            topic.name = name
            known.append(topic)
        yield
    request.topics = known
    return unknown


def _with_ids(
    context: Context, answers: list[TopicResponse], unknown: dict[int, TopicResponse]
) -> Steps[list[TopicResponse]]:
    """Version 10: put ids to names, omit deleted topics, and insert unknown ids at their index."""
    remaining = iter(answers)
    topics: list[TopicResponse] = []
    for place in range(len(answers) + len(unknown)):
        topic = unknown.get(place) or next(remaining)
        if place not in unknown:
            topic.topic_id = context.broker.metadata.topic_id(topic.name)
        if topic.topic_id != ZERO_UUID or place in unknown:
            topics.append(topic)
        yield
    return topics
