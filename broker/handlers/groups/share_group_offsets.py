"""Start offsets of share groups: DescribeShareGroupOffsets, Alter- and DeleteShareGroupOffsets.

DescribeShareGroupOffsets 0-1: v1 lag (KIP-1226). The other two in version 0, for groups without
members. They require DESCRIBE, READ and DELETE on the group; the first DESCRIBE on topics, the
others READ. The offsets are stored by the share coordinators; a response waits for theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.coordinators.share_state.group_states import store
from broker.handlers.groups.asked_positions import AskedPositions
from broker.handlers.groups.group_protocols import finished
from broker.handlers.groups.share_groups import are_shares_served
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_group, is_allowed_on_topic
from broker.requests.encoded_response import encoded_in_slices
from broker.runtime.deferred import Deferred, awaited, in_background
from coordinator.share_state.state import (
    NO_COUNT,
    NO_START_OFFSET,
    NO_SUMMARY,
    SharePartition,
)
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode, detached
from protocol.messages.share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from uuid import UUID

    from broker.coordinators.group_shard_runtime import GroupShardRuntime
    from broker.requests.context import Context
    from coordinator.share_state.state import StateSummary

    Place = tuple[UUID, int]

NO_LAG: Final = -1
NOT_ALLOWED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
READ_AT_ONCE: Final = 100
"""Share-partitions whose summaries are read together."""

DescribedGroup = DescribeShareGroupOffsetsResponse.Group
DescribedTopic = DescribeShareGroupOffsetsResponse.Group.Topic
DescribedPartition = DescribeShareGroupOffsetsResponse.Group.Topic.Partition
AlteredTopic = AlterShareGroupOffsetsResponse.Response
DeletedTopic = DeleteShareGroupOffsetsResponse.Response


def _shard(context: Context, operation: AclOperation, group_id: str) -> GroupShardRuntime:
    """The group's shard. Raises ApiError."""
    if not are_shares_served(context):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    if not is_allowed_on_group(context, operation, group_id):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return context.broker.groups.shard_for_member(group_id)


# Describe


@handles(DescribeShareGroupOffsetsRequest, versions="0-1")
def describe_share_group_offsets(
    context: Context, request: DescribeShareGroupOffsetsRequest
) -> Deferred[DescribeShareGroupOffsetsResponse]:
    """Start offsets and lag of groups per partition; each partition of a group once."""

    async def work() -> DescribeShareGroupOffsetsResponse:
        asked = AskedPositions()
        groups = [
            await _described(context, wanted, asked)
            async for wanted in context.broker.slices().each(request.groups)
            if wanted.topics is not None or asked.is_new(wanted.group_id)
        ]
        return await encoded_in_slices(context, DescribeShareGroupOffsetsResponse(groups=groups))

    return in_background(context.broker.spawn, work(), "share group offsets described")


async def _described(
    context: Context, wanted: DescribeShareGroupOffsetsRequest.Group, asked: AskedPositions
) -> DescribedGroup:
    group = DescribedGroup(group_id=wanted.group_id, topics=[], error_code=ErrorCode.NONE)
    try:
        shard = _shard(context, AclOperation.DESCRIBE, wanted.group_id)
    except ApiError as error:
        group.error_code, group.error_message = error.code, error.message
        return group
    if wanted.topics is None:
        await _describe_all(context, shard, group)
        return group
    for topic in wanted.topics:
        place = (wanted.group_id, topic.topic_name)
        topic.partitions = await finished(context, asked.new_indexes(place, topic.partitions))
        topic_id = context.broker.metadata.topic_id(topic.topic_name)
        if not is_allowed_on_topic(context, AclOperation.DESCRIBE, topic.topic_name):
            group.topics.append(await _without(context, topic, NOT_ALLOWED))
        elif topic_id == ZERO_UUID:  # it has no offsets, which is no error
            group.topics.append(await _without(context, topic, ErrorCode.NONE))
        else:
            name = topic.topic_name
            described = await _topic(context, wanted.group_id, name, topic.partitions)
            group.topics.append(described)
    return group


