"""A streams group as built from its records: members, topology, epochs, target and current tasks.

Changed by replay alone. The unstored state that heartbeats keep of it is in `memory`, and is new
with the group.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from coordinator.modern_groups.group import ModernGroup
from coordinator.streams_groups.member import StreamsMember
from coordinator.streams_groups.tasks import NO_TASKS, Tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator.modern_groups.group_kind import CommittedPartition
    from coordinator.streams_groups.tasks import OwnedTasks, TaskOffsets, TaskSet
    from coordinator.streams_groups.topology import ConfiguredTopology, Topology
    from protocol.messages.streams_groups import StreamsGroupHeartbeatResponse

NOT_VALIDATED: Final = -1
NO_PROCESSES: Final[frozenset[str]] = frozenset()


class StreamsGroupState(enum.Enum):
    """The value is the name that clients see."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    """Topics of the topology are missing, or are not partitioned as it takes."""
    ASSIGNING = "Assigning"
    """The target assignment is of an earlier epoch than the group."""
    RECONCILING = "Reconciling"
    """Some member does not have its part of the target assignment yet."""
    STABLE = "Stable"


@dataclass(slots=True)
class Memory:
    """Unstored state of a group."""

    configured: ConfiguredTopology | None = None
    checked_revision: int = -1
    """The revision of the topics as of which the group's epoch is right."""
    checked_epoch: int = 0
    is_assigning: bool = False
    shutdown_member_id: str | None = None
    """The member that asked first for the end of the application."""
    endpoint_epoch: int = 0
    endpoints: dict[str, StreamsGroupHeartbeatResponse.EndpointToPartitions] = field(
        default_factory=dict
    )
    """By member, until its tasks change."""
    task_offsets: dict[str, TaskOffsets] = field(default_factory=dict)
    """By member, if it has reported any."""

    def request_shutdown(self, member_id: str) -> None:
        """Ask all members to shut down, as long as there are any."""
        if self.shutdown_member_id is None:
            self.shutdown_member_id = member_id


class TaskProcesses:
    """Processes that have a standby or warm-up task."""

    __slots__ = ("_by_subtopology",)

    def __init__(self) -> None:
        self._by_subtopology: dict[str, dict[int, frozenset[str]]] = {}

    def of(self, subtopology_id: str, partition: int) -> frozenset[str]:
        """The processes that have this task."""
        return self._by_subtopology.get(subtopology_id, {}).get(partition, NO_PROCESSES)

    def add(self, tasks: TaskSet, process_id: str) -> None:
        """The process has these tasks."""
        for subtopology_id, partitions in tasks.items():
            known = self._by_subtopology.setdefault(subtopology_id, {})
            for partition in partitions:
                known[partition] = known.get(partition, NO_PROCESSES) | {process_id}

    def remove(self, tasks: TaskSet, process_id: str) -> None:
        """The process has them no more."""
        for subtopology_id, partitions in tasks.items():
            known = self._by_subtopology.get(subtopology_id, {})
            for partition in partitions:
                left = known.get(partition, NO_PROCESSES) - {process_id}
                if left:
                    known[partition] = left
                else:
                    known.pop(partition, None)
            if not known:
                self._by_subtopology.pop(subtopology_id, None)


class StreamsGroup(ModernGroup[StreamsMember, Tasks]):
    """One group."""

    __slots__ = (
        "active_processes",
        "assignment_configs",
        "memory",
        "standby_processes",
        "static_members",
        "topology",
        "validated_topology_epoch",
        "warmup_processes",
    )

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.validated_topology_epoch = 0
        """The epoch of the topology that was ready last; NOT_VALIDATED for none."""
        self.assignment_configs: Mapping[str, str] = {}
        self.topology: Topology | None = None
        self.active_processes: dict[str, dict[int, str]] = {}
        """Process of the owner of an active task, including one that still has to revoke it."""
        self.standby_processes = TaskProcesses()
        self.warmup_processes = TaskProcesses()
        self.static_members: dict[str, str] = {}
        """Member id by instance id."""
        self.memory = Memory()

    @property
    def state(self) -> StreamsGroupState:
        """State as reported to clients; costs a look at every member."""
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    def static_member(self, instance_id: str | None) -> StreamsMember | None:
        """The member that has the instance id."""
        return self.members.get(self.static_members.get(instance_id or "", ""))

    def target_of(self, member_id: str) -> Tasks:
        """A member's part of the target assignment."""
        return self.targets.get(member_id, NO_TASKS)

    def active_process(self, subtopology_id: str, partition: int) -> str | None:
        """The process that has an active task; None if it is free."""
        return self.active_processes.get(subtopology_id, {}).get(partition)

    def assigned_since(self, member: StreamsMember, committed: CommittedPartition) -> int | None:
        """The epoch in which a member got the task that reads a partition; None without it."""
        if self.topology is None:
            return None
        subtopology_id = self.topology.source_topics.get(committed.topic)
        if subtopology_id is None:
            return None
        return member.task_epoch(subtopology_id, committed.partition)

    # Replay

    def put_member(self, member: StreamsMember) -> None:
        """Add or replace a member."""
        old = self.members.get(member.member_id)
        if old is not None:
            self._release(old)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        for owned in (member.assigned, member.revoking):
            self._occupy(owned, member.process_id)
        self.memory.endpoints.pop(member.member_id, None)

    def remove_member(self, member_id: str) -> None:
        """Remove a member, if it is one."""
        old = self.members.pop(member_id, None)
        if old is not None:
            self._release(old)
        self.memory.endpoints.pop(member_id, None)
        self.memory.task_offsets.pop(member_id, None)
        if not self.members:
            self.memory.shutdown_member_id = None

    def _release(self, member: StreamsMember) -> None:
        process_id, instance_id = member.process_id, member.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]
        for owned in (member.assigned, member.revoking):
            for subtopology_id, partitions in owned.active.items():
                self._release_active(subtopology_id, partitions, process_id)
            self.standby_processes.remove(owned.standby, process_id)
            self.warmup_processes.remove(owned.warmup, process_id)

    def _release_active(
        self, subtopology_id: str, partitions: Iterable[int], process_id: str
    ) -> None:
        known = self.active_processes.get(subtopology_id)
        if known is None:
            return
        for partition in partitions:
            if known.get(partition) == process_id:
                del known[partition]
        if not known:
            del self.active_processes[subtopology_id]

    def _occupy(self, owned: OwnedTasks, process_id: str) -> None:
        for subtopology_id, partitions in owned.active.items():
            known = self.active_processes.setdefault(subtopology_id, {})
            known.update(dict.fromkeys(partitions, process_id))
        self.standby_processes.add(owned.standby, process_id)
        self.warmup_processes.add(owned.warmup, process_id)
