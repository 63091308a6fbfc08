"""Controller mutation quota on requests to create, delete or grow topics (KIP-599).

Each topic's partitions are counted after all other checks of it, in the order of the request. Once
the quota is exceeded, the remaining topics are refused; a request of an older version is served,
and throttled afterwards. A request with `validate_only` counts as well, as in Apache Kafka with
KRaft.

Source: ReplicationControlManager, where it calls applyPartitionChangeQuota.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.topics.topics import CreatedTopic
from protocol.errors import ApiError, ErrorCode, detached

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from broker.requests.context import Context
    from controller.partitions.partition_growth import PartitionGrowth
    from controller.topics.topics import NewTopic


async def refused_creations(context: Context, topics: Collection[NewTopic]) -> dict[str, ApiError]:
    """Count the topics that can be created; returns the errors of those that may not be."""
    if not _is_metered(context):
        return {}
    broker = context.broker
    possible = await broker.topics.create(list(topics), broker.metadata.racks, validate_only=True)
    return await _refused(
        context,
        [
            (name, len(result.assignment))
            for name, result in possible.items()
            if isinstance(result, CreatedTopic)
        ],
    )


async def refused_deletions(context: Context, topics: Iterable[str]) -> dict[str, ApiError]:
    """Count topics that are to be deleted; returns the errors of those that may not be."""
    if not _is_metered(context):
        return {}
    known = ((name, context.broker.metadata.topic(name)) for name in topics)
    return await _refused(
        context, [(name, len(topic.partitions)) for name, topic in known if topic is not None]
    )


async def note_growth(context: Context, growth: PartitionGrowth) -> None:
    """Count the partitions that a topic is to get. Raises ApiError, also that of the growth."""
    if context.meter is not None and _is_metered(context):
        broker = context.broker
        added = await broker.topics.grow(growth, broker.metadata.racks, validate_only=True)
        context.meter.note_mutations(added)


def must_wait(context: Context) -> bool:
    """Return whether the quota keeps the client from creating topics by their use."""
    return context.meter is not None and context.meter.must_wait_to_change


def create_on_first_use(context: Context, topic: str) -> ErrorCode:
    """Start to create a topic, whose partitions count; returns the error for the client."""
    code = context.broker.auto_topics.request(topic)
    if context.meter is not None and code is ErrorCode.LEADER_NOT_AVAILABLE:  # it has begun
        context.meter.note_mutations(context.broker.config.num_partitions)
    return code


def _is_metered(context: Context) -> bool:
    return context.meter is not None and context.meter.counts_mutations


async def _refused(context: Context, counts: list[tuple[str, int]]) -> dict[str, ApiError]:
    refused: dict[str, ApiError] = {}
    assert context.meter is not None
    async for name, count in context.broker.slices().each(counts):
        try:
            context.meter.note_mutations(count)
        except ApiError as error:
            refused[name] = detached(error)
    return refused
