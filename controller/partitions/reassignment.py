"""Moving partitions to other replicas (KIP-455).

While a partition moves, its assignment is the target replicas followed by those to be removed. The
new ones catch up like any follower; once all target replicas are in sync, one of them leads, the
others are removed, and the assignment becomes the target. That is stored last, so that the next
controller can continue after a failure in between.

Moves are independent: one that fails is logged and retried, and delays no other. Those of topics in
deletion stop, and end with their topics.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from controller.brokers.broker_changes import take_out
from controller.brokers.election import ControllerMovedError
from controller.context import Reassignment, Replica, TopicPartition
from controller.metadata_store.store import BadVersionError, SetData, StoreError
from controller.partitions.leader_selection import Choice, leader_when_moving
from controller.partitions.states import ReplicaPhase
from controller.znodes import TopicAssignment, decode_topic, encode_topic, topic_path
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from controller.active_controller import ActiveController
    from controller.metadata_store.store import MetadataStore
    from controller.znodes import PartitionState, Replicas

logger = logging.getLogger(__name__)

WRITE_ATTEMPTS = 5
"""Number of attempts of a conditional write against other writers. Fixed: those are few."""


def _ignore() -> None:
    return


@dataclass(slots=True)
class Reassignments:
    """The moves of one term."""

    active: ActiveController
    reader: MetadataStore
    on_finish: Callable[[], None] = _ignore
    """Called when a move has ended."""
    on_progress: Callable[[], None] = _ignore
    """Called when `advance_all` has something to do."""
    _failed: set[TopicPartition] = field(default_factory=set)
    """Moves whose last step failed."""

    async def alter(self, at: TopicPartition, target: Replicas | None) -> None:
        """Begin or redirect a move, or with None return to its origin. Raises ApiError."""
        context = self.active.context
        if not self._may_go_on(at):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        current = context.reassigning.get(at)
        if target is None:
            if current is None:
                raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
            target = current.origin
        else:
            _check(target, context.live_brokers)
        before = context.replicas_of(at)
        move = plan(before if current is None else current.origin, target)
        await self._store(at, move)
        context.assignments[at.topic][at.partition] = move.replicas
        context.reassigning[at] = move
        logger.info(
            "%s-%d: reassignment from %s to %s started", *at, list(move.origin), list(target)
        )
        await self._remove([Replica(at, one) for one in before if one not in move.replicas])
        await self._go_on([at])

    async def advance(self, at: TopicPartition) -> None:
        """Do the next step of a move: create the new replicas, or finish."""
        if self.is_caught_up(at):
            await self._finish(at)
            return
        active = self.active
        context = active.context
        move = context.reassigning[at]
        new = [
            Replica(at, one)
            for one in move.adding
            if Replica(at, one) not in context.replica_phases
        ]
        await active.replicas.enter(new, ReplicaPhase.NEW)
        await active.partitions.renew([at])
        active.batch.lead_or_follow([one.broker_id for one in new], at, is_new=True)

    def look_for_finished(self) -> None:
        """Finish the moves that can be, after a change of in-sync sets."""
        moves = self.active.context.reassigning
        if any(self._may_go_on(at) and self.is_caught_up(at) for at in moves):
            self.on_progress()

    async def advance_all(self) -> Exception | None:
        """Finish the moves whose new replicas are all in sync, and retry those that failed.

        Returns the last error.
        """
        moves = list(self.active.context.reassigning)
        self._failed.intersection_update(moves)
        return await self._advance_each(
            at for at in moves if at in self._failed or self.is_caught_up(at)
        )

    async def resume(self, arrived: Collection[int] | None = None) -> None:
        """Continue all moves, or those that waited for brokers that have returned."""
        moves = list(self.active.context.reassigning.items())
        await self._go_on(
            at
            for at, move in moves
            if arrived is None or not move.adding or set(move.adding) & set(arrived)
        )

    async def _go_on(self, moves: Iterable[TopicPartition]) -> None:
        """Do the next step of each; those that fail are retried."""
        if await self._advance_each(moves) is not None:
            self.on_progress()

    async def _advance_each(self, moves: Iterable[TopicPartition]) -> Exception | None:
        """Do the next step of each; returns the last error."""
        failure = None
        for at in moves:
            if not self._may_go_on(at):
                continue
            try:
                await self.advance(at)
            except ControllerMovedError:
                raise
            except Exception as error:  # noqa: BLE001 - logged, and returned
                logger.error("%s-%d: reassignment failed: %r", *at, error)  # noqa: TRY400
                self._failed.add(at)
                failure = error
            else:
                self._failed.discard(at)
        return failure

    def is_caught_up(self, at: TopicPartition) -> bool:
        """Return whether all target replicas are in sync."""
        leadership = self.active.context.leadership.get(at)
        wanted = self.active.context.reassigning[at].target
        return leadership is not None and set(wanted) <= set(leadership.state.in_sync_replicas)

    def _may_go_on(self, at: TopicPartition) -> bool:
        context = self.active.context
        return at in context.leadership and at.topic not in context.deleting

    async def _finish(self, at: TopicPartition) -> None:
        context = self.active.context
        move = context.reassigning.pop(at)
        try:
            await self._settle(at, move)
        except BaseException:
            context.reassigning[at] = move
            raise
        logger.info("%s-%d: reassignment to %s completed", *at, list(move.target))
        self.on_finish()

    async def _settle(self, at: TopicPartition, move: Reassignment) -> None:
        active = self.active
        context = active.context
        await active.replicas.enter(
            [
                replica
                for replica in (Replica(at, one) for one in move.adding)
                if context.replica_phases.get(replica) is ReplicaPhase.NEW
            ],
            ReplicaPhase.ONLINE,
        )
        context.assignments[at.topic][at.partition] = move.target

        def choose(_: TopicPartition, replicas: Replicas, state: PartitionState) -> Choice | None:
            return leader_when_moving(
                replicas, state.leader, state.in_sync_replicas, context.live_brokers
            )

        if context.leadership[at].state.leader in move.target:
            await active.partitions.renew([at])
        else:
            await active.partitions.elect([at], choose)
        await self._remove([Replica(at, one) for one in move.removing])
        await self._store(at, Reassignment(move.target))
        active.batch.publish(context.live_brokers, [at])

    async def _remove(self, replicas: list[Replica]) -> None:
        """Stop replicas and delete their logs; a dead broker does it when it returns."""
        known = [one for one in replicas if one in self.active.context.replica_phases]
        await take_out(self.active, known)
        for phase in (
            ReplicaPhase.DELETION_STARTED,
            ReplicaPhase.DELETION_SUCCESSFUL,
            ReplicaPhase.NON_EXISTENT,
        ):
            await self.active.replicas.enter(known, phase)

    async def _store(self, at: TopicPartition, move: Reassignment) -> None:
        path = topic_path(at.topic)
        for _ in range(WRITE_ATTEMPTS):
            node = await self.reader.get(path)
            current = decode_topic(at.topic, node.data)
            index = at.partition
            adding = {**current.adding_replicas, index: move.adding}
            removing = {**current.removing_replicas, index: move.removing}
            changed = TopicAssignment(
                {**current.partitions, index: move.replicas},
                current.topic_id,
                {partition: replicas for partition, replicas in adding.items() if replicas},
                {partition: replicas for partition, replicas in removing.items() if replicas},
            )
            try:
                await self.active.store.write([SetData(path, encode_topic(changed), node.version)])
            except BadVersionError:
                continue
            return
        raise StoreError(path, "is being changed by others")


def plan(origin: Replicas, target: Replicas) -> Reassignment:
    """The move from one set of replicas to another."""
    return Reassignment(
        tuple(dict.fromkeys(target + origin)),
        adding=tuple(one for one in target if one not in origin),
        removing=tuple(one for one in origin if one not in target),
    )


def _check(target: Replicas, live: Collection[int]) -> None:
    reason = "" if target else "none are named"
    seen: set[int] = set()
    for one in target:
        if one in seen:
            reason = f"broker {one} is named more than once"
        elif one < 0:
            reason = f"broker ids are not negative, as {one} is"
        elif one not in live:
            reason = f"broker {one} is not alive"
        if reason:
            break
        seen.add(one)
    if reason:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The replicas cannot be those: {reason}."
        )
