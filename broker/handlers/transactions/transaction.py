"""AddPartitionsToTxn, AddOffsetsToTxn, EndTxn: the requests of a producer's transaction.

AddPartitionsToTxn 0-5: clients use up to v3 and name one transaction; from v4 on brokers name
several, and may only verify that partitions were added (KIP-890). AddOffsetsToTxn 0-4. EndTxn 0-5:
v5 is of transaction version 2, and returns the raised epoch. Below v2 a fenced producer gets
INVALID_PRODUCER_EPOCH (KIP-588).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from broker.requests.api_table import handles
from broker.requests.authorization import (
    allowed,
    is_allowed_on_group,
    is_allowed_on_transaction,
    require_on_cluster,
)
from broker.requests.steps import in_steps
from broker.runtime.countdown import Countdown
from broker.runtime.deferred import Deferred
from broker.runtime.slices import at_once
from controller.topics.topic_names import GROUP_METADATA_TOPIC, INTERNAL_TOPICS
from coordinator.transactions.ports import End, Identity
from coordinator.transactions.transaction import EPOCH_PER_TRANSACTION
from protocol.acl_types import AclOperation, ResourceType
from protocol.errors import ApiError, ErrorCode
from protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
    EndTxnRequest,
    EndTxnResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from coordinator.transactions.transaction import TopicPartition

    Codes = dict[TopicPartition, ErrorCode]

T = TypeVar("T")

PARTITIONS_AT_ONCE: Final = 10
"""Looked at in one step, which takes ten or twenty microseconds."""
BATCHED_SINCE = 4
PRODUCER_FENCED_SINCE = 2
EPOCH_PER_TRANSACTION_SINCE = 5
OLD_PROTOCOL = 0

Wanted = AddPartitionsToTxnRequest.Transaction
Result = AddPartitionsToTxnResponse.ResultsByTransaction


@handles(AddPartitionsToTxnRequest, versions="0-5")
@in_steps
def add_partitions_to_txn(
    context: Context, request: AddPartitionsToTxnRequest
) -> Steps[Deferred[AddPartitionsToTxnResponse]]:
    """Add or verify the partitions of each transaction: all of them, or none if one is invalid.

    Raises ApiError CLUSTER_AUTHORIZATION_FAILED for a version of brokers from another client.
    """
    results: list[Result] = []
    is_batch = context.api_version >= BATCHED_SINCE
    if is_batch:
        require_on_cluster(context, AclOperation.CLUSTER_ACTION)

    def respond() -> AddPartitionsToTxnResponse:
        if is_batch:
            return AddPartitionsToTxnResponse(
                error_code=ErrorCode.NONE, results_by_transaction=results
            )
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)

    gather = Countdown(respond)
    for wanted in request.transactions if is_batch else [_only(request)]:
        result = Result(transactional_id=wanted.transactional_id, topic_results=[])
        results.append(result)
        yield from _add(context, wanted, result, gather)
        yield
    gather.close()
    return gather.deferred


def _only(request: AddPartitionsToTxnRequest) -> Wanted:
    """The one transaction of an old request."""
    return Wanted(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _add(
    context: Context,
    wanted: Wanted,
    result: Result,
    gather: Countdown[AddPartitionsToTxnResponse],
) -> Steps[None]:
    named = ((topic.name, index) for topic in wanted.topics for index in topic.partitions)
    distinct: dict[TopicPartition, None] = {}
    yield from _some_at_once(named, distinct.setdefault)
    partitions = list(distinct)
    refused = yield from _refusals(context, wanted, partitions)
    if refused:
        all_codes: Codes = {}

        def note(at: TopicPartition) -> None:
            all_codes[at] = refused.get(at, ErrorCode.OPERATION_NOT_ATTEMPTED)

        yield from _some_at_once(partitions, note)
        yield from _tell(result, all_codes)
        return

    codes: Deferred[Codes]
    if wanted.verify_only:
        codes = _verify(context, wanted, partitions)
    else:
        producer = (wanted.transactional_id, wanted.producer_id, wanted.producer_epoch)
        client_version = (
            EPOCH_PER_TRANSACTION if context.api_version >= BATCHED_SINCE else OLD_PROTOCOL
        )
        reply = _add_to_transaction(context, producer, frozenset(partitions), client_version)
        codes = reply.map(lambda code: dict.fromkeys(partitions, _shown(context, code)))

    def answered(arrived: Codes) -> None:
        # At once: bounded by the partitions that exist, as the others are refused above.
        at_once(_tell(result, arrived))

    gather.await_(codes, answered)


def _some_at_once(items: Iterable[T], work: Callable[[T], object]) -> Steps[None]:
    for number, item in enumerate(items):
        work(item)
        if number % PARTITIONS_AT_ONCE == PARTITIONS_AT_ONCE - 1:
            yield


def _refusals(
    context: Context, wanted: Wanted, partitions: Collection[TopicPartition]
) -> Steps[Codes]:
    """Errors of partitions that do not exist, or are not accessible to the client.

    Internal topics are written by brokers only, which need CLUSTER_ACTION and nothing else.
    """
    is_client = context.api_version < BATCHED_SINCE
    transactional_id = wanted.transactional_id
    if is_client and not is_allowed_on_transaction(context, AclOperation.WRITE, transactional_id):
        return dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    topics = {topic.name for topic in wanted.topics}
    if is_client:
        topics = allowed(context, AclOperation.WRITE, ResourceType.TOPIC, topics - INTERNAL_TOPICS)
    refused: Codes = {}

    def look(at: TopicPartition) -> None:
        if at[0] not in topics:
            refused[at] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif context.broker.metadata.partition(*at) is None:
            refused[at] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    yield from _some_at_once(partitions, look)
    return refused


def _verify(context: Context, wanted: Wanted, partitions: list[TopicPartition]) -> Deferred[Codes]:
    reply: Deferred[Codes] = Deferred()
    try:
        shard = context.broker.transactions.shard_for(wanted.transactional_id)
    except ApiError as error:
        reply.complete(dict.fromkeys(partitions, error.code))
        return reply
    producer = (wanted.transactional_id, wanted.producer_id, wanted.producer_epoch)
    shard.run(shard.transactions.handle_verify(producer, partitions, reply))
    return reply


def _tell(result: Result, codes: Codes) -> Steps[None]:
    by_topic: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}

    def answer(known: tuple[TopicPartition, ErrorCode]) -> None:
        (topic, index), code = known
        by_topic.setdefault(topic, []).append(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        )

    yield from _some_at_once(codes.items(), answer)
    result.topic_results = [
        AddPartitionsToTxnTopicResult(name=topic, results_by_partition=results)
        for topic, results in by_topic.items()
    ]


@handles(AddOffsetsToTxnRequest, versions="0-4")
def add_offsets_to_txn(
    context: Context, request: AddOffsetsToTxnRequest
) -> Deferred[AddOffsetsToTxnResponse]:
    """Add the partition of `__consumer_offsets` that holds the group's positions.

    Raises ApiError if the client may not use the transactional id, or not READ the group.
    """
    _require_transaction(context, request.transactional_id)
    if not is_allowed_on_group(context, AclOperation.READ, request.group_id):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    partition = (GROUP_METADATA_TOPIC, context.broker.groups.partition_for(request.group_id))
    producer = (request.transactional_id, request.producer_id, request.producer_epoch)
    reply = _add_to_transaction(context, producer, frozenset({partition}), OLD_PROTOCOL)
    return reply.map(lambda code: AddOffsetsToTxnResponse(error_code=_shown(context, code)))


def _require_transaction(context: Context, transactional_id: str) -> None:
    if not is_allowed_on_transaction(context, AclOperation.WRITE, transactional_id):
        raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _add_to_transaction(
    context: Context,
    producer: tuple[str, int, int],
    partitions: frozenset[TopicPartition],
    client_version: int,
) -> Deferred[ErrorCode]:
    reply: Deferred[ErrorCode] = Deferred()
    try:
        shard = context.broker.transactions.shard_for(producer[0])
    except ApiError as error:
        reply.complete(error.code)
        return reply
    shard.run(
        shard.transactions.handle_add_partitions(
            producer, partitions, client_version, reply, context.now_ms
        )
    )
    return reply


@handles(EndTxnRequest, versions="0-5")
def end_txn(context: Context, request: EndTxnRequest) -> Deferred[EndTxnResponse]:
    """Commit or abort; answered once the decision is committed, before the markers are written.

    Raises ApiError if the client may not use the transactional id.
    """
    _require_transaction(context, request.transactional_id)
    reply: Deferred[Identity] = Deferred()

    def ended(identity: Identity) -> EndTxnResponse:
        return EndTxnResponse(
            error_code=_shown(context, identity.error),
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
        )

    is_newer = context.api_version >= EPOCH_PER_TRANSACTION_SINCE
    end = End(
        transactional_id=request.transactional_id,
        producer_id=request.producer_id,
        producer_epoch=request.producer_epoch,
        is_commit=request.committed,
        client_version=EPOCH_PER_TRANSACTION if is_newer else OLD_PROTOCOL,
    )
    shard = context.broker.transactions.shard_for(request.transactional_id)
    shard.run(shard.transactions.handle_end(end, reply, context.now_ms))
    return reply.map(ended)


def _shown(context: Context, code: ErrorCode) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED and context.api_version < PRODUCER_FENCED_SINCE:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
