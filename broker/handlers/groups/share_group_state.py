"""The state of share groups (KIP-932), for brokers that lead the partitions they consume.

InitializeShareGroupState 0, ReadShareGroupState 0, WriteShareGroupState 0-1 (v1 counts complete
deliveries, KIP-1226), DeleteShareGroupState 0, ReadShareGroupStateSummary 0-1 (the same). Errors
are per partition: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, FENCED_LEADER_EPOCH,
FENCED_STATE_EPOCH, INVALID_REQUEST and UNKNOWN_TOPIC_OR_PARTITION. A request that names no group,
no topic, or a topic without partitions gets an answer without results, as in Apache Kafka.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_cluster
from broker.requests.steps import in_steps
from broker.runtime.countdown import Countdown
from coordinator.share_state.state import SharePartition, StateBatch, StateChange
from protocol.acl_types import AclOperation
from protocol.errors import ApiError, ErrorCode
from protocol.messages.share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.runtime.deferred import Deferred
    from coordinator.share_state.state import StateSummary, StoredState
    from protocol.schema import Response

    StateRequest = (
        DeleteShareGroupStateRequest
        | InitializeShareGroupStateRequest
        | ReadShareGroupStateRequest
        | ReadShareGroupStateSummaryRequest
        | WriteShareGroupStateRequest
    )

logger = logging.getLogger(__name__)

ResponseT = TypeVar("ResponseT", bound="Response")
AnswerT = TypeVar("AnswerT")


class _Told(Protocol):
    """What all five answers have for a partition."""

    error_code: int
    error_message: str | None


def _note_nothing(_: object) -> None:
    """All there is to say has been said."""


class _Answers(Generic[ResponseT]):
    """One response, given when the answers for all its partitions are there."""

    def __init__(self, context: Context, response: ResponseT) -> None:
        self._may = is_allowed_on_cluster(context, AclOperation.CLUSTER_ACTION)
        self._gather = Countdown(lambda: response)

    def expect(
        self,
        told: _Told,
        ask: Callable[[], Deferred[AnswerT]],
        note: Callable[[AnswerT], object] = _note_nothing,
    ) -> None:
        """Ask, and `note` the answer; or have `told` say the error."""
        if not self._may:
            _refuse(told, ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
            return
        arrived = self._gather.expect(_note_nothing)

        def answered(answer: AnswerT) -> None:
            note(answer)
            arrived(ErrorCode.NONE)

        def failed(error: Exception) -> None:
            _refuse(told, error)
            arrived(ErrorCode.NONE)

        ask().then(answered, failed)

    def complete(self) -> Deferred[ResponseT]:
        """All has been asked."""
        self._gather.close()
        return self._gather.deferred


def _refuse(told: _Told, error: Exception) -> None:
    if not isinstance(error, ApiError):
        logger.error("share coordinator failed", exc_info=error)
        error = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    told.error_code = error.code
    told.error_message = error.message


def _is_answerable(request: StateRequest) -> bool:
    is_named = bool(request.group_id and request.topics)
    return is_named and all(topic.partitions for topic in request.topics)


@handles(InitializeShareGroupStateRequest, versions="0")
@in_steps
def initialize_share_group_state(
    context: Context, request: InitializeShareGroupStateRequest
) -> Steps[Deferred[InitializeShareGroupStateResponse]]:
    """Begin states anew."""
    coordinators = context.broker.share_coordinators
    response = InitializeShareGroupStateResponse(results=[])
    answers = _Answers(context, response)
    for topic in request.topics if _is_answerable(request) else ():
        result = response.Result(topic_id=topic.topic_id, partitions=[])
        response.results.append(result)
        for each in topic.partitions:
            told = result.Partition(partition=each.partition, error_code=ErrorCode.NONE)
            result.partitions.append(told)
            key = SharePartition(request.group_id, topic.topic_id, each.partition)
            answers.expect(
                told, partial(coordinators.initialise, key, each.state_epoch, each.start_offset)
            )
            yield
    return answers.complete()


@handles(ReadShareGroupStateRequest, versions="0")
@in_steps
def read_share_group_state(
    context: Context, request: ReadShareGroupStateRequest
) -> Steps[Deferred[ReadShareGroupStateResponse]]:
    """Read states, for leaders."""
    coordinators = context.broker.share_coordinators
    response = ReadShareGroupStateResponse(results=[])
    answers = _Answers(context, response)
    for topic in request.topics if _is_answerable(request) else ():
        result = response.Result(topic_id=topic.topic_id, partitions=[])
        response.results.append(result)
        for each in topic.partitions:
            told = result.Partition(
                partition=each.partition,
                error_code=ErrorCode.NONE,
                state_epoch=0,
                start_offset=0,
                state_batches=[],
            )
            result.partitions.append(told)
            key = SharePartition(request.group_id, topic.topic_id, each.partition)
            read = partial(coordinators.read, key, each.leader_epoch)
            answers.expect(told, read, partial(_tell_state, told))
            yield
    return answers.complete()


def _tell_state(told: ReadShareGroupStateResponse.Result.Partition, state: StoredState) -> None:
    told.state_epoch = state.state_epoch
    told.start_offset = state.start_offset
    told.state_batches = [told.StateBatch(**batch._asdict()) for batch in state.batches]


@handles(WriteShareGroupStateRequest, versions="0-1")
@in_steps
def write_share_group_state(
    context: Context, request: WriteShareGroupStateRequest
) -> Steps[Deferred[WriteShareGroupStateResponse]]:
    """Store changes."""
    coordinators = context.broker.share_coordinators
    response = WriteShareGroupStateResponse(results=[])
    answers = _Answers(context, response)
    for topic in request.topics if _is_answerable(request) else ():
        result = response.Result(topic_id=topic.topic_id, partitions=[])
        response.results.append(result)
        for each in topic.partitions:
            told = result.Partition(partition=each.partition, error_code=ErrorCode.NONE)
            result.partitions.append(told)
            key = SharePartition(request.group_id, topic.topic_id, each.partition)
            answers.expect(told, partial(coordinators.write, key, _change(each)))
            yield
    return answers.complete()


def _change(wanted: WriteShareGroupStateRequest.Topic.Partition) -> StateChange:
    return StateChange(
        state_epoch=wanted.state_epoch,
        leader_epoch=wanted.leader_epoch,
        start_offset=wanted.start_offset,
        delivery_complete_count=wanted.delivery_complete_count,
        batches=tuple(
            StateBatch(
                each.first_offset, each.last_offset, each.delivery_state, each.delivery_count
            )
            for each in wanted.state_batches
        ),
    )


@handles(DeleteShareGroupStateRequest, versions="0")
@in_steps
def delete_share_group_state(
    context: Context, request: DeleteShareGroupStateRequest
) -> Steps[Deferred[DeleteShareGroupStateResponse]]:
    """Forget states."""
    coordinators = context.broker.share_coordinators
    response = DeleteShareGroupStateResponse(results=[])
    answers = _Answers(context, response)
    for topic in request.topics if _is_answerable(request) else ():
        result = response.Result(topic_id=topic.topic_id, partitions=[])
        response.results.append(result)
        for each in topic.partitions:
            told = result.Partition(partition=each.partition, error_code=ErrorCode.NONE)
            result.partitions.append(told)
            key = SharePartition(request.group_id, topic.topic_id, each.partition)
            answers.expect(told, partial(coordinators.delete, key))
            yield
    return answers.complete()


@handles(ReadShareGroupStateSummaryRequest, versions="0-1")
@in_steps
def read_share_group_state_summary(
    context: Context, request: ReadShareGroupStateSummaryRequest
) -> Steps[Deferred[ReadShareGroupStateSummaryResponse]]:
    """Read where share-partitions start."""
    coordinators = context.broker.share_coordinators
    response = ReadShareGroupStateSummaryResponse(results=[])
    answers = _Answers(context, response)
    for topic in request.topics if _is_answerable(request) else ():
        result = response.Result(topic_id=topic.topic_id, partitions=[])
        response.results.append(result)
        for each in topic.partitions:
            told = result.Partition(
                partition=each.partition,
                error_code=ErrorCode.NONE,
                state_epoch=0,
                leader_epoch=0,
                start_offset=0,
            )
            result.partitions.append(told)
            key = SharePartition(request.group_id, topic.topic_id, each.partition)
            read = partial(coordinators.read_summary, key)
            answers.expect(told, read, partial(_tell_summary, told))
            yield
    return answers.complete()


def _tell_summary(
    told: ReadShareGroupStateSummaryResponse.Result.Partition, summary: StateSummary
) -> None:
    told.state_epoch = summary.state_epoch
    told.leader_epoch = summary.leader_epoch
    told.start_offset = summary.start_offset
    told.delivery_complete_count = summary.delivery_complete_count
