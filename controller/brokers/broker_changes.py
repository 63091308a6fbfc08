"""The consequences of a broker's death, return, or controlled shutdown.

A partition whose leader has died gets another from its in-sync replicas; then the dead broker
leaves the in-sync sets of all its partitions, except where it is the last member: only that one may
be elected without loss when it returns.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from controller.partitions.leader_selection import (
    Choice,
    leader_when_shutting_down,
    without_replica,
)
from controller.partitions.states import PartitionPhase, ReplicaPhase

if TYPE_CHECKING:
    from collections.abc import Collection

    from controller.active_controller import ActiveController
    from controller.context import LiveBroker, Replica, TopicPartition
    from controller.znodes import PartitionState, Replicas

logger = logging.getLogger(__name__)


async def brokers_died(active: ActiveController, dead: Collection[int]) -> None:
    """Elect new leaders for their partitions, and remove them from the in-sync sets."""
    context = active.context
    context.leaving.difference_update(dead)
    deleting: list[Replica] = []
    served: list[Replica] = []
    leaderless: dict[TopicPartition, None] = {}
    hit = await active.replicas_where(lambda replica: replica.broker_id in dead)
    async for replica in active.slices().each(hit):
        if replica.at.topic in context.deleting:
            deleting.append(replica)
            continue
        served.append(replica)
        if _leader(active, replica.at) in dead:
            leaderless[replica.at] = None
    await active.partitions.enter(leaderless, PartitionPhase.OFFLINE)
    await active.partitions.bring_online(leaderless)
    await active.send()  # clients wait for these; the others only lack a follower
    await take_out(active, served)
    await _block_deletions(active, deleting)
    active.batch.publish(context.live_brokers, ())


async def take_out_missing(active: ActiveController) -> None:
    """At the start of a term: remove brokers that died with the last controller from in-sync sets.

    Otherwise acks=all would wait until the leaders notice.
    """
    context = active.context
    missing = await active.replicas_where(
        lambda replica: (
            replica.broker_id not in context.live_brokers
            and replica.at.topic not in context.deleting
        )
    )
    if missing:
        brokers = sorted({replica.broker_id for replica in missing})
        logger.info("brokers %s failed or left before this controller was elected", brokers)
    await take_out(active, missing)


async def bring_back(
    active: ActiveController, present: dict[int, LiveBroker], born_again: Collection[int]
) -> None:
    """Use brokers again that were treated as dead, since they had restarted before this term."""
    active.context.live_brokers = present
    if born_again:
        logger.info("brokers %s restarted while there was no controller", sorted(born_again))
        await brokers_arrived(active, born_again)
        await active.send()


async def brokers_arrived(active: ActiveController, arrived: Collection[int]) -> None:
    """Send them the whole state, and use their replicas again."""
    context = active.context
    # Disks may have been repaired; failed ones are announced again.
    context.failed_replicas = {
        one for one in context.failed_replicas if one.broker_id not in arrived
    }
    await active.publish(context.partitions(), arrived)
    await active.send()
    returning = await active.replicas_where(
        lambda replica: replica.broker_id in arrived and replica.at.topic not in context.deleting
    )
    await active.replicas.enter(returning, ReplicaPhase.ONLINE)
    context.blocked_deletions.clear()
    await active.partitions.bring_online()


async def relieve(active: ActiveController, broker_id: int) -> list[TopicPartition]:
    """Move leadership from a broker that shuts down; returns the partitions that it still leads.

    Partitions with a single replica stay with it.
    """
    context = active.context
    context.leaving.add(broker_id)
    shared = await active.replicas_where(
        lambda replica: (
            replica.broker_id == broker_id
            and len(context.replicas_of(replica.at)) > 1
            and replica.at in context.leadership
            and replica.at.topic not in context.deleting
        )
    )
    led = [replica.at for replica in shared if _leader(active, replica.at) == broker_id]

    def choose(at: TopicPartition, replicas: Replicas, state: PartitionState) -> Choice | None:
        usable = context.usable_brokers(at)
        return leader_when_shutting_down(replicas, state.in_sync_replicas, usable, context.leaving)

    await active.partitions.elect(led, choose)
    await take_out(active, [one for one in shared if _leader(active, one.at) != broker_id])
    return [at for at in led if _leader(active, at) == broker_id]


async def take_out(active: ActiveController, replicas: Collection[Replica]) -> None:
    """Remove replicas from the in-sync sets, and stop those on live brokers."""
    by_broker: dict[int, list[Replica]] = {}
    for replica in replicas:
        by_broker.setdefault(replica.broker_id, []).append(replica)
    for gone, some in by_broker.items():

        def choose(
            _: TopicPartition, __: Replicas, state: PartitionState, gone: int = gone
        ) -> Choice | None:
            return without_replica(state.leader, state.in_sync_replicas, gone)

        await active.replicas.enter(some, ReplicaPhase.OFFLINE)
        members = [
            one.at
            async for one in active.slices().each(some)
            if (known := active.context.leadership.get(one.at)) is not None
            and gone in known.state.in_sync_replicas
        ]
        await active.partitions.elect(members, choose)


def _leader(active: ActiveController, at: TopicPartition) -> int | None:
    leadership = active.context.leadership.get(at)
    return None if leadership is None else leadership.state.leader


async def _block_deletions(active: ActiveController, replicas: Collection[Replica]) -> None:
    """Block the deletions that have begun on dead brokers until these return."""
    started = [
        replica
        for replica in replicas
        if active.context.replica_phases.get(replica) is ReplicaPhase.DELETION_STARTED
    ]
    await active.replicas.enter(started, ReplicaPhase.DELETION_INELIGIBLE)
    active.context.blocked_deletions.update(replica.at.topic for replica in replicas)