async def _describe_all(context: Context, shard: GroupShardRuntime, group: DescribedGroup) -> None:
    """All partitions that have state, of topics that the client may describe."""
    found = shard.groups.shares.groups.find(group.group_id)
    known = {} if found is None else dict(found.states.initialised)
    for topic_id, each in known.items():
        name = context.broker.metadata.topic_name(topic_id)
        if name is not None and is_allowed_on_topic(context, AclOperation.DESCRIBE, name):
            partitions = sorted(each.partitions)
            group.topics.append(await _topic(context, group.group_id, name, partitions))


async def _without(
    context: Context, topic: DescribeShareGroupOffsetsRequest.Group.Topic, code: ErrorCode
) -> DescribedTopic:
    """A topic with an error and without offsets."""
    told = DescribedTopic(topic_name=topic.topic_name, topic_id=ZERO_UUID, partitions=[])
    async for index in context.broker.slices().each(topic.partitions):
        told.partitions.append(_partition(index, NO_SUMMARY, NO_LAG, code))
    return told


async def _topic(
    context: Context, group_id: str, name: str, partitions: list[int]
) -> DescribedTopic:
    broker = context.broker
    topic_id = broker.metadata.topic_id(name)
    slices = broker.slices()
    summaries: dict[int, StateSummary] = {}
    existing: list[int] = []
    async for index in slices.each(partitions):
        if index not in summaries and broker.metadata.partition(name, index) is not None:
            existing.append(index)
        summaries[index] = NO_SUMMARY
    for start in range(0, len(existing), READ_AT_ONCE):
        asked = {
            index: broker.share_state.read_summary(SharePartition(group_id, topic_id, index))
            for index in existing[start : start + READ_AT_ONCE]
        }
        for index, answer in asked.items():
            try:
                summaries[index] = await awaited(answer)
            except ApiError as error:  # nothing is known of it then, as in Apache Kafka
                detached(error)  # it is held by its answer, and that from here
    begun = [
        (name, index)
        for index in existing
        if summaries[index].start_offset != NO_START_OFFSET
        and summaries[index].delivery_complete_count != NO_COUNT
    ]
    ends = await broker.end_offsets.of(begun)
    told = DescribedTopic(topic_name=name, topic_id=topic_id, partitions=[])
    async for index in slices.each(partitions):
        summary, end = summaries[index], ends.get((name, index))
        if isinstance(end, ErrorCode):
            told.partitions.append(_partition(index, NO_SUMMARY, NO_LAG, end))
        else:
            lag = NO_LAG
            if end is not None:
                lag = end - summary.start_offset - summary.delivery_complete_count
            told.partitions.append(_partition(index, summary, lag, ErrorCode.NONE))
    return told


def _partition(index: int, summary: StateSummary, lag: int, code: ErrorCode) -> DescribedPartition:
    return DescribedPartition(
        partition_index=index,
        start_offset=summary.start_offset,
        leader_epoch=summary.leader_epoch,
        lag=lag,
        error_code=code,
        error_message=code.meaning if code else None,
    )


# Alter


@handles(AlterShareGroupOffsetsRequest, versions="0")
def alter_share_group_offsets(
    context: Context, request: AlterShareGroupOffsetsRequest
) -> Deferred[AlterShareGroupOffsetsResponse]:
    """Change the start offsets of a group without members; its delivery states are dropped."""

    async def work() -> AlterShareGroupOffsetsResponse:
        try:
            responses = await _alter(context, request)
        except ApiError as error:
            return AlterShareGroupOffsetsResponse(
                error_code=error.code, error_message=error.message, responses=[]
            )
        return AlterShareGroupOffsetsResponse(error_code=ErrorCode.NONE, responses=responses)

    return in_background(context.broker.spawn, work(), "share group offsets altered")


