"""TxnOffsetCommit: store a group's positions as part of a transaction.

Versions 0-5: v2 leader epoch, v3 the member and its generation (KIP-447), v4 TRANSACTION_ABORTABLE,
v5 adds the group's partition of `__consumer_offsets` to the transaction (KIP-890).

Partitions that do not exist, and topics that the client may not READ, are refused one by one; the
response has the order of the request.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker.handlers.records.transaction_verification import Support, Transaction, Verification
from broker.requests.api_table import handles
from broker.requests.authorization import (
    is_allowed_on_group,
    is_allowed_on_topic,
    is_allowed_on_transaction,
    would_be_allowed_on_topic,
)
from broker.requests.steps import in_steps
from broker.runtime.deferred import Deferred
from coordinator.groups.responses import transactional_storage_error
from coordinator.offsets.transactional_commits import commit_error, topic_error
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

if TYPE_CHECKING:
    from broker.coordinators.group_shard_runtime import GroupShardRuntime
    from broker.handlers.records.transaction_verification import Verified
    from broker.requests.context import Context
    from broker.requests.steps import Steps

LOADING_SINCE = 2
"""Older producers cannot handle COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""
ABORTABLE_SINCE = 4
ADDS_PARTITIONS_SINCE = 5
UNCHECKED_SEQUENCE = -1
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@handles(TxnOffsetCommitRequest, versions="0-5")
@in_steps
def txn_offset_commit(
    context: Context, request: TxnOffsetCommitRequest
) -> Steps[TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse]]:
    """Store positions of partitions that exist; answered when they are committed."""
    if not is_allowed_on_transaction(context, AclOperation.WRITE, request.transactional_id):
        return commit_error(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not is_allowed_on_group(context, AclOperation.READ, request.group_id):
        return commit_error(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    known = yield from _known_partitions(context, request)
    reply = _verify_and_commit(context, known)
    return reply.map(partial(_complete, context, request))


def _verify_and_commit(
    context: Context, request: TxnOffsetCommitRequest
) -> Deferred[TxnOffsetCommitResponse]:
    reply: Deferred[TxnOffsetCommitResponse] = Deferred()
    if not request.topics:
        reply.complete(TxnOffsetCommitResponse(topics=[]))
        return reply
    try:
        shard = context.broker.groups.shard_for_member(request.group_id)
    except ApiError as error:
        reply.complete(commit_error(request, transactional_storage_error(error.code)))
        return reply
    place = shard.partition.topic, shard.partition.index
    verified = Verification(
        context.broker,
        Transaction(request.transactional_id, request.producer_id, request.producer_epoch),
        {place: (shard.partition, UNCHECKED_SEQUENCE)},
        _support(context.api_version),
    ).ask()
    verified.then(reply.guard(partial(_commit, context, request, reply)), reply.fail)
    return reply


@in_steps
def _complete(
    context: Context, request: TxnOffsetCommitRequest, value: TxnOffsetCommitResponse
) -> Steps[TxnOffsetCommitResponse]:
    """Insert the errors of partitions that were not committed, in codes known to the client."""
    given = {
        (topic.name, each.partition_index): each.error_code
        for topic in value.topics
        for each in topic.partitions
    }
    response = TxnOffsetCommitResponse(topics=[])
    for wanted in request.topics:
        may = would_be_allowed_on_topic(context, AclOperation.READ, wanted.name)
        topic = topic_error(wanted, UNKNOWN if may else ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        for each in topic.partitions:
            code = given.get((topic.name, each.partition_index), each.error_code)
            each.error_code = _shown(code, context.api_version)
        response.topics.append(topic)
        yield
    return response


def _shown(code: int, version: int) -> int:
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < LOADING_SINCE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


def _support(version: int) -> Support:
    if version >= ADDS_PARTITIONS_SINCE:
        return Support.ADDS_PARTITIONS
    return Support.ABORTABLE if version >= ABORTABLE_SINCE else Support.BASIC


def _commit(
    context: Context,
    request: TxnOffsetCommitRequest,
    reply: Deferred[TxnOffsetCommitResponse],
    verified: Verified,
) -> None:
    """The transaction's coordinator has answered; the group's may have moved since."""
    groups = context.broker.groups
    try:
        shard: GroupShardRuntime = groups.shard_for(request.group_id)
        place = shard.partition.topic, shard.partition.index
        code = verified.errors.get(place)
        if code is not None:
            raise ApiError(code)
    except ApiError as error:
        reply.complete(commit_error(request, transactional_storage_error(error.code)))
        return
    now_ms = context.broker.clock.now_ms()
    effects = shard.groups.handle_transactional_commit(request, reply, now_ms)
    shard.run(effects, verified.guards.get(place))


def _known_partitions(
    context: Context, request: TxnOffsetCommitRequest
) -> Steps[TxnOffsetCommitRequest]:
    """A copy of the request with the partitions that exist, in topics that the client may READ."""
    metadata = context.broker.metadata
    topics = []
    for topic in request.topics:
        yield
        known = metadata.topic(topic.name)
        if known is None or not is_allowed_on_topic(context, AclOperation.READ, topic.name):
            continue
        existing = known.partitions
        partitions = [each for each in topic.partitions if each.partition_index in existing]
        if partitions:
            topics.append(TxnOffsetCommitRequest.Topic(name=topic.name, partitions=partitions))
    return TxnOffsetCommitRequest(
        transactional_id=request.transactional_id,
        group_id=request.group_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        generation_id=request.generation_id,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=topics,
    )
