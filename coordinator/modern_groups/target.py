"""Storage of a target assignment: at once for a group of some size, else piece by piece.

First come the parts of members that lose partitions, without their gains; then the others; the
epoch last. So wherever the broker dies, no exclusive partition is in the targets of two members,
and by the group's epoch the assignment has to be computed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from coordinator.effects import Effects

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    from coordinator.effects import Steps
    from coordinator.records import OffsetsRecord

T = TypeVar("T")
TargetT = TypeVar("TargetT")

ASSIGNED_AT_ONCE: Final = 300
"""Limit of members plus partitions for assignment at once: three milliseconds. Fixed by how long
the loop may be held; a larger group is assigned in steps."""
RECORDS_AT_ONCE: Final = 100
"""Records that are appended between two steps. Fixed likewise."""
MEMBERS_PER_STEP: Final = 100
"""Members that are looked at between two steps. Fixed likewise."""


def finished(steps: Generator[None, None, T]) -> T:
    """Run all steps at once and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


class TargetKind(NamedTuple, Generic[TargetT]):
    """Operations on the targets of one kind of group."""

    nothing: TargetT
    common: Callable[[TargetT, TargetT], TargetT]
    """Returns the intersection of two targets."""
    record: Callable[[str, str, TargetT], OffsetsRecord]
    """Stores the part of a member, by group and member id."""


class StoredTargets(NamedTuple, Generic[TargetT]):
    """The targets that a group has, while the next ones are stored."""

    group_id: str
    is_present: Callable[[], bool]
    """Returns whether the group is still the one that was assigned."""
    present_id: Callable[[str], str | None]
    """The id under which a member is in the group now; None if it has left."""
    targets: Mapping[str, TargetT]


def store_in_steps(
    kind: TargetKind[TargetT],
    stored: StoredTargets[TargetT],
    member_ids: Iterable[str],
    assignment: Mapping[str, TargetT],
) -> Steps[None]:
    """Append the records of an assignment; those of members that lose something come first."""
    members = tuple(member_ids)
    for is_last in (False, True):
        effects = Effects()
        for count, member_id in enumerate(members):
            if count % MEMBERS_PER_STEP == 0 or len(effects.records) >= RECORDS_AT_ONCE:
                yield effects if effects.records else None
                effects = Effects()
                if not stored.is_present():
                    return
            present_id = stored.present_id(member_id)
            if present_id is None:
                continue
            old = stored.targets.get(present_id)
            target = assignment.get(member_id, kind.nothing)
            if not is_last:
                target = kind.common(kind.nothing if old is None else old, target)
            if target != old and (is_last or old):
                effects.records.append(kind.record(stored.group_id, present_id, target))
        if effects.records:
            yield effects