async def _alter(context: Context, request: AlterShareGroupOffsetsRequest) -> list[AlteredTopic]:
    shard = _shard(context, AclOperation.READ, request.group_id)
    offsets: dict[Place, int] = {}
    responses, told = [], {}
    slices = context.broker.slices()
    async for topic in slices.each(request.topics):
        topic_id = context.broker.metadata.topic_id(topic.topic_name)
        altered = AlteredTopic(topic_name=topic.topic_name, topic_id=topic_id, partitions=[])
        responses.append(altered)
        async for each in slices.each(topic.partitions):
            answer = altered.Partition(
                partition_index=each.partition_index, error_code=ErrorCode.NONE
            )
            altered.partitions.append(answer)
            error = _refusal(context, topic.topic_name, each)
            if error is None:
                offsets[topic_id, each.partition_index] = each.start_offset
                told[topic_id, each.partition_index] = answer
            else:
                answer.error_code, answer.error_message = error.code, error.message
    wanted, records = shard.groups.shares.handle_alter(request.group_id, offsets)
    await store(shard, records)
    errors = await context.broker.group_states.initialise(shard, wanted)
    for place, error in errors.items():
        told[place].error_code, told[place].error_message = error.code, error.message
    return responses


def _refusal(
    context: Context, topic: str, wanted: AlterShareGroupOffsetsRequest.Topic.Partition
) -> ApiError | None:
    if not is_allowed_on_topic(context, AclOperation.READ, topic):
        return ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if context.broker.metadata.partition(topic, wanted.partition_index) is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if wanted.start_offset < NO_START_OFFSET:
        return ApiError(ErrorCode.INVALID_REQUEST, f"start offset {wanted.start_offset}")
    return None


# Delete


@handles(DeleteShareGroupOffsetsRequest, versions="0")
def delete_share_group_offsets(
    context: Context, request: DeleteShareGroupOffsetsRequest
) -> Deferred[DeleteShareGroupOffsetsResponse]:
    """Delete the share state of a group without members, by topic."""

    async def work() -> DeleteShareGroupOffsetsResponse:
        try:
            responses = await _delete(context, request)
        except ApiError as error:
            return DeleteShareGroupOffsetsResponse(
                error_code=error.code, error_message=error.message, responses=[]
            )
        return DeleteShareGroupOffsetsResponse(error_code=ErrorCode.NONE, responses=responses)

    return in_background(context.broker.spawn, work(), "share group offsets deleted")


async def _delete(context: Context, request: DeleteShareGroupOffsetsRequest) -> list[DeletedTopic]:
    broker, group_id = context.broker, request.group_id
    shard = _shard(context, AclOperation.DELETE, group_id)
    ids: dict[str, UUID] = {}
    errors: dict[str, ApiError] = {}
    async for topic in broker.slices().each(request.topics):
        name = topic.topic_name
        ids[name] = broker.metadata.topic_id(name)
        if not is_allowed_on_topic(context, AclOperation.READ, name):
            errors[name] = ApiError(NOT_ALLOWED)
    shares = shard.groups.shares
    with shares.forgetting(group_id):
        allowed = [name for name in ids if name not in errors]
        begun = shares.handle_delete_topics(group_id, allowed)
        errors |= begun.refused
        await store(shard, begun.records)
        failed = await broker.group_states.forget(group_id, begun.places)
    by_id = {topic_id: name for name, topic_id in ids.items()}
    for (topic_id, _), error in failed.items():
        errors[by_id[topic_id]] = error
    forgotten = {topic_id for topic_id, _ in begun.places if by_id[topic_id] not in errors}
    await store(shard, shares.handle_forgotten(group_id, forgotten))
    return [_deleted(name, topic_id, errors.get(name)) for name, topic_id in ids.items()]


def _deleted(name: str, topic_id: UUID, error: ApiError | None) -> DeletedTopic:
    if error is None:
        return DeletedTopic(topic_name=name, topic_id=topic_id, error_code=ErrorCode.NONE)
    return DeletedTopic(
        topic_name=name, topic_id=topic_id, error_code=error.code, error_message=error.message
    )
