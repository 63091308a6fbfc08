"""The `sticky` assignor: tasks stay where they are, or where a copy is, as far as that is fair.

Active tasks first, each at one member, no member with more than its share, which is the number of
tasks by that of members, rounded up; once a member has its share, the rest is divided again.

    1. a task goes to the member that has it
    2. else to a member that has it as a standby task, or reports that it has restored some of it
    3. else to the least loaded member of the least loaded process

Standby tasks are assigned likewise, each to a process without a copy of the task; with too few
processes there are fewer of them. Tasks that stay are taken by partition, so that tasks of one
partition stay together, and tasks that move by subtopology.

Source: KIP-1071, `StickyTaskAssignor`.
"""

from __future__ import annotations

from collections.abc import Generator
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator.streams_groups.assignor.load_queue import LoadQueue
from coordinator.streams_groups.assignor.process import Process, TaskId
from coordinator.streams_groups.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator.streams_groups.topology import ConfiguredSubtopology

TASKS_PER_STEP: Final = 200
"""Tasks that are placed before others are served: a millisecond."""


class MemberSpecification(NamedTuple):
    """One member as the assignor sees it."""

    process_id: str
    owned: Tasks
    """Tasks it has now."""
    offsets: Mapping[tuple[str, int], int] = MappingProxyType({})
    """Restored offsets by task."""


class Specification(NamedTuple):
    """A group as the assignor sees it."""

    members: Mapping[str, MemberSpecification]
    """In the order of their ids."""
    subtopologies: Mapping[str, ConfiguredSubtopology]
    num_standby_replicas: int


Assignment = dict[str, Tasks]
"""Every member's part, by member id."""

Steps = Generator[None, None, None]


