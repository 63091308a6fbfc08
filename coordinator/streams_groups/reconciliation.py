"""One step of a member towards its target assignment.

    STABLE ──the group has a newer target──▶ gives up what is not in it (UNREVOKED_TASKS)
      ▲                                            │ once it no longer owns that
      └──has all of it── takes over what is free ◀─┘ ⟲ UNRELEASED_TASKS, until the rest is

An active task is free when no process has it, and this member's process has no copy of it either. A
standby task is free when this member's process has neither the task nor a copy: two tasks of one
process cannot use the same directory.

Source: KIP-1071, `CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from coordinator.streams_groups.member import MemberState, StreamsMember
from coordinator.streams_groups.tasks import OWNS_NOTHING, OwnedTasks
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from collections.abc import Set as AbstractSet

    from coordinator.streams_groups.group import StreamsGroup
    from coordinator.streams_groups.tasks import Tasks, TaskSet


class Surroundings(NamedTuple):
    """What a member is reconciled with."""

    group: StreamsGroup
    """Says who has which tasks."""
    target_epoch: int
    target: Tasks
    owned: Tasks | None
    """What the member says it owns; None if it does not say."""


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


class _Difference(NamedTuple):
    """Tasks of one kind: what stays, what has to go, what can be had."""

    kept: dict[str, frozenset[int]]
    lost: dict[str, frozenset[int]]
    free: dict[str, frozenset[int]]
    is_waiting: bool
    """Whether others have tasks that this member shall have."""


def _next(member: StreamsMember, epoch: int, around: Surroundings) -> StreamsMember:
    group, target, process_id = around.group, around.target, member.process_id

    def has_copy(subtopology_id: str, partition: int) -> bool:
        return process_id in group.standby_processes.of(
            subtopology_id, partition
        ) or process_id in group.warmup_processes.of(subtopology_id, partition)

    def is_active_taken(subtopology_id: str, partition: int) -> bool:
        has_owner = group.active_process(subtopology_id, partition) is not None
        return has_owner or has_copy(subtopology_id, partition)

    def is_copy_taken(subtopology_id: str, partition: int) -> bool:
        is_active_here = group.active_process(subtopology_id, partition) == process_id
        return is_active_here or has_copy(subtopology_id, partition)

    assigned = member.assigned
    current = {each: frozenset(epochs) for each, epochs in assigned.active.items()}
    active = _difference(current, target.active, is_active_taken)
    standby = _difference(assigned.standby, target.standby, is_copy_taken)
    warmup = _difference(assigned.warmup, target.warmup, is_copy_taken)
    epochs = _epochs_of(assigned.active, active.kept)
    lost = OwnedTasks(_epochs_of(assigned.active, active.lost), standby.lost, warmup.lost)
    if lost and (around.owned is None or around.owned.meets(lost)):
        kept = OwnedTasks(epochs, standby.kept, warmup.kept)
        return _moved(member, MemberState.UNREVOKED_TASKS, epoch, kept, lost)
    for subtopology_id, partitions in active.free.items():
        known = epochs.setdefault(subtopology_id, {})
        known.update(dict.fromkeys(partitions, around.target_epoch))
    taken = OwnedTasks(epochs, _merged(standby), _merged(warmup))
    is_waiting = active.is_waiting or standby.is_waiting or warmup.is_waiting
    state = MemberState.UNRELEASED_TASKS if is_waiting else MemberState.STABLE
    return _moved(member, state, around.target_epoch, taken, OWNS_NOTHING)


def _difference(
    current: TaskSet, target: TaskSet, is_taken: Callable[[str, int], bool]
) -> _Difference:
    found = _Difference({}, {}, {}, is_waiting=False)
    is_waiting = False
    nothing: frozenset[int] = frozenset()
    for subtopology_id in {**target, **current}:
        owned, wanted = current.get(subtopology_id, nothing), target.get(subtopology_id, nothing)
        kept, lost, missing = owned & wanted, owned - wanted, wanted - owned
        free = frozenset(index for index in missing if not is_taken(subtopology_id, index))
        is_waiting = is_waiting or len(free) < len(missing)
        for tasks, part in ((kept, found.kept), (lost, found.lost), (free, found.free)):
            if tasks:
                part[subtopology_id] = tasks
    return found._replace(is_waiting=is_waiting)


def _epochs_of(
    epochs: Mapping[str, Mapping[int, int]], tasks: Mapping[str, AbstractSet[int]]
) -> dict[str, dict[int, int]]:
    return {
        subtopology_id: {index: epochs[subtopology_id][index] for index in partitions}
        for subtopology_id, partitions in tasks.items()
    }


def _merged(found: _Difference) -> dict[str, frozenset[int]]:
    nothing: frozenset[int] = frozenset()
    return {
        each: found.kept.get(each, nothing) | found.free.get(each, nothing)
        for each in {**found.kept, **found.free}
    }


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
