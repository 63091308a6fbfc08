"""OffsetCommit: store a group's positions.

Versions 0-10: v0 has no generation or member and v1 a timestamp per partition; v2-4 retention time,
v5 leaves expiry to the broker (KIP-211), v6 leader epoch (KIP-320), v7 static members, v9 the
member epoch of KIP-848 and GROUP_ID_NOT_FOUND, v10 topic ids (KIP-848).

Partitions that do not exist, and topics that the client may not READ, are refused one by one; the
response has the order of the request.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker.requests.api_table import handles
from broker.requests.authorization import (
    is_allowed_on_group,
    is_allowed_on_topic,
    would_be_allowed_on_topic,
)
from broker.requests.steps import in_steps
from broker.runtime.deferred import Deferred
from coordinator.offsets.offset_commits import commit_error, topic_error
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

if TYPE_CHECKING:
    from broker.requests.context import Context
    from broker.requests.steps import Steps

TOPIC_ID_SINCE = 10


@handles(OffsetCommitRequest, versions="0-10")
@in_steps
def offset_commit(
    context: Context, request: OffsetCommitRequest
) -> Steps[OffsetCommitResponse | Deferred[OffsetCommitResponse]]:
    """Store positions of partitions that exist; answered when they are committed."""
    if not is_allowed_on_group(context, AclOperation.READ, request.group_id):
        return commit_error(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    has_ids = context.api_version >= TOPIC_ID_SINCE
    if has_ids:
        for topic in request.topics:
            topic.name = context.broker.metadata.topic_name(topic.topic_id) or ""
            yield
    known = yield from _known_partitions(context, request)
    reply = _commit(context, known)
    if known is request:
        return reply
    return reply.map(partial(_with_refused, context, request))


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


@in_steps
def _with_refused(
    context: Context, request: OffsetCommitRequest, value: OffsetCommitResponse
) -> Steps[OffsetCommitResponse]:
    """Insert the errors of partitions that were not committed, in the order of the request."""
    given = {
        (topic.name, topic.topic_id, each.partition_index): each.error_code
        for topic in value.topics
        for each in topic.partitions
    }
    topics = []
    for topic in request.topics:
        whole = topic_error(topic, _refusal(context, topic))
        for each in whole.partitions:
            key = (topic.name, topic.topic_id, each.partition_index)
            each.error_code = given.get(key, each.error_code)
        topics.append(whole)
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
    metadata = context.broker.metadata
    topics = []
    is_whole = True
    for topic in request.topics:
        yield
        known = metadata.topic(topic.name)
        if known is None or not is_allowed_on_topic(context, AclOperation.READ, topic.name):
            is_whole = False
            continue
        existing = known.partitions
        partitions = [each for each in topic.partitions if each.partition_index in existing]
        if len(partitions) < len(topic.partitions):
            is_whole = False
        if partitions:
            topics.append(
                OffsetCommitRequest.Topic(
                    name=topic.name, topic_id=topic.topic_id, partitions=partitions
                )
            )
    if is_whole:
        return request
    return OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time_ms=request.retention_time_ms,
        topics=topics,
    )
