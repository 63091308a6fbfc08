"""OffsetDelete: delete a group's positions, in topics that no member of it consumes.

Version 0. A request with many partitions is carried out in pieces, between which others are served;
duplicates in later pieces are deleted already.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

from broker.coordinators.shard_runtime import Stage
from broker.handlers.groups.commit_pieces import are_many, in_pieces
from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_group, is_allowed_on_topic
from broker.requests.steps import in_slices, in_steps
from broker.runtime.deferred import Deferred
from coordinator.storage_errors import storage_error
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.offset_fetch import OffsetDeleteRequest, OffsetDeleteResponse

if TYPE_CHECKING:
    from collections.abc import Container

    from broker.coordinators.group_shard_runtime import GroupShardRuntime
    from broker.requests.context import Context
    from broker.requests.steps import Steps

Topic = OffsetDeleteRequest.Topic
Answer = OffsetDeleteResponse.Topic.Partition
Outcome: TypeAlias = "OffsetDeleteResponse | Deferred[OffsetDeleteResponse]"

ANY_PARTITION: Final = range(-(2**31), 2**31)


@handles(OffsetDeleteRequest, versions="0")
def offset_delete(context: Context, request: OffsetDeleteRequest) -> Outcome:
    """Answered once all is committed; errors are per partition, or of the whole group."""
    if not is_allowed_on_group(context, AclOperation.DELETE, request.group_id):
        raise ApiError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if are_many(request.topics):
        return in_slices(context, _delete(context, request))
    return _delete_at_once(context, request)


def _delete(context: Context, request: OffsetDeleteRequest) -> Steps[Outcome]:
    shard = context.broker.groups.shard_for_member(request.group_id)
    readable: set[str] = set()
    for topic in request.topics:
        if is_allowed_on_topic(context, AclOperation.READ, topic.name):
            readable.add(topic.name)
        yield
    codes: dict[tuple[str, int], int] = {}
    failure = yield from _forget(shard, request, readable, codes)
    if failure is not ErrorCode.NONE:
        return OffsetDeleteResponse(error_code=failure, topics=[])
    response = yield from _answers(context, request, readable, codes)
    answer: Deferred[OffsetDeleteResponse] = Deferred()

    def committed(failure: ErrorCode) -> None:
        code = storage_error(failure)
        is_stored = code is ErrorCode.NONE
        answer.complete(response if is_stored else OffsetDeleteResponse(error_code=code, topics=[]))

    shard.when_committed(answer.guard(committed))
    return answer


_delete_at_once = in_steps(_delete)


def _forget(
    shard: GroupShardRuntime,
    request: OffsetDeleteRequest,
    readable: Container[str],
    codes: dict[tuple[str, int], int],
) -> Steps[ErrorCode]:
    """Append tombstones, and note what became of each partition; an error is that of the group."""
    pieces = in_pieces(request.topics, partial(_deletable_in, readable))
    for number, piece in enumerate(chain([[]], pieces)):
        yield
        if not piece and number:
            continue
        if shard.stage is not Stage.ACTIVE:
            return ErrorCode.NOT_COORDINATOR
        some = OffsetDeleteRequest(
            group_id=request.group_id,
            topics=[
                Topic(name=topic.name, partitions=_first(topic.name, partitions, codes))
                for topic, partitions in piece
            ],
        )
        value, tombstones = shard.groups.handle_offset_delete(some)
        if value.error_code == ErrorCode.GROUP_ID_NOT_FOUND and number:
            break  # it went with its last position
        if value.error_code:
            return ErrorCode(value.error_code)
        failure = shard.forget(tombstones)
        if failure is not ErrorCode.NONE:
            return storage_error(failure)
        for topic in value.topics:
            for each in topic.partitions:
                codes[topic.name, each.partition_index] = each.error_code
    return ErrorCode.NONE


def _first(
    name: str, partitions: list[Topic.Partition], codes: dict[tuple[str, int], int]
) -> list[Topic.Partition]:
    """Partitions named for the first time; duplicates would be counted as deleted twice."""
    first = []
    for each in partitions:
        place = name, each.partition_index
        if place not in codes:
            codes[place] = ErrorCode.NONE
            first.append(each)
    return first


def _deletable_in(readable: Container[str], topic: Topic) -> Container[int]:
    return ANY_PARTITION if topic.name in readable else ()


def _answers(
    context: Context,
    request: OffsetDeleteRequest,
    readable: Container[str],
    codes: dict[tuple[str, int], int],
) -> Steps[OffsetDeleteResponse]:
    """In the order of the request, but that topics that the client may not READ come last."""
    topics: list[OffsetDeleteResponse.Topic] = []
    refused: list[OffsetDeleteResponse.Topic] = []
    for topic in request.topics:
        may = topic.name in readable
        answer = OffsetDeleteResponse.Topic(name=topic.name, partitions=[])
        (topics if may else refused).append(answer)
        for each in topic.partitions:
            index = each.partition_index
            code = codes.get((topic.name, index), ErrorCode.NONE)
            if not may:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif context.broker.metadata.partition(topic.name, index) is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            answer.partitions.append(Answer(partition_index=index, error_code=code))
            yield
        yield
    return OffsetDeleteResponse(error_code=ErrorCode.NONE, topics=topics + refused)
