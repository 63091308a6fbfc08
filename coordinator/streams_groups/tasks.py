"""Tasks: of a target, of a member, and their restored offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from coordinator.modern_groups.checks import refuse_request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from protocol.messages.streams_groups import (
        StreamsGroupHeartbeatRequest,
        StreamsGroupTaskIds,
        StreamsGroupTaskOffset,
    )

TaskSet = Mapping[str, frozenset[int]]
"""Subtopology id → partitions."""
Epochs = Mapping[str, Mapping[int, int]]
"""Subtopology id → partition → the member epoch in which the task was given to the member."""


class Tasks(NamedTuple):
    """A member's part of the target assignment, or the tasks that it reports as owned."""

    active: TaskSet
    standby: TaskSet
    warmup: TaskSet

    def meets(self, owned: OwnedTasks) -> bool:
        """Return whether the two have a task of the same kind in common."""
        return (
            any(
                not partitions.isdisjoint(owned.active.get(s, {}))
                for s, partitions in self.active.items()
            )
            or _meet(self.standby, owned.standby)
            or _meet(self.warmup, owned.warmup)
        )

    def contain(self, owned: OwnedTasks) -> bool:
        """Return whether these reported tasks include all that the member owns."""
        return (
            all(
                partitions.keys() <= self.active.get(s, set())
                for s, partitions in owned.active.items()
            )
            and _is_within(owned.standby, self.standby)
            and _is_within(owned.warmup, self.warmup)
        )


class OwnedTasks(NamedTuple):
    """Tasks that a member owns, or has to revoke."""

    active: Epochs
    standby: TaskSet
    warmup: TaskSet

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    @property
    def tasks(self) -> Tasks:
        """The same without epochs."""
        active = {name: frozenset(epochs) for name, epochs in self.active.items()}
        return Tasks(active, self.standby, self.warmup)

    def contain(self, said: SaidTasks) -> bool:
        """Return whether the member owns all the tasks that it reports."""
        return (
            _contain(self.active, said.active)
            and _contain(self.standby, said.standby)
            and _contain(self.warmup, said.warmup)
        )


class SaidTasks(NamedTuple):
    """Tasks that a heartbeat reports as owned; None for a kind that it does not report."""

    active: list[StreamsGroupTaskIds] | None
    standby: list[StreamsGroupTaskIds] | None
    warmup: list[StreamsGroupTaskIds] | None

    @property
    def tasks(self) -> Tasks | None:
        """The same as sets; None if it does not report all kinds."""
        if self.active is None or self.standby is None or self.warmup is None:
            return None
        return Tasks(task_set(self.active), task_set(self.standby), task_set(self.warmup))


NO_TASKS: Final = Tasks({}, {}, {})
OWNS_NOTHING: Final = OwnedTasks({}, {}, {})


class ListedTasks(Protocol):
    """Tasks of one subtopology, in a request or a record."""

    subtopology_id: str
    partitions: list[int]


def task_set(listed: Iterable[ListedTasks]) -> TaskSet:
    """Tasks of a message; a subtopology that is listed twice counts with both lists."""
    found: dict[str, frozenset[int]] = {}
    for each in listed:
        found[each.subtopology_id] = found.get(each.subtopology_id, frozenset()).union(
            each.partitions
        )
    return found


def _meet(one: TaskSet, other: TaskSet) -> bool:
    return any(not partitions.isdisjoint(other.get(s, ())) for s, partitions in one.items())


def _is_within(one: TaskSet, other: TaskSet) -> bool:
    return all(partitions <= other.get(s, set()) for s, partitions in one.items())


def _contain(
    owned: Mapping[str, frozenset[int] | Mapping[int, int]], said: list[StreamsGroupTaskIds] | None
) -> bool:
    return said is not None and all(
        each.subtopology_id in owned
        and all(partition in owned[each.subtopology_id] for partition in each.partitions)
        for each in said
    )


Offsets = Mapping[tuple[str, int], int]
"""By subtopology id and partition."""


class TaskOffsets(NamedTuple):
    """Offsets that a member reported last. Not stored."""

    restored: Offsets
    """For a task the sum over its changelogs."""
    ends: Offsets

    def after(self, request: StreamsGroupHeartbeatRequest) -> TaskOffsets:
        """Return the offsets after a heartbeat; null means no change. Raises ApiError."""
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
