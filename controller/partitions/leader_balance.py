"""Elections on request: of preferred leaders, by hand or for balance, and unclean ones."""

from __future__ import annotations

import enum
from collections import defaultdict
from typing import TYPE_CHECKING

from controller.partitions.leader_selection import Choice, leader_when_offline, preferred_leader
from controller.znodes import NO_LEADER
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controller.active_controller import ActiveController
    from controller.context import TopicPartition
    from controller.znodes import PartitionState, Replicas


class ElectionType(enum.IntEnum):
    """The election types of ElectLeaders (KIP-460)."""

    PREFERRED = 0
    UNCLEAN = 1


async def elect_leaders(
    active: ActiveController, partitions: Iterable[TopicPartition], kind: ElectionType
) -> dict[TopicPartition, ErrorCode]:
    """Elect; returns an error code for each partition, ELECTION_NOT_NEEDED if nothing changes."""
    context = active.context
    results: dict[TopicPartition, ErrorCode] = {}
    wanted: list[TopicPartition] = []
    async for at in active.slices().each(partitions):
        leadership = context.leadership.get(at)
        if leadership is None or at.topic in context.deleting:
            results[at] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif kind is ElectionType.UNCLEAN and leadership.state.leader in context.live_brokers:
            results[at] = ErrorCode.ELECTION_NOT_NEEDED
        else:
            wanted.append(at)

    def choose(at: TopicPartition, replicas: Replicas, state: PartitionState) -> Choice | None:
        usable = context.usable_brokers(at)
        if kind is ElectionType.PREFERRED:
            return preferred_leader(replicas, state.in_sync_replicas, usable)
        return leader_when_offline(replicas, state.in_sync_replicas, usable, allow_unclean=True)

    results |= await active.partitions.elect(wanted, choose)
    if kind is ElectionType.PREFERRED:
        async for at, code in active.slices().each(results.items()):
            if code is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE:
                results[at] = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    return results


async def out_of_balance(
    active: ActiveController, tolerated_percentage: int
) -> list[TopicPartition]:
    """Partitions to elect preferred leaders for, on brokers above the imbalance limit.

    The imbalance of a broker is the share of partitions that prefer it and are led by others.
    """
    context = active.context
    preferring: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    slices = active.slices()
    async for at in slices.each(context.partitions()):
        replicas = context.replicas_of(at)
        if replicas and at.topic not in context.deleting:
            preferring[replicas[0]].append(at)
    found: list[TopicPartition] = []
    for broker_id, partitions in preferring.items():
        missed = [at async for at in slices.each(partitions) if _leader(active, at) != broker_id]
        if len(missed) * 100 <= tolerated_percentage * len(partitions):
            continue
        found += [
            at
            async for at in slices.each(missed)
            if broker_id in context.live_brokers
            and at not in context.reassigning
            and (leadership := context.leadership.get(at)) is not None
            and broker_id in leadership.state.in_sync_replicas
        ]
    return found


def _leader(active: ActiveController, at: TopicPartition) -> int:
    leadership = active.context.leadership.get(at)
    return NO_LEADER if leadership is None else leadership.state.leader
