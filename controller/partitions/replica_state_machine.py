"""Moves replicas between states and informs their brokers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from controller.partitions.states import REPLICA_SOURCES, ReplicaPhase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from controller.brokers.control_requests import ControlRequestBatch
    from controller.context import ControllerContext, Replica
    from controller.ports import Slices

logger = logging.getLogger(__name__)


class ReplicaStateMachine:
    """The replica state machine of one term."""

    def __init__(
        self,
        context: ControllerContext,
        batch: ControlRequestBatch,
        slices: Callable[[], Slices],
    ) -> None:
        """Share the term's context and batch."""
        self._context = context
        self._batch = batch
        self._slices = slices

    async def start(self) -> None:
        """Give every known replica its first state, with LeaderAndIsr for those on live brokers."""
        context = self._context
        async for replica in self._slices().each(context.replicas(context.partitions())):
            is_live = replica.broker_id in context.live_brokers
            phase = ReplicaPhase.ONLINE if is_live else ReplicaPhase.OFFLINE
            context.replica_phases[replica] = phase
            if is_live and replica.at in context.leadership:
                self._batch.lead_or_follow([replica.broker_id], replica.at, is_new=False)

    async def enter(self, replicas: Iterable[Replica], phase: ReplicaPhase) -> list[Replica]:
        """Enter a phase; returns the replicas that did."""
        entered: list[Replica] = []
        async for replica in self._slices().each(replicas):
            current = self._context.replica_phases.get(replica, ReplicaPhase.NON_EXISTENT)
            if current not in REPLICA_SOURCES[phase]:
                logger.error("%s cannot go from %s to %s", replica, current.value, phase.value)
                continue
            if phase is ReplicaPhase.NON_EXISTENT:
                self._context.replica_phases.pop(replica, None)
            else:
                self._context.replica_phases[replica] = phase
            self._tell(replica, current, phase)
            entered.append(replica)
        return entered

    def _tell(self, replica: Replica, before: ReplicaPhase, phase: ReplicaPhase) -> None:
        if phase is ReplicaPhase.OFFLINE:
            self._batch.stop(replica, delete=False)
        elif phase is ReplicaPhase.DELETION_STARTED:
            self._batch.stop(replica, delete=True)
        elif phase is ReplicaPhase.ONLINE and self._has_news(replica, before):
            self._batch.lead_or_follow([replica.broker_id], replica.at, is_new=False)

    def _has_news(self, replica: Replica, before: ReplicaPhase) -> bool:
        """Return whether it needs LeaderAndIsr: a new one got it with the first leader."""
        return before is not ReplicaPhase.NEW and replica.at in self._context.leadership
