"""Moves partitions between states: stores the decision, then informs the brokers.

A decision counts once it is in the store, under the term's fence and at the version that was read;
a partition whose write is refused keeps its phase.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from controller.context import ControllerContext, Leadership, TopicPartition
from controller.metadata_store.store import (
    Create,
    NodeExistsError,
    Operation,
    SetData,
    StoreError,
    StoreUnavailableError,
)
from controller.partitions.leader_selection import Choice, initial_leader, leader_when_offline
from controller.partitions.states import PARTITION_SOURCES, PartitionPhase
from controller.znodes import (
    NO_LEADER,
    PartitionState,
    encode_state,
    partition_path,
    partitions_path,
    state_path,
)
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from controller.brokers.control_requests import ControlRequestBatch
    from controller.brokers.election import FencedStore
    from controller.ports import Slices
    from controller.znodes import Replicas

logger = logging.getLogger(__name__)

STATES_KEPT = 4096

Election = Callable[[TopicPartition, "Replicas", PartitionState], Choice | None]
"""Chooses a leader from a partition's assignment and state."""


class PartitionStateMachine:
    """The partition state machine of one term."""

    def __init__(
        self,
        context: ControllerContext,
        store: FencedStore,
        batch: ControlRequestBatch,
        allow_unclean: Callable[[set[str]], Awaitable[set[str]]],
        slices: Callable[[], Slices],
    ) -> None:
        """Share the term's context, store and batch.

        `allow_unclean` returns which of some topics enable unclean leader election. The controller
        handles one event at a time: its context does not change between two slices.
        """
        self._slices = slices
        self._allow_unclean = allow_unclean
        self._context = context
        self._store = store
        self._batch = batch

    async def start(self) -> None:
        """Give every known partition its first phase."""
        context = self._context
        async for at in self._slices().each(context.partitions()):
            leadership = context.leadership.get(at)
            if leadership is None:
                phase = PartitionPhase.NEW
            elif leadership.state.leader in context.live_brokers:
                phase = PartitionPhase.ONLINE
            else:
                phase = PartitionPhase.OFFLINE
            context.partition_phases[at] = phase

    async def enter(self, partitions: Iterable[TopicPartition], phase: PartitionPhase) -> None:
        """Enter a phase that needs no election: NEW, OFFLINE or NON_EXISTENT."""
        async for at in self._slices().each(partitions):
            if not self._may_enter(at, phase):
                continue
            if phase is PartitionPhase.NON_EXISTENT:
                self._context.partition_phases.pop(at, None)
            else:
                self._context.partition_phases[at] = phase

    async def bring_online(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Give a leader to those partitions, or to all, that are NEW or OFFLINE."""
        phases = self._context.partition_phases
        new: list[TopicPartition] = []
        offline: list[TopicPartition] = []
        async for at in self._slices().each(phases if partitions is None else partitions):
            if at.topic in self._context.deleting:
                continue
            phase = phases.get(at)
            if phase is PartitionPhase.NEW:
                new.append(at)
            elif phase is PartitionPhase.OFFLINE:
                offline.append(at)
        await self._initialise(new)
        await self._elect_offline(offline)

    async def _initialise(self, partitions: Sequence[TopicPartition]) -> None:
        decisions: list[tuple[TopicPartition, PartitionState]] = []
        async for at in self._slices().each(partitions):
            choice = initial_leader(self._context.replicas_of(at), self._context.live_brokers)
            if choice is None:
                logger.error("%s-%d is offline: no live replica", *at)
                continue
            decisions.append((at, self._state(choice, leader_epoch=0)))
        await self._create_parents({at.topic for at, _ in decisions})
        slices = self._slices()
        writes: list[list[Operation]] = [
            [Create(partition_path(*at)), Create(state_path(*at), encode_state(state))]
            async for at, state in slices.each(decisions)
        ]
        outcomes = await self._store.write_many(writes)
        async for (at, state), outcome in slices.each(zip(decisions, outcomes, strict=True)):
            if _refused(at, outcome):
                continue
            self._context.leadership[at] = Leadership(state, 0)
            self._context.partition_phases[at] = PartitionPhase.ONLINE
            self._batch.lead_or_follow(state.in_sync_replicas, at, is_new=True)

    async def _create_parents(self, topics: set[str]) -> None:
        outcomes = await self._store.write_many(
            [[Create(partitions_path(topic))] for topic in sorted(topics)]
        )
        for outcome in outcomes:
            if isinstance(outcome, StoreUnavailableError):
                raise outcome
            if isinstance(outcome, StoreError) and not isinstance(outcome, NodeExistsError):
                logger.warning("cannot prepare a topic's partitions: %s", outcome)

    async def elect(
        self, partitions: Iterable[TopicPartition], choose: Election
    ) -> dict[TopicPartition, ErrorCode]:
        """Give partitions another leader, or another in-sync set, by one kind of election.

        Returns an error code for each: ELECTION_NOT_NEEDED if nothing would change,
        ELIGIBLE_LEADERS_NOT_AVAILABLE if there is no candidate, INVALID_UPDATE_VERSION after a
        concurrent change of the state.
        """
        results: dict[TopicPartition, ErrorCode] = {}
        decisions: list[tuple[TopicPartition, PartitionState]] = []
        async for at in self._slices().each(partitions):
            leadership = self._context.leadership.get(at)
            if leadership is None:
                results[at] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            choice = choose(at, self._context.replicas_of(at), leadership.state)
            results[at] = _verdict(choice, leadership.state)
            if choice is not None and results[at] is ErrorCode.NONE:
                decisions.append((at, self._state(choice, leadership.state.leader_epoch + 1)))
        stored = await self._change(decisions)
        async for at, _ in self._slices().each(decisions):
            if at not in stored:
                results[at] = ErrorCode.INVALID_UPDATE_VERSION
                continue
            is_led = self._context.leadership[at].state.leader in self._context.live_brokers
            self._context.partition_phases[at] = (
                PartitionPhase.ONLINE if is_led else PartitionPhase.OFFLINE
            )
            self._batch.lead_or_follow(self._context.replicas_of(at), at, is_new=False)
        return results

    async def renew(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin a new leader epoch under the same leader, with LeaderAndIsr to all replicas."""
        leadership = self._context.leadership
        slices = self._slices()
        decisions = []
        async for at in slices.each(partitions):
            state = leadership[at].state
            choice = Choice(state.leader, state.in_sync_replicas, state.is_recovering)
            decisions.append((at, self._state(choice, state.leader_epoch + 1)))
        async for at in slices.each(await self._change(decisions)):
            self._batch.lead_or_follow(self._context.replicas_of(at), at, is_new=False)

    async def take_offline(self, partitions: Sequence[TopicPartition]) -> None:
        """Store that these partitions have no leader; the in-sync replicas stay."""
        decisions: list[tuple[TopicPartition, PartitionState]] = []
        async for at in self._slices().each(partitions):
            leadership = self._context.leadership.get(at)
            if leadership is None or leadership.state.leader == NO_LEADER:
                continue
            choice = Choice(NO_LEADER, leadership.state.in_sync_replicas)
            decisions.append((at, self._state(choice, leadership.state.leader_epoch + 1)))
        await self._change(decisions)

    async def _change(
        self, decisions: Sequence[tuple[TopicPartition, PartitionState]]
    ) -> set[TopicPartition]:
        """Store new states over the known ones; returns where that succeeded."""
        leadership = self._context.leadership
        slices = self._slices()
        writes: list[list[Operation]] = [
            [SetData(state_path(*at), encode_state(state), leadership[at].partition_epoch)]
            async for at, state in slices.each(decisions)
        ]
        outcomes = await self._store.write_many(writes)
        stored: set[TopicPartition] = set()
        async for (at, state), outcome in slices.each(zip(decisions, outcomes, strict=True)):
            if not _refused(at, outcome):
                leadership[at] = Leadership(state, leadership[at].partition_epoch + 1)
                stored.add(at)
        return stored

    async def _elect_offline(self, partitions: Sequence[TopicPartition]) -> None:
        usable = self._context.usable_brokers
        unclean = await self._allow_unclean({at.topic for at in partitions})

        def choose(at: TopicPartition, replicas: Replicas, state: PartitionState) -> Choice | None:
            return leader_when_offline(
                replicas, state.in_sync_replicas, usable(at), allow_unclean=at.topic in unclean
            )

        codes = await self.elect(partitions, choose)
        async for at, code in self._slices().each(codes.items()):
            if code is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE:
                in_sync = self._context.leadership[at].state.in_sync_replicas
                logger.error(
                    "%s-%d stays offline: no live replica in the ISR %s",
                    *at,
                    list(in_sync),
                )

    def _state(self, choice: Choice, leader_epoch: int) -> PartitionState:
        return _shared(
            PartitionState(
                leader=choice.leader,
                leader_epoch=leader_epoch,
                in_sync_replicas=choice.in_sync_replicas,
                controller_epoch=self._context.term.epoch,
                is_recovering=choice.is_unclean,
            )
        )

    def _may_enter(self, at: TopicPartition, phase: PartitionPhase) -> bool:
        current = self._context.partition_phases.get(at, PartitionPhase.NON_EXISTENT)
        if current in PARTITION_SOURCES[phase]:
            return True
        logger.error("%s-%d cannot go from %s to %s", *at, current.value, phase.value)
        return False


@lru_cache(maxsize=STATES_KEPT)
def _shared(state: PartitionState) -> PartitionState:
    """One object for all partitions in the same state: of thousands, few are in another one."""
    return state


def _verdict(choice: Choice | None, state: PartitionState) -> ErrorCode:
    if choice is None:
        return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    if (choice.leader, choice.in_sync_replicas) == (state.leader, state.in_sync_replicas):
        return ErrorCode.ELECTION_NOT_NEEDED
    return ErrorCode.NONE


def _refused(at: TopicPartition, outcome: object) -> bool:
    if isinstance(outcome, StoreUnavailableError):
        raise outcome
    if isinstance(outcome, StoreError):
        logger.error("the state of %s-%d cannot be stored: %s", *at, outcome)
        return True
    return False
