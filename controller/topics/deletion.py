"""Topic deletion: requested by a node, complete when every replica's files are deleted.

In Apache Kafka's order: brokers forget the topic (leader -2), replicas stop, partitions lose their
leader, replicas delete their files; only when all have, the topic's nodes are deleted, bottom-up,
and the request last, so that the next controller can continue after a failure in between.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from controller.context import ControllerContext, Replica, TopicPartition
from controller.metadata_store.store import Delete, MetadataStore, NoNodeError, Operation
from controller.partitions.states import PartitionPhase, ReplicaPhase
from controller.znodes import (
    TOPIC_ENTITY,
    config_path,
    delete_topic_path,
    partition_path,
    partitions_path,
    state_path,
    topic_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from controller.brokers.control_requests import ControlRequestBatch
    from controller.brokers.election import FencedStore
    from controller.partitions.partition_state_machine import PartitionStateMachine
    from controller.partitions.replica_state_machine import ReplicaStateMachine
    from controller.ports import Slices

PARTITIONS_PER_TRANSACTION = 250
"""Keeps one transaction well under ZooKeeper's limit of 1 MB, and the event loop free."""

logger = logging.getLogger(__name__)


class TopicDeletion:
    """The deletions of one term."""

    def __init__(
        self,
        context: ControllerContext,
        stores: tuple[MetadataStore, FencedStore],
        batch: ControlRequestBatch,
        machines: tuple[PartitionStateMachine, ReplicaStateMachine, Callable[[], Slices]],
    ) -> None:
        """Share the term's parts; `stores` are for reading and for writing."""
        self._context = context
        self._reader, self._store = stores
        self._batch = batch
        self._partitions, self._replicas, self._slices = machines

    async def enqueue(self, topics: Iterable[str]) -> None:
        """Queue requests for deletion; those for topics that do not exist are dropped."""
        unknown = [topic for topic in topics if topic not in self._context.assignments]
        if unknown:
            await self._store.write_many([[Delete(delete_topic_path(t))] for t in unknown])
        self._context.deleting.update(t for t in topics if t in self._context.assignments)

    async def advance(self) -> list[str]:
        """Start, retry or complete deletions; returns the topics that are deleted."""
        gone: list[str] = []
        for topic in sorted(self._context.deleting):
            phases = await self._phases(topic)
            if all(phase is ReplicaPhase.DELETION_SUCCESSFUL for phase in phases.values()):
                await self._complete(topic)
                gone.append(topic)
            elif topic in self._context.blocked_deletions:
                continue
            elif ReplicaPhase.DELETION_STARTED not in phases.values():
                await self._start(topic, phases)
        return gone

    async def replicas_stopped(self, broker_id: int, errors: dict[TopicPartition, int]) -> None:
        """Note a broker's answer to StopReplica with deletion."""
        gone: list[Replica] = []
        left: list[Replica] = []
        async for at, error in self._slices().each(errors.items()):
            replica = Replica(at, broker_id)
            if self._context.replica_phases.get(replica) is not ReplicaPhase.DELETION_STARTED:
                continue
            if error:
                logger.error("broker %d cannot delete %s-%d: error %d", broker_id, *at, error)
                self._context.blocked_deletions.add(at.topic)
                left.append(replica)
            else:
                gone.append(replica)
        await self._replicas.enter(left, ReplicaPhase.DELETION_INELIGIBLE)
        await self._replicas.enter(gone, ReplicaPhase.DELETION_SUCCESSFUL)

    async def _phases(self, topic: str) -> dict[Replica, ReplicaPhase]:
        replicas = self._context.replicas(self._context.partitions([topic]))
        return {
            replica: self._context.replica_phases.get(replica, ReplicaPhase.OFFLINE)
            async for replica in self._slices().each(replicas)
        }

    async def _start(self, topic: str, phases: dict[Replica, ReplicaPhase]) -> None:
        slices = self._slices()
        partitions = list(self._context.partitions([topic]))
        async for at in slices.each(partitions):
            self._batch.publish(self._context.live_brokers, [at])
        known = [at for at in partitions if at in self._context.partition_phases]
        await self._partitions.enter(known, PartitionPhase.OFFLINE)
        await self._partitions.enter(known, PartitionPhase.NON_EXISTENT)
        remaining = [r for r, p in phases.items() if p is not ReplicaPhase.DELETION_SUCCESSFUL]
        live = [r for r in remaining if r.broker_id in self._context.live_brokers]
        dead = [r for r in remaining if r.broker_id not in self._context.live_brokers]
        if dead:
            logger.warning("topic %s: deletion waits for brokers to come back", topic)
            self._context.blocked_deletions.add(topic)
        await self._replicas.enter(live, ReplicaPhase.OFFLINE)
        await self._partitions.take_offline(partitions)
        if not dead:
            await self._replicas.enter(live, ReplicaPhase.DELETION_STARTED)

    async def _complete(self, topic: str) -> None:
        stored = await self._stored_partitions(topic)
        for start in range(0, len(stored), PARTITIONS_PER_TRANSACTION):
            await self._delete_all(
                path
                for at in stored[start : start + PARTITIONS_PER_TRANSACTION]
                for path in (state_path(*at), partition_path(*at))
            )
        await self._delete_all(
            [
                partitions_path(topic),
                topic_path(topic),
                config_path(TOPIC_ENTITY, topic),
                delete_topic_path(topic),
            ]
        )
        async for at in self._slices().each(list(self._context.partitions([topic]))):
            self._context.forget_partition(at)
        self._context.forget(topic)
        logger.info("topic %s deleted", topic)

    async def _stored_partitions(self, topic: str) -> Sequence[TopicPartition]:
        try:
            names = await self._reader.children(partitions_path(topic))
        except NoNodeError:
            return ()
        return [TopicPartition(topic, int(name)) for name in names]

    async def _delete_all(self, paths: Iterable[str]) -> None:
        """Delete the existing ones of `paths` in one transaction."""
        wanted = list(paths)
        nodes = await self._reader.get_many(wanted)
        operations: list[Operation] = [
            Delete(path) for path, node in zip(wanted, nodes, strict=True) if node is not None
        ]
        if operations:
            await self._store.write(operations)
