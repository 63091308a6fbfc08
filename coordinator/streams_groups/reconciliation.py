"""One step of a member towards its target assignment.

    STABLE ──the group has a newer target──▶ revokes tasks not in it (UNREVOKED_TASKS)
      ▲                                            │ once it no longer owns them
      └──has all of it── takes over free tasks ◀───┘ ⟲ UNRELEASED_TASKS, until all are free

An active task is free when no process has it, and no other member of this process has a copy of it.
A standby task is free when no other member of this process has the task or a copy: two tasks of one
process cannot use the same directory. A task that only changes its kind at one member stays there:
an active task becomes a standby task at once, and a copy is kept until the active task is free.

Source: KIP-1071, `CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from coordinator.streams_groups.member import MemberState, StreamsMember
from coordinator.streams_groups.tasks import OWNS_NOTHING, OwnedTasks
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from coordinator.streams_groups.group import StreamsGroup
    from coordinator.streams_groups.tasks import Tasks


class Surroundings(NamedTuple):
    """Inputs of a member's reconciliation."""

    group: StreamsGroup
    """Gives the owners of tasks."""
    target_epoch: int
    target: Tasks
    owned: Tasks | None
    """Tasks that the member reports as owned; None if it does not report them."""


def reconciled(member: StreamsMember, around: Surroundings) -> StreamsMember:
    """The member after one step. Raises ApiError FENCED_MEMBER_EPOCH if it has to start over."""
    if member.is_reconciled_to(around.target_epoch):
        return member
    state = member.state
    if state in (MemberState.STABLE, MemberState.UNRELEASED_TASKS):
        return _next(member, member.member_epoch, around)
    if state is MemberState.UNREVOKED_TASKS:
        if around.owned is None or around.owned.meets(member.revoking):
            return member
        return _next(member, member.member_epoch + 1, around)
    if around.owned is None or any(around.owned):
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The streams group member is in a unknown state. The member must abandon all its tasks "
            "and rejoin.",
        )
    return _next(member, around.target_epoch, around)


_Pairs = set[tuple[str, int]]
"""Tasks by subtopology id and partition."""


class _Difference:
    """Tasks of one kind: those that the member keeps, those it revokes, and those it can take."""

    __slots__ = ("free", "is_waiting", "kept", "lost", "owned")

    def __init__(
        self, owned: _Pairs, wanted: _Pairs, is_taken: Callable[[tuple[str, int]], bool]
    ) -> None:
        self.owned = owned
        self.kept, self.lost = owned & wanted, owned - wanted
        missing = wanted - owned
        self.free = {task for task in missing if not is_taken(task)}
        self.is_waiting = len(self.free) < len(missing)
        """True if others have tasks of this member's target."""

    def take_over(self, tasks: _Pairs) -> _Pairs:
        """Take the free ones of `tasks` at once; returns them."""
        taken = tasks & self.free
        self.kept |= taken
        self.free -= taken
        return taken


def _next(member: StreamsMember, epoch: int, around: Surroundings) -> StreamsMember:
    assigned, wanted_active = member.assigned, _pairs(around.target.active)
    active, standby, warmup = _differences(member, around, wanted_active)
    standby.take_over(active.owned)
    warmup.lost -= standby.take_over(warmup.owned)
    standby.lost -= warmup.take_over(standby.owned)
    standby.lost -= wanted_active
    warmup.lost -= wanted_active
    lost = OwnedTasks(
        _epochs(active.lost, assigned.active, 0), _task_set(standby.lost), _task_set(warmup.lost)
    )
    must_revoke = bool(lost) and (around.owned is None or around.owned.meets(lost))
    for copies in (standby, warmup):  # a copy is kept until the task itself is there
        copies.kept |= copies.owned & wanted_active
        if not must_revoke:
            copies.kept -= active.free
    if must_revoke:
        epochs = _epochs(active.kept, assigned.active, 0)
        kept = OwnedTasks(epochs, _task_set(standby.kept), _task_set(warmup.kept))
        return _moved(member, MemberState.UNREVOKED_TASKS, epoch, kept, lost)
    taken = OwnedTasks(
        _epochs(active.kept | active.free, assigned.active, around.target_epoch),
        _task_set(standby.kept | standby.free),
        _task_set(warmup.kept | warmup.free),
    )
    is_waiting = active.is_waiting or standby.is_waiting or warmup.is_waiting
    state = MemberState.UNRELEASED_TASKS if is_waiting else MemberState.STABLE
    return _moved(member, state, around.target_epoch, taken, OWNS_NOTHING)


def _differences(
    member: StreamsMember, around: Surroundings, wanted_active: _Pairs
) -> tuple[_Difference, _Difference, _Difference]:
    group, process_id = around.group, member.process_id
    running = _pairs(member.assigned.active)
    standing_by, warming_up = _pairs(member.assigned.standby), _pairs(member.assigned.warmup)

    def runs_here(task: tuple[str, int]) -> bool:
        return group.active_process(*task) == process_id

    def has_standby(task: tuple[str, int]) -> bool:
        return process_id in group.standby_processes.of(*task)

    def has_warmup(task: tuple[str, int]) -> bool:
        return process_id in group.warmup_processes.of(*task)

    def is_active_taken(task: tuple[str, int]) -> bool:
        return (
            group.active_process(*task) is not None
            or (has_standby(task) and task not in standing_by)
            or (has_warmup(task) and task not in warming_up)
        )

    def is_standby_taken(task: tuple[str, int]) -> bool:
        return (
            (runs_here(task) and task not in running)
            or has_standby(task)
            or (has_warmup(task) and task not in warming_up)
        )

    def is_warmup_taken(task: tuple[str, int]) -> bool:
        return (
            runs_here(task) or (has_standby(task) and task not in standing_by) or has_warmup(task)
        )

    return (
        _Difference(running, wanted_active, is_active_taken),
        _Difference(standing_by, _pairs(around.target.standby), is_standby_taken),
        _Difference(warming_up, _pairs(around.target.warmup), is_warmup_taken),
    )


def _pairs(tasks: Mapping[str, Iterable[int]]) -> _Pairs:
    return {(name, index) for name, partitions in tasks.items() for index in partitions}


def _epochs(
    tasks: _Pairs, known: Mapping[str, Mapping[int, int]], epoch: int
) -> dict[str, dict[int, int]]:
    """The epochs in which the member got the tasks: those known, else `epoch`."""
    found: dict[str, dict[int, int]] = {}
    for name, index in tasks:
        found.setdefault(name, {})[index] = known.get(name, {}).get(index, epoch)
    return found


def _task_set(tasks: _Pairs) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for name, index in tasks:
        found.setdefault(name, set()).add(index)
    return {name: frozenset(partitions) for name, partitions in found.items()}


def _moved(
    member: StreamsMember,
    state: MemberState,
    epoch: int,
    assigned: OwnedTasks,
    revoking: OwnedTasks,
) -> StreamsMember:
    return replace(
        member,
        state=state,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        assigned=assigned,
        revoking=revoking,
    )