class _Quota:
    """Quota of tasks per member; whenever one is full, the rest is divided again."""

    __slots__ = ("_members", "_tasks", "limit")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self.limit = self._share()

    def note(self, count: int) -> None:
        """A member has this many tasks now."""
        if count == self.limit:
            self._members -= 1
            self._tasks -= count
            self.limit = self._share()

    def _share(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0


class _Member(NamedTuple):
    process: Process
    member_id: str

    @property
    def task_count(self) -> int:
        return self.process.counts[self.member_id]


class _Candidate(NamedTuple):
    kind: int
    """0 with a standby task, 1 without."""
    lead: int
    """The negative of how far it is."""
    member: _Member


def assign(specified: Specification) -> Generator[None, None, Assignment]:
    """Assign all tasks, in steps."""
    assigning = _Assigning(specified)
    yield from assigning.look_back()
    yield from assigning.assign_active()
    if specified.num_standby_replicas > 0:
        yield from assigning.assign_standby()
    return (yield from assigning.result())


class _Assigning:
    def __init__(self, specified: Specification) -> None:
        self._specified = specified
        self._processes: dict[str, Process] = {}
        process_ids = {each.process_id for each in specified.members.values()}
        self._processes = {process_id: Process() for process_id in sorted(process_ids)}
        self._had_active: dict[TaskId, _Member] = {}
        self._candidates: dict[TaskId, list[_Candidate]] = {}
        """Members with some of a task's state: those with a standby task, then those with most."""
        for member_id, member in specified.members.items():
            self._processes[member.process_id].add_member(member_id)
        replicas = specified.num_standby_replicas
        subtopologies = specified.subtopologies.values()
        active = sum(each.task_count for each in subtopologies)
        standby = sum(each.task_count * replicas for each in subtopologies if each.is_stateful)
        self._active_quota = _Quota(active, len(specified.members))
        self._quota = _Quota(active + standby, len(specified.members))

    def look_back(self) -> Steps:
        """Note the current owners of the tasks."""
        for member_id, each in self._specified.members.items():
            member = _Member(self._processes[each.process_id], member_id)
            for task in _task_ids(each.owned.active):
                self._had_active[task] = member
            standby = set(_task_ids(each.owned.standby))
            for task in standby:
                candidate = _Candidate(0, -each.offsets.get(task, 0), member)
                self._candidates.setdefault(task, []).append(candidate)
            for place, offset in each.offsets.items():
                task = TaskId(*place)
                if task not in standby:
                    candidate = _Candidate(1, -offset, member)
                    self._candidates.setdefault(task, []).append(candidate)
            yield
        for candidates in self._candidates.values():
            candidates.sort(key=_rank)
        yield

    # Active tasks

    def assign_active(self) -> Steps:
        """Give every task to one member."""
        tasks = self._tasks(is_active=True)
        tasks.sort(key=_by_partition)
        yield
        left = []
        for count, task in enumerate(tasks):
            if count % TASKS_PER_STEP == TASKS_PER_STEP - 1:
                yield
            if not self._keep_active(self._had_active.get(task), task):
                left.append(task)
        others = []
        for count, task in enumerate(left):
            if count % TASKS_PER_STEP == TASKS_PER_STEP - 1:
                yield
            if not self._keep_active(_least_loaded(self._candidates.get(task, ())), task):
                others.append(task)
        others.sort()
        yield
        queue = self._queue()
        for count, task in enumerate(others):
            if count % TASKS_PER_STEP == TASKS_PER_STEP - 1:
                yield
            process = queue.pop()
            self._note_active(process.add_to_least_loaded(task, is_active=True))
            queue.push(process)

    def _keep_active(self, member: _Member | None, task: TaskId) -> bool:
        if member is None or member.task_count >= self._active_quota.limit:
            return False
        self._note_active(member.process.add(member.member_id, task, is_active=True))
        return True

    def _note_active(self, count: int) -> None:
        self._active_quota.note(count)
        self._quota.note(count)

    # Standby tasks

    def assign_standby(self) -> Steps:
        """Give copies of tasks with stores to other processes."""
        replicas = self._specified.num_standby_replicas
        tasks = self._tasks(is_active=False)
        tasks.sort(key=_by_partition, reverse=True)
        yield
        left: list[tuple[TaskId, int]] = []
        for count, task in enumerate(tasks):
            if count % TASKS_PER_STEP == TASKS_PER_STEP - 1:
                yield
            for placed in range(replicas):
                if not self._keep_standby(task):
                    left.append((task, replicas - placed))
                    break
        left.sort(reverse=True, key=_task_of)
        yield
        queue = self._queue()
        for count, (task, missing) in enumerate(left):
            if count % TASKS_PER_STEP == TASKS_PER_STEP - 1:
                yield
            for _ in range(missing):
                if not self._copy_to_least_loaded(queue, task):
                    break

    def _keep_standby(self, task: TaskId) -> bool:
        had = self._had_active.get(task)
        if had is not None and self._may_copy(had, task):
            self._copy(had, task)
            return True
        member = _least_loaded(self._candidates.get(task, ()), task)
        if member is None or member.task_count >= self._quota.limit:
            return False
        self._copy(member, task)
        return True

    def _may_copy(self, member: _Member, task: TaskId) -> bool:
        return task not in member.process.tasks and member.task_count < self._quota.limit

    def _copy(self, member: _Member, task: TaskId) -> None:
        self._quota.note(member.process.add(member.member_id, task, is_active=False))

    def _copy_to_least_loaded(self, queue: LoadQueue[Process], task: TaskId) -> bool:
        """Give a copy to the least loaded process without the task; False if there is none."""
        seen = []
        is_placed = False
        while queue and not is_placed:
            process = queue.pop()
            seen.append(process)
            if task not in process.tasks:
                self._quota.note(process.add_to_least_loaded(task, is_active=False))
                is_placed = True
        for process in reversed(seen):
            queue.push(process)
        return is_placed

    # All of it

    def _tasks(self, *, is_active: bool) -> list[TaskId]:
        return [
            TaskId(subtopology_id, partition)
            for subtopology_id, each in self._specified.subtopologies.items()
            if is_active or each.is_stateful
            for partition in range(each.task_count)
        ]

    def _queue(self) -> LoadQueue[Process]:
        return LoadQueue(_load_of, self._processes.values())

    def result(self) -> Generator[None, None, Assignment]:
        """Every member's part."""
        found: Assignment = {}
        for process in self._processes.values():
            for member_id in process.counts:
                found[member_id] = Tasks(
                    _task_set(process.active.get(member_id, ())),
                    _task_set(process.standby.get(member_id, ())),
                    {},
                )
            yield
        return found


def _by_partition(task: TaskId) -> tuple[int, str]:
    return task.partition, task.subtopology_id


def _task_of(entry: tuple[TaskId, int]) -> TaskId:
    return entry[0]


def _rank(candidate: _Candidate) -> tuple[int, int]:
    return candidate.kind, candidate.lead


def _load_of(process: Process) -> float:
    return process.load


def _least_loaded(candidates: Iterable[_Candidate], task: TaskId | None = None) -> _Member | None:
    """Return the first member, unless a later one has less load, as has its process.

    With a task, members of processes that have it are left out.
    """
    chosen: _Member | None = None
    for _, _, member in candidates:
        if task is not None and task in member.process.tasks:
            continue
        if chosen is None or (
            member.process.load < chosen.process.load and member.task_count < chosen.task_count
        ):
            chosen = member
    return chosen


def _task_ids(tasks: Mapping[str, Iterable[int]]) -> Iterable[TaskId]:
    for subtopology_id, partitions in tasks.items():
        for partition in partitions:
            yield TaskId(subtopology_id, partition)


def _task_set(tasks: Iterable[TaskId]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for task in tasks:
        found.setdefault(task.subtopology_id, set()).add(task.partition)
    return {each: frozenset(found[each]) for each in sorted(found)}
