"""The five operations of share coordinators: on this broker, or in a request to another.

Each concerns one share-partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar, cast

from coordinator.share_state.records import batches_of, stored_batches
from coordinator.share_state.state import NO_EPOCH, StateSummary, StoredState
from protocol.errors import ApiError, ErrorCode
from protocol.messages.share_group_state import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    ShareStateQuestion,
    WriteShareGroupStateRequest,
)

if TYPE_CHECKING:
    from broker.coordinators.share_state.coordinators import ShareStateCoordinators
    from broker.runtime.deferred import Deferred
    from coordinator.share_state.state import SharePartition, StateChange
    from protocol.messages.share_group_state import (
        DeleteShareGroupStateResponse,
        InitializeShareGroupStateResponse,
        ReadShareGroupStateResponse,
        ReadShareGroupStateSummaryResponse,
        WriteShareGroupStateResponse,
    )
    from protocol.schema import Request, Response

    AnyResponse = (
        DeleteShareGroupStateResponse
        | InitializeShareGroupStateResponse
        | ReadShareGroupStateResponse
        | ReadShareGroupStateSummaryResponse
        | WriteShareGroupStateResponse
    )

AnswerT = TypeVar("AnswerT")


class Operation(Protocol[AnswerT]):
    """One of them."""

    version: ClassVar[int]
    """In which the request is sent."""

    @property
    def partition(self) -> SharePartition:
        """Share-partition of the state."""

    def ask(self, coordinators: ShareStateCoordinators) -> Deferred[AnswerT]:
        """Ask a coordinator of this broker."""

    def request(self) -> Request:
        """The request for another broker's."""

    def answer(self, told: object) -> AnswerT:
        """Result of a response without an error; `told` is the part for the one partition."""


@dataclass(frozen=True, slots=True)
class Initialise:
    """Initialise a state."""

    version: ClassVar = 0
    partition: SharePartition
    state_epoch: int
    start_offset: int

    def ask(self, coordinators: ShareStateCoordinators) -> Deferred[None]:
        """Ask a coordinator of this broker."""
        return coordinators.initialise(self.partition, self.state_epoch, self.start_offset)

    def request(self) -> InitializeShareGroupStateRequest:
        """The request for another broker's."""
        group_id, topic_id, index = self.partition
        topic = InitializeShareGroupStateRequest.Topic
        wanted = topic.Partition(
            partition=index, state_epoch=self.state_epoch, start_offset=self.start_offset
        )
        return InitializeShareGroupStateRequest(
            group_id=group_id, topics=[topic(topic_id=topic_id, partitions=[wanted])]
        )

    def answer(self, told: object) -> None:
        """No result."""


@dataclass(frozen=True, slots=True)
class Read:
    """Read for a leader."""

    version: ClassVar = 0
    partition: SharePartition
    leader_epoch: int

    def ask(self, coordinators: ShareStateCoordinators) -> Deferred[StoredState]:
        """Ask a coordinator of this broker."""
        return coordinators.read(self.partition, self.leader_epoch)

    def request(self) -> ReadShareGroupStateRequest:
        """The request for another broker's."""
        group_id, topic_id, index = self.partition
        topic = ShareStateQuestion
        wanted = topic.Partition(partition=index, leader_epoch=self.leader_epoch)
        return ReadShareGroupStateRequest(
            group_id=group_id, topics=[topic(topic_id=topic_id, partitions=[wanted])]
        )

    def answer(self, told: object) -> StoredState:
        """The state."""
        state = cast("ReadShareGroupStateResponse.Result.Partition", told)
        return StoredState(state.state_epoch, state.start_offset, batches_of(state.state_batches))


@dataclass(frozen=True, slots=True)
class Write:
    """Store a change."""

    version: ClassVar = 1
    partition: SharePartition
    change: StateChange

    def ask(self, coordinators: ShareStateCoordinators) -> Deferred[None]:
        """Ask a coordinator of this broker."""
        return coordinators.write(self.partition, self.change)

    def request(self) -> WriteShareGroupStateRequest:
        """The request for another broker's."""
        group_id, topic_id, index = self.partition
        change = self.change
        topic = WriteShareGroupStateRequest.Topic
        wanted = topic.Partition(
            partition=index,
            state_epoch=change.state_epoch,
            leader_epoch=change.leader_epoch,
            start_offset=change.start_offset,
            delivery_complete_count=change.delivery_complete_count,
            state_batches=stored_batches(change.batches),
        )
        return WriteShareGroupStateRequest(
            group_id=group_id, topics=[topic(topic_id=topic_id, partitions=[wanted])]
        )

    def answer(self, told: object) -> None:
        """No result."""


@dataclass(frozen=True, slots=True)
class ReadSummary:
    """Look where a share-partition starts."""

    version: ClassVar = 1
    partition: SharePartition

    def ask(self, coordinators: ShareStateCoordinators) -> Deferred[StateSummary]:
        """Ask a coordinator of this broker."""
        return coordinators.read_summary(self.partition)

    def request(self) -> ReadShareGroupStateSummaryRequest:
        """The request for another broker's."""
        group_id, topic_id, index = self.partition
        topic = ShareStateQuestion
        wanted = topic.Partition(partition=index, leader_epoch=NO_EPOCH)
        return ReadShareGroupStateSummaryRequest(
            group_id=group_id, topics=[topic(topic_id=topic_id, partitions=[wanted])]
        )

    def answer(self, told: object) -> StateSummary:
        """The summary."""
        summary = cast("ReadShareGroupStateSummaryResponse.Result.Partition", told)
        return StateSummary(
            summary.state_epoch,
            summary.leader_epoch,
            summary.start_offset,
            summary.delivery_complete_count,
        )


@dataclass(frozen=True, slots=True)
class Delete:
    """Forget."""

    version: ClassVar = 0
    partition: SharePartition

    def ask(self, coordinators: ShareStateCoordinators) -> Deferred[None]:
        """Ask a coordinator of this broker."""
        return coordinators.delete(self.partition)

    def request(self) -> DeleteShareGroupStateRequest:
        """The request for another broker's."""
        group_id, topic_id, index = self.partition
        topic = DeleteShareGroupStateRequest.Topic
        wanted = topic.Partition(partition=index)
        return DeleteShareGroupStateRequest(
            group_id=group_id, topics=[topic(topic_id=topic_id, partitions=[wanted])]
        )

    def answer(self, told: object) -> None:
        """No result."""


def answer_of(operation: Operation[AnswerT], response: Response | None) -> AnswerT:
    """Result in the response to an operation's request; None stands for no response.

    Raises ApiError: NETWORK_EXCEPTION if there was none, or the one that it has.
    """
    if response is None:
        raise ApiError(ErrorCode.NETWORK_EXCEPTION)
    for result in cast("AnyResponse", response).results:
        for told in result.partitions:
            if (result.topic_id, told.partition) == operation.partition[1:]:
                if told.error_code:
                    raise ApiError(ErrorCode(told.error_code), told.error_message or "")
                return operation.answer(told)
    raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "the share coordinator's answer is another's")
