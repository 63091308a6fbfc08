"""Stores the in-sync sets that leaders propose (AlterPartition, KIP-497).

A change is conditional on the state that the leader knew; it raises the partition epoch and leaves
the leader epoch alone. A repeated request finds its change stored and succeeds.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from controller.context import Leadership, TopicPartition
from controller.metadata_store.store import (
    BadVersionError,
    SetData,
    StoreError,
    StoreUnavailableError,
)
from controller.znodes import PartitionState, Replicas, encode_state, state_path
from protocol.errors import ApiError, ErrorCode
from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from controller.brokers.control_requests import ControlRequestBatch
    from controller.brokers.election import FencedStore
    from controller.context import ControllerContext

logger = logging.getLogger(__name__)

ANY_EPOCH = -1
RECOVERING = 1

Wanted = AlterPartitionRequest.Topic.Partition
Answer = AlterPartitionResponse.Topic.Partition


class InSyncChanges:
    """Answers AlterPartition for one term."""

    def __init__(
        self, context: ControllerContext, store: FencedStore, batch: ControlRequestBatch
    ) -> None:
        """Share the term's context, store and batch."""
        self._context = context
        self._store = store
        self._batch = batch

    async def apply(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Store the valid changes; errors are per partition. All brokers get UpdateMetadata."""
        broker = self._context.live_brokers.get(request.broker_id)
        if broker is None or broker.epoch != request.broker_epoch:
            return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, topics=[])
        response = AlterPartitionResponse(error_code=ErrorCode.NONE, topics=[])
        wishes: list[tuple[TopicPartition, Wanted, Answer]] = []
        names = {topic_id: name for name, topic_id in self._context.topic_ids.items()}
        for topic in request.topics:
            name = names.get(topic.topic_id)
            answers = [_refusal(wanted, ErrorCode.UNKNOWN_TOPIC_ID) for wanted in topic.partitions]
            response.topics.append(_answer_topic(topic.topic_id, answers))
            if name is not None:
                wishes += (
                    (TopicPartition(name, wanted.partition_index), wanted, answer)
                    for wanted, answer in zip(topic.partitions, answers, strict=True)
                )
        await self._apply(request.broker_id, wishes)
        return response

    async def _apply(
        self, leader: int, wishes: Sequence[tuple[TopicPartition, Wanted, Answer]]
    ) -> None:
        accepted: list[tuple[TopicPartition, PartitionState, Answer]] = []
        for at, wanted, answer in wishes:
            try:
                state = self._decide(leader, at, wanted)
            except ApiError as error:
                answer.error_code = error.code
                continue
            if state is None:
                self._fill(at, answer)
            else:
                accepted.append((at, state, answer))
        leadership = self._context.leadership
        outcomes = await self._store.write_many(
            [
                [SetData(state_path(*at), encode_state(state), leadership[at].partition_epoch)]
                for at, state, _ in accepted
            ]
        )
        for (at, state, answer), outcome in zip(accepted, outcomes, strict=True):
            if isinstance(outcome, StoreError):
                answer.error_code = _code_of(at, outcome)
                continue
            leadership[at] = Leadership(state, leadership[at].partition_epoch + 1)
            self._fill(at, answer)
            self._batch.publish(self._context.live_brokers, [at])

    def _decide(self, leader: int, at: TopicPartition, wanted: Wanted) -> PartitionState | None:
        """The state to store, None if it is stored already. Raises ApiError."""
        current = self._context.leadership.get(at)
        if current is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        state = current.state
        if (
            wanted.leader_epoch > state.leader_epoch
            or wanted.partition_epoch > current.partition_epoch
        ):
            raise ApiError(ErrorCode.NOT_CONTROLLER)
        if wanted.leader_epoch < state.leader_epoch or leader != state.leader:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        in_sync = _members(wanted)
        is_recovering = wanted.leader_recovery_state == RECOVERING
        if in_sync == state.in_sync_replicas and is_recovering == state.is_recovering:
            return None
        if wanted.partition_epoch < current.partition_epoch:
            raise ApiError(ErrorCode.INVALID_UPDATE_VERSION)
        if is_recovering and (len(in_sync) > 1 or not state.is_recovering):
            raise ApiError(ErrorCode.INVALID_REQUEST)
        self._check_eligible(at, wanted, state.in_sync_replicas)
        return PartitionState(
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            in_sync_replicas=in_sync,
            controller_epoch=self._context.term.epoch,
            is_recovering=is_recovering,
        )

    def _check_eligible(self, at: TopicPartition, wanted: Wanted, known: Replicas) -> None:
        """Raise ApiError for members that restarted (KIP-903), died, or are shutting down."""
        replicas = self._context.replicas_of(at)
        epochs = {one.broker_id: one.broker_epoch for one in wanted.new_isr_with_epochs}
        for one in _members(wanted):
            broker = self._context.live_brokers.get(one)
            is_alive = broker is not None and one not in self._context.leaving
            epoch = epochs.get(one, ANY_EPOCH)
            if (
                one not in replicas
                or not (is_alive or one in known)
                or (broker is not None and epoch not in (ANY_EPOCH, broker.epoch))
            ):
                raise ApiError(ErrorCode.INELIGIBLE_REPLICA)

    def _fill(self, at: TopicPartition, answer: Answer) -> None:
        current = self._context.leadership[at]
        answer.error_code = ErrorCode.NONE
        answer.leader_id = current.state.leader
        answer.leader_epoch = current.state.leader_epoch
        answer.isr = list(current.state.in_sync_replicas)
        answer.leader_recovery_state = int(current.state.is_recovering)
        answer.partition_epoch = current.partition_epoch


def _members(wanted: Wanted) -> tuple[int, ...]:
    if wanted.new_isr_with_epochs:
        return tuple(one.broker_id for one in wanted.new_isr_with_epochs)
    return tuple(wanted.new_isr)


def _refusal(wanted: Wanted, code: ErrorCode) -> Answer:
    return Answer(
        partition_index=wanted.partition_index,
        error_code=code,
        leader_id=0,
        leader_epoch=0,
        isr=[],
        partition_epoch=0,
    )


def _answer_topic(topic_id: UUID, answers: list[Answer]) -> AlterPartitionResponse.Topic:
    return AlterPartitionResponse.Topic(topic_id=topic_id, partitions=answers)


def _code_of(at: TopicPartition, outcome: StoreError) -> ErrorCode:
    if isinstance(outcome, StoreUnavailableError):
        raise outcome
    if isinstance(outcome, BadVersionError):
        return ErrorCode.INVALID_UPDATE_VERSION
    logger.error("the in-sync replicas of %s-%d cannot be stored: %s", *at, outcome)
    return ErrorCode.UNKNOWN_SERVER_ERROR
