"""Imports topics whose logs exist into a store that does not have them.

A log directory that Apache Kafka wrote carries everything but the assignment: names and topic ids
in `partition.metadata`, leader epochs in `leader-epoch-checkpoint`. The broker that found the logs
becomes their only replica, and leads with an epoch above every epoch in the log. Producer ids in
the logs are not allocated again: a new producer with an old one's id would be refused for its
sequence numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.brokers.producer_ids import skip_producer_ids
from controller.metadata_store.store import Create, MetadataStore, Operation, SetData, StoreError
from controller.znodes import (
    TOPIC_ENTITY,
    TOPICS,
    PartitionState,
    Replicas,
    TopicAssignment,
    config_path,
    encode_config,
    encode_state,
    encode_topic,
    partition_path,
    partitions_path,
    state_path,
    topic_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID


@dataclass(frozen=True, slots=True)
class FoundPartition:
    """A partition's log on disk."""

    topic: str
    partition: int
    topic_id: UUID
    latest_epoch: int = -1
    """Newest leader epoch in the log, -1 if there is none."""
    highest_producer_id: int = -1
    """The highest producer id in the log, -1 if there is none."""


async def adopt_topics(
    store: MetadataStore,
    broker_id: int,
    found: Iterable[FoundPartition],
    configs: Mapping[str, Mapping[str, str]],
) -> list[str]:
    """Add the topics that the store lacks; returns their names, sorted.

    `configs` gives the configuration of topics that need one (`__consumer_offsets` must be
    compacted). Partitions missing below the highest one found become new and empty. Call this
    before the controller starts.
    """
    known = set(await store.children(TOPICS))
    by_topic: dict[str, dict[int, FoundPartition]] = {}
    highest_producer_id = -1
    for partition in found:
        if partition.topic not in known:
            by_topic.setdefault(partition.topic, {})[partition.partition] = partition
            highest_producer_id = max(highest_producer_id, partition.highest_producer_id)
    names = sorted(by_topic)
    paths = [config_path(TOPIC_ENTITY, name) for name in names]
    leftovers = await store.get_many(paths)
    transactions: list[list[Operation]] = []
    for name, path, leftover in zip(names, paths, leftovers, strict=True):
        partitions = by_topic[name]
        config = encode_config(configs.get(name, {}))
        operations: list[Operation] = []
        if leftover is None:
            operations.append(Create(path, config))
        elif name in configs:
            operations.append(SetData(path, config))
        transactions.append(operations + _adopt(broker_id, name, partitions))
    transactions.append(await skip_producer_ids(store, broker_id, highest_producer_id))
    for outcome in await store.multi_many(transactions):
        if isinstance(outcome, StoreError):
            raise outcome
    return names


def _adopt(broker_id: int, topic: str, found: Mapping[int, FoundPartition]) -> list[Operation]:
    replicas: Replicas = (broker_id,)
    assignment = dict.fromkeys(range(max(found) + 1), replicas)
    topic_id = next(iter(found.values())).topic_id
    operations: list[Operation] = [
        Create(topic_path(topic), encode_topic(TopicAssignment(assignment, topic_id))),
        Create(partitions_path(topic)),
    ]
    for partition in sorted(found):
        state = PartitionState(
            leader=broker_id,
            leader_epoch=found[partition].latest_epoch + 1,
            in_sync_replicas=(broker_id,),
            controller_epoch=0,
        )
        operations += (
            Create(partition_path(topic, partition)),
            Create(state_path(topic, partition), encode_state(state)),
        )
    return operations
