"""Members that leave, by their own will or because they were silent for too long."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from coordinator.consumer_groups.heartbeats.checks import unknown_member
from coordinator.effects import Effects
from coordinator.streams_groups.heartbeats.responses import Outcome, answer
from coordinator.streams_groups.records import epoch_record, member_tombstones
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator.streams_groups.group import StreamsGroup
    from coordinator.streams_groups.member import StreamsMember
    from coordinator.streams_groups.shard_parts import ShardParts
    from protocol.messages.streams_groups import StreamsGroupHeartbeatRequest

logger = logging.getLogger(__name__)


class Departures:
    """Decides on who leaves the streams groups of a shard."""

    def __init__(self, parts: ShardParts) -> None:
        self._parts = parts

    def check_room(self, group: StreamsGroup) -> None:
        """Raise GROUP_MAX_SIZE_REACHED if nobody may join, or join again."""
        limit = self._parts.settings.max_size
        if len(group.members) >= limit:
            raise ApiError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The streams group has reached its maximum capacity of {limit} members.",
            )

    def leave(
        self, group: StreamsGroup, request: StreamsGroupHeartbeatRequest, effects: Effects
    ) -> Outcome:
        """A member leaves. Raises ApiError."""
        if request.shutdown_application:
            group.memory.request_shutdown(request.member_id)
        member = group.members.get(request.member_id)
        if member is None:
            raise unknown_member(request.member_id, group.group_id)
        self.remove(group, [member], effects)
        return Outcome(answer(request.member_id, request.member_epoch, 0), {})

    def expire(self, group: StreamsGroup, now_ms: int) -> Effects:
        """The group's timer went off: remove members that are late."""
        effects = Effects()
        late = self._parts.watches.expired(group, now_ms)
        for member in late:
            logger.info(
                "group %s: member %s removed, as its session or rebalance timeout is over",
                group.group_id,
                member.member_id,
            )
        if late:
            self.remove(group, late, effects)
        return effects

    def remove(
        self, group: StreamsGroup, members: Sequence[StreamsMember], effects: Effects
    ) -> None:
        """Remove members; the group goes to its next epoch."""
        group_id, watches = group.group_id, self._parts.watches
        member_ids = [member.member_id for member in members]
        for member_id in member_ids:
            effects.records += member_tombstones(group_id, member_id)
            watches.forget_member(group_id, member_id)
        effects.on_append_failed = partial(watches.not_removed, group_id, member_ids)
        effects.records.append(
            epoch_record(
                group_id,
                group.epoch + 1,
                group.metadata_hash,
                group.validated_topology_epoch,
                group.assignment_configs,
            )
        )
