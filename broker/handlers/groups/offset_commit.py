"""OffsetCommit: store a group's positions.

Versions 0-10: v0 has no generation or member and v1 a timestamp per partition; v2-4 retention time,
v5 leaves expiry to the broker (KIP-211), v6 leader epoch (KIP-320), v7 static members, v9 the
member epoch of KIP-848 and GROUP_ID_NOT_FOUND, v10 topic ids (KIP-848).

Partitions that do not exist, and topics that the client may not READ, are refused one by one; the
response has the order of the request. A request with many positions is stored in pieces.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from broker.handlers.groups.commit_pieces import ANSWERS_AT_ONCE, are_many, in_pieces
from broker.requests.api_table import handles
from broker.requests.authorization import (
    is_allowed_on_group,
    is_allowed_on_topic,
    would_be_allowed_on_topic,
)
from broker.requests.steps import in_slices, in_steps
from broker.runtime.countdown import Countdown
from broker.runtime.deferred import Deferred
from coordinator.offsets.offset_commits import commit_error
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping
    from uuid import UUID

    from broker.requests.context import Context
    from broker.requests.steps import Steps

TOPIC_ID_SINCE = 10

Topic = OffsetCommitRequest.Topic
Answer = OffsetCommitResponse.Topic.Partition
Place: TypeAlias = "tuple[str, UUID, int]"
"""A partition by the name and the id of its topic, and its index."""


@handles(OffsetCommitRequest, versions="0-10")
@in_steps
def offset_commit(
    context: Context, request: OffsetCommitRequest
) -> Steps[OffsetCommitResponse | Deferred[OffsetCommitResponse]]:
    """Store positions of partitions that exist; answered when they are committed."""
    if not is_allowed_on_group(context, AclOperation.READ, request.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return (yield from _answers(request, {}, lambda _: code))
    if context.api_version >= TOPIC_ID_SINCE:
        for topic in request.topics:
            topic.name = context.broker.metadata.topic_name(topic.topic_id) or ""
            yield
    if are_many(request.topics):
        return in_slices(context, _commit_in_pieces(context, request))
    known = yield from _known_partitions(context, request)
    reply = _commit(context, known)
    if known is request:
        return reply
    return reply.map(lambda value: _with_refused(context, request, _codes(value)))


def _commit_in_pieces(
    context: Context, request: OffsetCommitRequest
) -> Steps[Deferred[OffsetCommitResponse]]:
    """As a short request, but that others are served and may commit in between."""
    codes: dict[Place, int] = {}

    def note(value: OffsetCommitResponse) -> None:
        for place, code in _codes(value).items():
            codes[place] = codes.get(place) or code  # of one named twice, the error

    gather = Countdown(lambda: codes)
    existing_in = partial(_existing_in, context)
    for piece in in_pieces(request.topics, existing_in):
        if piece:
            gather.await_(_commit(context, _like(request, map(_part, piece))), note)
        yield
    gather.close()
    return gather.deferred.map(partial(_with_refused, context, request))


def _part(part: tuple[Topic, list[Topic.Partition]]) -> Topic:
    topic, partitions = part
    return Topic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _commit(context: Context, known: OffsetCommitRequest) -> Deferred[OffsetCommitResponse]:
    reply: Deferred[OffsetCommitResponse] = Deferred()
    if not known.topics:
        reply.complete(OffsetCommitResponse(topics=[]))
        return reply
    try:
        shard = context.broker.groups.shard_for(known.group_id)
    except ApiError as error:
        reply.complete(commit_error(known, error.code))
        return reply
    version = context.api_version
    shard.run(shard.groups.handle_offset_commit(known, version, reply, context.now_ms))
    return reply


def _codes(value: OffsetCommitResponse) -> dict[Place, int]:
    return {
        (topic.name, topic.topic_id, each.partition_index): each.error_code
        for topic in value.topics
        for each in topic.partitions
    }


@in_steps
def _with_refused(
    context: Context, request: OffsetCommitRequest, codes: Mapping[Place, int]
) -> Steps[OffsetCommitResponse]:
    """Result of each partition, in the order of the request."""
    return (yield from _answers(request, codes, partial(_refusal, context)))


def _answers(
    request: OffsetCommitRequest, codes: Mapping[Place, int], refusal_of: Callable[[Topic], int]
) -> Steps[OffsetCommitResponse]:
    """`codes` by partition, and for the others in a topic `refusal_of` it."""
    topics = []
    for topic in request.topics:
        name, topic_id, refusal = topic.name, topic.topic_id, refusal_of(topic)
        answers: list[Answer] = []
        for start in range(0, len(topic.partitions), ANSWERS_AT_ONCE):
            for each in topic.partitions[start : start + ANSWERS_AT_ONCE]:
                index = each.partition_index
                code = codes.get((name, topic_id, index), refusal)
                answers.append(Answer(partition_index=index, error_code=code))
            yield
        topics.append(OffsetCommitResponse.Topic(name=name, topic_id=topic_id, partitions=answers))
        yield
    return OffsetCommitResponse(topics=topics)


def _refusal(context: Context, topic: OffsetCommitRequest.Topic) -> ErrorCode:
    """The error of those partitions of a topic that were not committed."""
    if context.api_version >= TOPIC_ID_SINCE and not topic.name:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not would_be_allowed_on_topic(context, AclOperation.READ, topic.name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _known_partitions(context: Context, request: OffsetCommitRequest) -> Steps[OffsetCommitRequest]:
    """The request itself if all its partitions exist, else a copy with those that do.

    To a client that may not READ a topic none of it exists.
    """
    topics = []
    is_whole = True
    for topic in request.topics:
        yield
        existing = _existing_in(context, topic)
        partitions = [each for each in topic.partitions if each.partition_index in existing]
        if len(partitions) < len(topic.partitions):
            is_whole = False
        if partitions:
            topics.append(_part((topic, partitions)))
    return request if is_whole else _like(request, topics)


def _existing_in(context: Context, topic: Topic) -> Container[int]:
    known = context.broker.metadata.topic(topic.name)
    if known is None or not is_allowed_on_topic(context, AclOperation.READ, topic.name):
        return ()
    return known.partitions


def _like(request: OffsetCommitRequest, topics: Iterable[Topic]) -> OffsetCommitRequest:
    """The same with other topics."""
    return OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time_ms=request.retention_time_ms,
        topics=list(topics),
    )
