"""The commands of brokers and administrators to the controller, queued with its other events.

Every command raises ApiError NOT_CONTROLLER if this broker is not the active controller.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol, TypeVar

from controller.brokers.broker_changes import relieve
from controller.features.updates import update_features
from controller.partitions.leader_balance import ElectionType, elect_leaders, out_of_balance
from protocol.errors import ApiError, ErrorCode, detached

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from controller.active_controller import ActiveController
    from controller.context import TopicPartition
    from controller.features.updates import FeatureUpdate
    from controller.metadata_store.store import MetadataStore
    from controller.znodes import Replicas
    from protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Perform(Protocol):
    """Runs work in the active controller, in its turn."""

    async def __call__(self, name: str, work: Callable[[ActiveController], Awaitable[T]]) -> T:
        """Raises ApiError NOT_CONTROLLER, and the errors of the work."""
        ...


class ControllerCommands:
    """`Controller.commands`."""

    def __init__(self, perform: Perform, store: MetadataStore) -> None:
        """`perform` is the controller's queue; `store` is read."""
        self._perform = perform
        self._store = store

    async def alter_partitions(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Store in-sync sets proposed by leaders. Raises ApiError NOT_CONTROLLER."""

        async def work(active: ActiveController) -> AlterPartitionResponse:
            response = await active.in_sync.apply(request)
            active.reassignments.look_for_finished()
            return response

        return await self._perform("in-sync replicas", work)

    async def reassign(
        self, wanted: Mapping[TopicPartition, Replicas | None]
    ) -> dict[TopicPartition, ApiError | None]:
        """Move partitions, or cancel a move with None; returns an error or None for each.

        Raises ApiError NOT_CONTROLLER.
        """

        async def work(active: ActiveController) -> dict[TopicPartition, ApiError | None]:
            results: dict[TopicPartition, ApiError | None] = {}
            async for at, target in active.slices().each(wanted.items()):
                try:
                    await active.reassignments.alter(at, target)
                except ApiError as error:
                    results[at] = detached(error)
                else:
                    results[at] = None
            return results

        return await self._perform("reassignment", work)

    async def elect_leaders(
        self, partitions: Collection[TopicPartition] | None, kind: ElectionType
    ) -> dict[TopicPartition, ErrorCode]:
        """Elect leaders of some or all partitions. Raises ApiError NOT_CONTROLLER."""

        async def work(active: ActiveController) -> dict[TopicPartition, ErrorCode]:
            wanted = active.context.partitions() if partitions is None else partitions
            return await elect_leaders(active, wanted, kind)

        return await self._perform("leader election", work)

    async def balance(self, tolerated_percentage: int) -> None:
        """Elect preferred leaders where `leader.imbalance.per.broker.percentage` is exceeded."""

        async def work(active: ActiveController) -> None:
            wanted = await out_of_balance(active, tolerated_percentage)
            if wanted:
                logger.info("preferred leader election for %d partitions", len(wanted))
                await elect_leaders(active, wanted, ElectionType.PREFERRED)

        await self._perform("balance", work)

    async def update_features(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool
    ) -> None:
        """Finalise all levels or none. Raises ApiError: NOT_CONTROLLER, or why they cannot be."""

        async def work(active: ActiveController) -> None:
            await update_features(active, self._store, updates, validate_only=validate_only)

        await self._perform("features", work)

    async def relieve(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """Controlled shutdown: move leadership from a broker that is about to stop.

        Returns the partitions that it still leads. Raises ApiError NOT_CONTROLLER or
        STALE_BROKER_EPOCH.
        """

        async def work(active: ActiveController) -> list[TopicPartition]:
            active.require_broker(broker_id, broker_epoch)
            return await relieve(active, broker_id)

        return await self._perform("controlled shutdown", work)


def give(answer: asyncio.Future[T], outcome: T | ApiError) -> None:
    """Complete the caller's future, unless it is cancelled."""
    if answer.done():
        return
    if isinstance(outcome, ApiError):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
