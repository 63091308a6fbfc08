"""TxnOffsetCommit: store a group's positions as part of a transaction.

Versions 0-6: v2 leader epoch, v3 the member and its generation (KIP-447), v4 TRANSACTION_ABORTABLE,
v5 adds the group's partition of `__consumer_offsets` to the transaction (KIP-890), v6 topic ids,
member epochs and their errors (KIP-1319).

Partitions that do not exist, and topics that the client may not READ, are refused one by one; the
response has the order of the request. A request with many positions is stored in pieces, as by
OffsetCommit.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from broker.handlers.groups.commit_pieces import ANSWERS_AT_ONCE, in_pieces
from broker.handlers.records.transaction_verification import Support, Transaction, Verification
from broker.requests.api_table import handles
from broker.requests.authorization import (
    is_allowed_on_group,
    is_allowed_on_topic,
    is_allowed_on_transaction,
    would_be_allowed_on_topic,
)
from broker.requests.steps import in_slices, in_steps
from broker.runtime.countdown import Countdown
from broker.runtime.deferred import Deferred
from coordinator.groups.responses import transactional_storage_error
from coordinator.offsets.transactional_commits import commit_error
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence
    from uuid import UUID

    from broker.coordinators.group_shard_runtime import GroupShardRuntime
    from broker.handlers.records.transaction_verification import Verified
    from broker.requests.context import Context
    from broker.requests.steps import Steps

LOADING_SINCE = 2
"""Older producers cannot handle COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""
ABORTABLE_SINCE = 4
ADDS_PARTITIONS_SINCE = 5
TOPIC_ID_SINCE = 6
UNCHECKED_SEQUENCE = -1
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

Topic = TxnOffsetCommitRequest.Topic
Answer = TxnOffsetCommitResponse.Topic.Partition
Place: TypeAlias = "tuple[str, UUID, int]"
"""A partition by the name and the id of its topic, and its index."""
Codes: TypeAlias = "Mapping[Place, int]"
"""Errors, or none, by partition."""


