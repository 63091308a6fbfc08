"""Requests of share groups to share coordinators: initialise and delete the state of partitions.

A group notes a request, sends it once that is committed, and notes the answer. If the group moves
to another broker meanwhile, that one sends it again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from broker.coordinators.shard_runtime import Stage
from broker.runtime.deferred import Deferred, awaited
from coordinator.share_state.state import SharePartition
from coordinator.storage_errors import storage_error
from protocol.errors import ApiError, ErrorCode, detached

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from broker.coordinators.group_shard_runtime import GroupShardRuntime
    from broker.coordinators.share_state.cluster_store import ClusterShareState
    from broker.runtime.slices import Slices
    from coordinator.records import OffsetsRecord
    from coordinator.share_groups.initialisation import Initialisation
    from coordinator.share_groups.start_offsets import Places

    Place = tuple[UUID, int]
    Errors = dict[Place, ApiError]

logger = logging.getLogger(__name__)

ASKED_AT_ONCE: Final = 100
"""Partitions of one group in concurrent requests to share coordinators."""


class GroupStates:
    """Requests for share groups that this broker coordinates. `BrokerServices.group_states`."""

    def __init__(self, share_state: ClusterShareState, slices: Callable[[], Slices]) -> None:
        self._share_state = share_state
        self._slices = slices

    async def initialise(self, shard: GroupShardRuntime, wanted: Initialisation) -> Errors:
        """Initialise states, and note which ones were; return the errors of the others."""
        offsets, group_id = wanted.start_offsets, wanted.group_id

        def ask(place: Place) -> Deferred[None]:
            partition = SharePartition(group_id, *place)
            return self._share_state.initialise(partition, wanted.state_epoch, offsets[place])

        errors = await self._ask_all(list(offsets), ask)
        for (topic_id, index), error in errors.items():
            logger.warning(
                "share group %s: partition %d of topic %s not initialised: %s",
                group_id,
                index,
                topic_id,
                error,
            )
        done = [place for place in offsets if place not in errors]
        if shard.stage is Stage.ACTIVE:
            shard.forget(shard.groups.shares.handle_initialised(group_id, done, list(errors)))
        return errors

    async def forget(self, group_id: str, places: Places) -> Errors:
        """Forget states; returns the errors of those that could not be."""
        return await self._ask_all(
            places, lambda place: self._share_state.delete(SharePartition(group_id, *place))
        )

    async def _ask_all(
        self, places: Sequence[Place], ask: Callable[[Place], Deferred[None]]
    ) -> Errors:
        errors: Errors = {}
        slices = self._slices()
        for start in range(0, len(places), ASKED_AT_ONCE):
            asked = {}
            async for place in slices.each(places[start : start + ASKED_AT_ONCE]):
                asked[place] = ask(place)
            for place, answer in asked.items():
                try:
                    await awaited(answer)
                except ApiError as error:
                    errors[place] = detached(error)
        return errors


async def store(shard: GroupShardRuntime, records: Sequence[OffsetsRecord]) -> None:
    """Append records of a group, if any; return once the log is committed. Raises ApiError."""
    if shard.stage is not Stage.ACTIVE:
        raise ApiError(ErrorCode.NOT_COORDINATOR)
    code = shard.forget(records)
    if code is ErrorCode.NONE:
        committed: Deferred[ErrorCode] = Deferred()

        def decided(outcome: ErrorCode) -> None:
            committed.complete(outcome)

        shard.when_committed(decided)
        code = await awaited(committed)
    if code is not ErrorCode.NONE:
        raise ApiError(storage_error(code))
