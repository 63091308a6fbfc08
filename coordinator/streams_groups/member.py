"""One member of a streams group, as stored: its metadata and its current tasks."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from coordinator.modern_groups.epochs import JOINING_EPOCH
from coordinator.streams_groups.tasks import OWNS_NOTHING, OwnedTasks
from protocol.messages.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentTaskIds as StoredTasks,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator.streams_groups.tasks import Epochs, TaskSet
    from protocol.messages.streams_group_records import StreamsGroupCurrentMemberAssignmentValue


class MemberState(enum.IntEnum):
    """Progress of a member with its next assignment. The values are stored."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    """It has to revoke tasks first."""
    UNRELEASED_TASKS = 3
    """It has all of its next tasks that are free; others still own the rest."""
    UNKNOWN = 127
    """Stored by a later release that has more states."""

    @classmethod
    def _missing_(cls, value: object) -> MemberState:  # noqa: ARG003 - as enum calls it
        return cls.UNKNOWN


class Endpoint(NamedTuple):
    """Address of a member for interactive queries."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """One member. Changed only by replacing it."""

    member_id: str
    member_epoch: int = JOINING_EPOCH
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = -1
    process_id: str = ""
    """The instance of the application that it is a thread of."""
    endpoint: Endpoint | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    assigned: OwnedTasks = OWNS_NOTHING
    revoking: OwnedTasks = OWNS_NOTHING
    """Tasks it has to revoke, and may still run."""

    is_classic = False
    """Members of the classic protocol are not in streams groups."""

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether it has exactly the assignment of this epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def task_epoch(self, subtopology_id: str, partition: int) -> int | None:
        """The epoch in which it got an active task; None if it does not own it."""
        for owned in (self.assigned, self.revoking):
            epoch = owned.active.get(subtopology_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


def stored_epochs(tasks: Epochs) -> list[StoredTasks]:
    """Active tasks in the form of a record."""
    stored = []
    for subtopology_id in sorted(tasks):
        epochs = tasks[subtopology_id]
        partitions = sorted(epochs)
        stored.append(
            StoredTasks(
                subtopology_id=subtopology_id,
                partitions=partitions,
                assignment_epochs=[epochs[index] for index in partitions],
            )
        )
    return stored


def stored_tasks(tasks: TaskSet) -> list[StoredTasks]:
    """Other tasks in the form of a record."""
    return [
        StoredTasks(subtopology_id=each, partitions=sorted(tasks[each])) for each in sorted(tasks)
    ]


def current_of(value: StreamsGroupCurrentMemberAssignmentValue) -> dict[str, object]:
    """The fields of a member that a record of its current assignment sets."""
    epoch = value.member_epoch
    return {
        "member_epoch": epoch,
        "previous_member_epoch": value.previous_member_epoch,
        "state": MemberState(value.state),
        "assigned": OwnedTasks(
            _epochs(value.active_tasks, epoch),
            _tasks(value.standby_tasks),
            _tasks(value.warmup_tasks),
        ),
        "revoking": OwnedTasks(
            _epochs(value.active_tasks_pending_revocation, epoch),
            _tasks(value.standby_tasks_pending_revocation),
            _tasks(value.warmup_tasks_pending_revocation),
        ),
    }


def _epochs(stored: Iterable[StoredTasks], default_epoch: int) -> Epochs:
    found: dict[str, Mapping[int, int]] = {}
    for each in stored:
        epochs = each.assignment_epochs
        if not epochs or len(epochs) != len(each.partitions):
            epochs = [default_epoch] * len(each.partitions)
        found[each.subtopology_id] = dict(zip(each.partitions, epochs, strict=True))
    return found


def _tasks(stored: Iterable[StoredTasks]) -> TaskSet:
    return {each.subtopology_id: frozenset(each.partitions) for each in stored}
