"""OffsetCommit: store a group's positions.

Versions 0-10: v0 has no generation or member and v1 a timestamp per partition; v2-4 retention time,
v5 leaves expiry to the broker (KIP-211), v6 leader epoch (KIP-320), v7 static members, v9 the
member epoch of KIP-848 and GROUP_ID_NOT_FOUND, v10 topic ids (KIP-848).

Topics that do not exist are refused one by one; whether the partition exists is not looked at, as
in Apache. The response lists the topics in the order of the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.deferred import Deferred
from broker.routing import handles
from coordinator.offset_commits import commit_error, topic_error
from protocol.errors import ApiError, ErrorCode
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

if TYPE_CHECKING:
    from broker.context import Context

TOPIC_ID_SINCE = 10


@handles(OffsetCommitRequest, versions="0-10")
def offset_commit(
    context: Context, request: OffsetCommitRequest
) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
    """Store positions of topics that exist; answered when they are committed."""
    refused = _take_out_unknown_topics(context, request)
    answer: Deferred[OffsetCommitResponse] = Deferred()
    reply = _Merge(refused, answer) if refused else answer
    if not request.topics:
        reply.complete(OffsetCommitResponse(topics=[]))
        return answer
    try:
        shard = context.broker.groups.shard_for(request.group_id)
    except ApiError as error:
        reply.complete(commit_error(request, error.code))
        return answer
    shard.run(
        shard.groups.handle_offset_commit(request, context.api_version, reply, context.now_ms)
    )
    return answer


class _Merge:
    """Puts the answers for topics that do not exist back in their places."""

    __slots__ = ("_answer", "_refused")

    def __init__(
        self,
        refused: list[tuple[int, OffsetCommitResponse.Topic]],
        answer: Deferred[OffsetCommitResponse],
    ) -> None:
        self._refused = refused
        self._answer = answer

    def complete(self, value: OffsetCommitResponse) -> object:
        for place, topic in self._refused:
            value.topics.insert(place, topic)
        return self._answer.complete(value)


def _take_out_unknown_topics(
    context: Context, request: OffsetCommitRequest
) -> list[tuple[int, OffsetCommitResponse.Topic]]:
    """Leave the known topics in the request, with their names; answer the others."""
    metadata = context.broker.metadata
    has_ids = context.api_version >= TOPIC_ID_SINCE
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if has_ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    known = []
    refused = []
    for place, topic in enumerate(request.topics):
        if has_ids:
            topic.name = metadata.topic_name(topic.topic_id) or ""
        if metadata.topic(topic.name) is not None:
            known.append(topic)
        else:
            refused.append((place, topic_error(topic, unknown)))
    if refused:
        request.topics = known
    return refused
