"""The failure of a log directory: its replicas are lost, although their broker lives.

The broker leaves an announcement in the store (`log_dir_events`). The controller then sends it
LeaderAndIsr of all its replicas once more; those it answers with KAFKA_STORAGE_ERROR have failed
(KIP-112). They lose leadership and leave the in-sync sets, except as the last member, until the
broker restarts.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from controller.brokers.broker_changes import take_out
from controller.context import Replica
from controller.partitions.states import PartitionPhase

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from controller.active_controller import ActiveController
    from controller.context import TopicPartition

logger = logging.getLogger(__name__)

NAMED = 5
"""Partitions that a log line names."""


async def ask_again(active: ActiveController, brokers: Collection[int]) -> None:
    """Send LeaderAndIsr of all their replicas to brokers, which answer with the failed ones."""
    context = active.context
    asked = await active.replicas_where(
        lambda replica: (
            replica.broker_id in brokers
            and replica not in context.failed_replicas
            and replica.at in context.leadership
            and replica.at.topic not in context.deleting
        )
    )
    async for replica in active.slices().each(asked):
        active.batch.lead_or_follow([replica.broker_id], replica.at, is_new=False)


async def replicas_failed(
    active: ActiveController, broker_id: int, partitions: Iterable[TopicPartition]
) -> None:
    """Elect new leaders where they led, and remove them from the in-sync sets."""
    context = active.context
    hit = [
        replica
        async for replica in active.slices().each(Replica(at, broker_id) for at in partitions)
        if broker_id in context.replicas_of(replica.at)
        and replica.at.topic not in context.deleting
        and replica not in context.failed_replicas
    ]
    if not hit:
        return
    names = ", ".join(f"{at.topic}-{at.partition}" for at, _ in hit[:NAMED])
    more = ", …" if len(hit) > NAMED else ""
    logger.error("broker %d lost %d replicas with its disk: %s%s", broker_id, len(hit), names, more)
    context.failed_replicas.update(hit)
    led = [one.at for one in hit if _leader(active, one.at) == broker_id]
    await active.partitions.enter(led, PartitionPhase.OFFLINE)
    await active.partitions.bring_online(led)
    await take_out(active, hit)
    await active.publish(one.at for one in hit)


def _leader(active: ActiveController, at: TopicPartition) -> int | None:
    leadership = active.context.leadership.get(at)
    return None if leadership is None else leadership.state.leader
