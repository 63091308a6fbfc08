"""Reads the whole cluster from the store, for a new controller."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from controller.context import (
    ControllerContext,
    Leadership,
    Reassignment,
    TopicPartition,
)
from controller.metadata_store.flights import in_flights, read_many
from controller.metadata_store.store import MetadataStore, NoNodeError, Watch, Znode
from controller.znodes import (
    MalformedZnodeError,
    decode_state,
    decode_topic,
    state_path,
    topic_path,
)

if TYPE_CHECKING:
    from controller.ports import Slices
    from controller.znodes import PartitionState, Replicas

logger = logging.getLogger(__name__)

WatchTopic = Callable[[str], Watch]
"""Makes the watch on one topic's assignment."""


async def load_topics(
    store: MetadataStore,
    context: ControllerContext,
    topics: Iterable[str],
    watch: WatchTopic,
    slices: Slices,
) -> list[TopicPartition]:
    """Read topics' assignments into the context; returns the partitions that are new to it.

    A topic whose node is unreadable is omitted, and logged: one bad node must not affect the
    others.
    """
    added: list[TopicPartition] = []
    shared: dict[Replicas, Replicas] = {}
    names = list(topics)
    nodes = await in_flights(names, partial(_read_topics, store, watch), slices)
    async for topic, node in slices.each(zip(names, nodes, strict=True)):
        if node is None:
            continue
        try:
            assignment = decode_topic(topic, node.data)
        except MalformedZnodeError as error:
            logger.error("topic %s is ignored: %s", topic, error)  # noqa: TRY400
            continue
        known = context.assignments.setdefault(topic, {})
        added += (TopicPartition(topic, p) for p in assignment.partitions if p not in known)
        for index, replicas in assignment.partitions.items():
            known[index] = shared.setdefault(replicas, replicas)
        moving = assignment.adding_replicas.keys() | assignment.removing_replicas.keys()
        for index in moving & assignment.partitions.keys():
            context.reassigning[TopicPartition(topic, index)] = Reassignment(
                assignment.partitions[index],
                assignment.adding_replicas.get(index, ()),
                assignment.removing_replicas.get(index, ()),
            )
        context.topic_ids[topic] = assignment.topic_id
    return added


async def _read_topics(
    store: MetadataStore, watch: WatchTopic, topics: Sequence[str]
) -> list[Znode | None]:
    nodes: list[Znode | None] = []
    reads = (store.get(topic_path(topic), watch(topic)) for topic in topics)
    for answer in await asyncio.gather(*reads, return_exceptions=True):
        if isinstance(answer, NoNodeError):
            nodes.append(None)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            nodes.append(answer)
    return nodes


async def load_states(
    store: MetadataStore,
    context: ControllerContext,
    partitions: Iterable[TopicPartition],
    slices: Slices,
) -> set[int]:
    """Read the stored leaders of partitions into the context; returns the brokers that restarted.

    Those registered after they were last found in sync. They died in between, without a controller
    to see it, and may lack records that they had then (after a loss of power) and others have from
    them: even a broker that is alone in sync must not continue in the same leader epoch.
    """
    born_again: set[int] = set()
    decoded: dict[bytes | None, PartitionState] = {}
    wanted = [at async for at in slices.each(partitions)]
    paths = [state_path(*at) async for at in slices.each(wanted)]
    nodes = await read_many(store, paths, slices)
    async for at, path, node in slices.each(zip(wanted, paths, nodes, strict=True)):
        if node is None:
            continue
        try:
            # Most have the same bytes, and one object does for all of them.
            state = decoded.get(node.data) or decode_state(path, node.data)
        except MalformedZnodeError as error:
            logger.error("%s-%d has no known leader: %s", *at, error)  # noqa: TRY400
            continue
        decoded[node.data] = state
        context.leadership[at] = Leadership(state, node.version)
        if len(context.replicas_of(at)) > 1:
            born_again.update(
                one
                for one in state.in_sync_replicas
                if one in context.live_brokers and context.live_brokers[one].epoch > node.mzxid
            )
    return born_again