@handles(TxnOffsetCommitRequest, versions="0-6")
@in_steps
def txn_offset_commit(
    context: Context, request: TxnOffsetCommitRequest
) -> Steps[TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse]]:
    """Store positions of partitions that exist; answered when they are committed."""
    if not is_allowed_on_transaction(context, AclOperation.WRITE, request.transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return (yield from _answers(request, {}, lambda _: code, context.api_version))
    if not is_allowed_on_group(context, AclOperation.READ, request.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return (yield from _answers(request, {}, lambda _: code, context.api_version))
    if context.api_version >= TOPIC_ID_SINCE:
        for topic in request.topics:
            topic.name = context.broker.metadata.topic_name(topic.topic_id) or ""
            yield
    pieces = []
    for piece in in_pieces(request.topics, partial(_existing_in, context)):
        if piece:
            pieces.append(_like(request, piece))
        yield
    if not pieces:
        return _with_refused(context, request, {})
    try:
        shard = context.broker.groups.shard_for_member(request.group_id)
    except ApiError as error:
        codes: dict[Place, int] = {}
        for each in pieces:
            _note(codes, commit_error(each, transactional_storage_error(error.code)))
            yield
        return _with_refused(context, request, codes)
    verified = _verification(context, request, shard).ask()
    committed: Deferred[Codes] = verified.map(partial(_commit_all, context, pieces))
    return committed.map(partial(_with_refused, context, request))


def _verification(
    context: Context, request: TxnOffsetCommitRequest, shard: GroupShardRuntime
) -> Verification:
    place = shard.partition.topic, shard.partition.index
    return Verification(
        context.broker,
        Transaction(request.transactional_id, request.producer_id, request.producer_epoch),
        {place: (shard.partition, UNCHECKED_SEQUENCE)},
        _support(context.api_version),
    )


def _commit_all(
    context: Context, pieces: Sequence[TxnOffsetCommitRequest], verified: Verified
) -> Deferred[Codes]:
    """Commit after the transaction coordinator's answer, serving others between pieces.

    A marker in between voids the guard, and the remaining positions are refused.
    """
    codes: dict[Place, int] = {}

    note = partial(_note, codes)
    gather: Countdown[Codes] = Countdown(lambda: codes)

    def commit_in_steps() -> Steps[Deferred[Codes]]:
        for piece in pieces[1:]:
            gather.await_(_commit(context, piece, verified), note)
            yield
        gather.close()
        return gather.deferred

    gather.await_(_commit(context, pieces[0], verified), note)
    if len(pieces) > 1:
        return in_slices(context, commit_in_steps())
    gather.close()
    return gather.deferred


def _commit(
    context: Context, request: TxnOffsetCommitRequest, verified: Verified
) -> Deferred[TxnOffsetCommitResponse]:
    """Commit one piece; the coordinator of the group may have moved since."""
    reply: Deferred[TxnOffsetCommitResponse] = Deferred()
    groups, version = context.broker.groups, context.api_version
    try:
        shard: GroupShardRuntime = groups.shard_for(request.group_id)
        place = shard.partition.topic, shard.partition.index
        code = verified.errors.get(place)
        if code is not None:
            raise ApiError(code)
    except ApiError as error:
        reply.complete(commit_error(request, transactional_storage_error(error.code)))
        return reply
    now_ms = context.broker.clock.now_ms()
    effects = shard.groups.handle_transactional_commit(request, version, reply, now_ms)
    shard.run(effects, verified.guards.get(place))
    return reply


def _note(codes: dict[Place, int], value: TxnOffsetCommitResponse) -> None:
    """Add what became of some partitions; of one that is named twice, the error."""
    for topic in value.topics:
        for each in topic.partitions:
            place = topic.name, topic.topic_id, each.partition_index
            codes[place] = codes.get(place) or each.error_code


@in_steps
def _with_refused(
    context: Context, request: TxnOffsetCommitRequest, codes: Codes
) -> Steps[TxnOffsetCommitResponse]:
    """Result of each partition, in the order of the request and in codes the client knows."""

    def refusal(topic: Topic) -> ErrorCode:
        if not topic.name and context.api_version >= TOPIC_ID_SINCE:
            return ErrorCode.UNKNOWN_TOPIC_ID
        may = would_be_allowed_on_topic(context, AclOperation.READ, topic.name)
        return UNKNOWN if may else ErrorCode.TOPIC_AUTHORIZATION_FAILED

    return (yield from _answers(request, codes, refusal, context.api_version))


def _answers(
    request: TxnOffsetCommitRequest,
    codes: Codes,
    refusal_of: Callable[[Topic], int],
    version: int,
) -> Steps[TxnOffsetCommitResponse]:
    """`codes` by partition, and for the others in a topic `refusal_of` it."""
    topics = []
    for topic in request.topics:
        name, topic_id, refusal = topic.name, topic.topic_id, refusal_of(topic)
        answers: list[Answer] = []
        for start in range(0, len(topic.partitions), ANSWERS_AT_ONCE):
            for each in topic.partitions[start : start + ANSWERS_AT_ONCE]:
                index = each.partition_index
                code = _shown(codes.get((name, topic_id, index), refusal), version)
                answers.append(Answer(partition_index=index, error_code=code))
            yield
        topics.append(
            TxnOffsetCommitResponse.Topic(name=name, topic_id=topic_id, partitions=answers)
        )
        yield
    return TxnOffsetCommitResponse(topics=topics)


def _existing_in(context: Context, topic: Topic) -> Container[int]:
    known = context.broker.metadata.topic(topic.name)
    if known is None or not is_allowed_on_topic(context, AclOperation.READ, topic.name):
        return ()
    return known.partitions


def _like(
    request: TxnOffsetCommitRequest, piece: Sequence[tuple[Topic, list[Topic.Partition]]]
) -> TxnOffsetCommitRequest:
    """The same with other topics."""
    return TxnOffsetCommitRequest(
        transactional_id=request.transactional_id,
        group_id=request.group_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=[
            Topic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
            for topic, partitions in piece
        ],
    )


def _shown(code: int, version: int) -> int:
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < LOADING_SINCE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


def _support(version: int) -> Support:
    if version >= ADDS_PARTITIONS_SINCE:
        return Support.ADDS_PARTITIONS
    return Support.ABORTABLE if version >= ABORTABLE_SINCE else Support.BASIC
