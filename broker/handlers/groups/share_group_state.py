"""The state of share groups (KIP-932), for brokers that lead the partitions they consume.

InitializeShareGroupState 0, ReadShareGroupState 0, WriteShareGroupState 0-1 (v1 counts complete
deliveries, KIP-1226), DeleteShareGroupState 0, ReadShareGroupStateSummary 0-1 (the same). Errors
are per partition: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, FENCED_LEADER_EPOCH,
FENCED_STATE_EPOCH, INVALID_REQUEST and UNKNOWN_TOPIC_OR_PARTITION. A request that names no group,
no topic, or a topic without partitions gets an answer without results, as in Apache Kafka. The
state of a partition is read once: a repetition gets INVALID_REQUEST.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from broker.requests.api_table import handles
from broker.requests.authorization import is_allowed_on_cluster
from broker.requests.steps import in_appending_steps, in_steps
from broker.runtime.countdown import Countdown
from coordinator.share_state.records import batches_of, stored_batches
from coordinator.share_state.state import SharePartition, StateChange
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
    ShareStateOutcome,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from uuid import UUID

    from broker.requests.context import Context
    from broker.requests.steps import Steps
    from broker.runtime.deferred import Deferred
    from coordinator.share_state.state import StateSummary, StoredState
    from protocol.schema import Response

logger = logging.getLogger(__name__)

ResponseT = TypeVar("ResponseT", bound="Response")
AnswerT = TypeVar("AnswerT")
ResultT = TypeVar("ResultT")
ToldT = TypeVar("ToldT")


class _Asked(Protocol):
    """Fields of a partition common to all five requests."""

    partition: int


AskedT = TypeVar("AskedT", bound=_Asked)
AskedT_co = TypeVar("AskedT_co", bound=_Asked, covariant=True)


class _StateTopic(Protocol[AskedT_co]):
    """One topic of any of the five requests."""

    topic_id: UUID

    @property
    def partitions(self) -> Sequence[AskedT_co]: ...


class _StateRequest(Protocol[AskedT_co]):
    """Any of the five requests."""

    group_id: str

    @property
    def topics(self) -> Sequence[_StateTopic[AskedT_co]]: ...


class _Told(Protocol):
    """Fields of a partition common to all five responses."""

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
        """Ask, and `note` the answer; or set the error in `told`."""
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


def _each(
    request: _StateRequest[AskedT],
    results: list[ResultT],
    make_result: Callable[..., ResultT],
    make_told: Callable[[int], ToldT],
) -> Iterator[tuple[SharePartition, AskedT, ToldT]]:
    """Each partition of a request, with its data and its place in the results."""
    if not request.group_id or not all(topic.partitions for topic in request.topics):
        return
    for topic in request.topics:
        told: list[ToldT] = []
        results.append(make_result(topic_id=topic.topic_id, partitions=told))
        for each in topic.partitions:
            told.append(make_told(each.partition))
            yield SharePartition(request.group_id, topic.topic_id, each.partition), each, told[-1]


def _outcome(partition: int) -> ShareStateOutcome.Partition:
    return ShareStateOutcome.Partition(partition=partition, error_code=ErrorCode.NONE)


@handles(InitializeShareGroupStateRequest, versions="0")
@in_appending_steps
def initialize_share_group_state(
    context: Context, request: InitializeShareGroupStateRequest
) -> Steps[Deferred[InitializeShareGroupStateResponse]]:
    """Initialise share-partition states."""
    coordinators = context.broker.share_coordinators
    response = InitializeShareGroupStateResponse(results=[])
    answers = _Answers(context, response)
    for key, each, told in _each(request, response.results, ShareStateOutcome, _outcome):
        begin = partial(coordinators.initialise, key, each.state_epoch, each.start_offset)
        answers.expect(told, begin)
        yield
    return answers.complete()


@handles(ReadShareGroupStateRequest, versions="0")
@in_appending_steps
def read_share_group_state(
    context: Context, request: ReadShareGroupStateRequest
) -> Steps[Deferred[ReadShareGroupStateResponse]]:
    """Read states, for leaders."""
    coordinators = context.broker.share_coordinators
    response = ReadShareGroupStateResponse(results=[])
    answers = _Answers(context, response)
    keys: set[SharePartition] = set()
    for key, each, told in _each(request, response.results, response.Result, _no_state):
        if key in keys:
            _refuse(told, ApiError(ErrorCode.INVALID_REQUEST, "partition is listed twice"))
            yield
            continue
        keys.add(key)
        read = partial(coordinators.read, key, each.leader_epoch)
        answers.expect(told, read, partial(_tell_state, told))
        yield
    return answers.complete()


def _no_state(partition: int) -> ReadShareGroupStateResponse.Result.Partition:
    return ReadShareGroupStateResponse.Result.Partition(
        partition=partition,
        error_code=ErrorCode.NONE,
        state_epoch=0,
        start_offset=0,
        state_batches=[],
    )


def _tell_state(told: ReadShareGroupStateResponse.Result.Partition, state: StoredState) -> None:
    told.state_epoch = state.state_epoch
    told.start_offset = state.start_offset
    told.state_batches = stored_batches(state.batches)


@handles(WriteShareGroupStateRequest, versions="0-1")
@in_appending_steps
def write_share_group_state(
    context: Context, request: WriteShareGroupStateRequest
) -> Steps[Deferred[WriteShareGroupStateResponse]]:
    """Store changes."""
    coordinators = context.broker.share_coordinators
    response = WriteShareGroupStateResponse(results=[])
    answers = _Answers(context, response)
    for key, each, told in _each(request, response.results, ShareStateOutcome, _outcome):
        answers.expect(told, partial(coordinators.write, key, _change(each)))
        yield
    return answers.complete()


def _change(wanted: WriteShareGroupStateRequest.Topic.Partition) -> StateChange:
    return StateChange(
        state_epoch=wanted.state_epoch,
        leader_epoch=wanted.leader_epoch,
        start_offset=wanted.start_offset,
        delivery_complete_count=wanted.delivery_complete_count,
        batches=batches_of(wanted.state_batches),
    )


@handles(DeleteShareGroupStateRequest, versions="0")
@in_appending_steps
def delete_share_group_state(
    context: Context, request: DeleteShareGroupStateRequest
) -> Steps[Deferred[DeleteShareGroupStateResponse]]:
    """Forget states."""
    coordinators = context.broker.share_coordinators
    response = DeleteShareGroupStateResponse(results=[])
    answers = _Answers(context, response)
    for key, _, told in _each(request, response.results, ShareStateOutcome, _outcome):
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
    for key, _, told in _each(request, response.results, response.Result, _no_summary):
        read = partial(coordinators.read_summary, key)
        answers.expect(told, read, partial(_tell_summary, told))
        yield
    return answers.complete()


def _no_summary(partition: int) -> ReadShareGroupStateSummaryResponse.Result.Partition:
    return ReadShareGroupStateSummaryResponse.Result.Partition(
        partition=partition,
        error_code=ErrorCode.NONE,
        state_epoch=0,
        leader_epoch=0,
        start_offset=0,
    )


def _tell_summary(
    told: ReadShareGroupStateSummaryResponse.Result.Partition, summary: StateSummary
) -> None:
    told.state_epoch = summary.state_epoch
    told.leader_epoch = summary.leader_epoch
    told.start_offset = summary.start_offset
    told.delivery_complete_count = summary.delivery_complete_count
