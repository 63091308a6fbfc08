"""How far the changelogs of tasks are restored at a member, as it reports in some heartbeats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator.modern_groups.checks import refuse_request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from protocol.messages.streams_groups import (
        StreamsGroupHeartbeatRequest,
        StreamsGroupTaskOffset,
    )

Offsets = Mapping[tuple[str, int], int]
"""By subtopology id and partition."""


class TaskOffsets(NamedTuple):
    """What a member reported last. Not stored."""

    restored: Offsets
    """For a task the sum over its changelogs."""
    ends: Offsets

    def after(self, request: StreamsGroupHeartbeatRequest) -> TaskOffsets:
        """What is known after a heartbeat; null says that nothing changed. Raises ApiError."""
        restored, ends = request.task_offsets, request.task_end_offsets
        return TaskOffsets(
            self.restored if restored is None else _by_task(restored),
            self.ends if ends is None else _by_task(ends),
        )


NO_OFFSETS: Final = TaskOffsets({}, {})


def _by_task(reported: Iterable[StreamsGroupTaskOffset]) -> Offsets:
    found: dict[tuple[str, int], int] = {}
    for each in reported:
        task = each.subtopology_id, each.partition
        if task in found:
            refuse_request(
                "Task offsets contain a duplicate entry for subtopology "
                f"{each.subtopology_id} and partition {each.partition}."
            )
        found[task] = each.offset
    return found
