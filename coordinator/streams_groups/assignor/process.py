"""One process of an application during an assignment: its members and their tasks so far."""

from __future__ import annotations

from typing import NamedTuple

from coordinator.streams_groups.assignor.load_queue import LoadQueue


class TaskId(NamedTuple):
    """One task."""

    subtopology_id: str
    partition: int


class Process:
    """A process; its load is the number of its tasks for each member."""

    __slots__ = ("_queue", "active", "counts", "load", "standby", "task_count", "tasks")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        """Tasks by member."""
        self.active: dict[str, set[TaskId]] = {}
        self.standby: dict[str, set[TaskId]] = {}
        self.tasks: set[TaskId] = set()
        self.task_count = 0
        self.load = 0.0
        self._queue: LoadQueue[str] | None = None

    def add_member(self, member_id: str) -> None:
        """A member without tasks."""
        self.counts[member_id] = 0

    def add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Give a task to a member; returns how many it has now."""
        self._queue = None
        return self._add(member_id, task, is_active=is_active)

    def add_to_least_loaded(self, task: TaskId, *, is_active: bool) -> int:
        """Give a task to the member that has the fewest; returns how many it has now."""
        if self._queue is None:
            self._queue = LoadQueue(self.counts.__getitem__, self.counts)
        member_id = self._queue.pop()
        count = self._add(member_id, task, is_active=is_active)
        self._queue.push(member_id)
        return count

    def _add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        self.task_count += 1
        self.tasks.add(task)
        kind = self.active if is_active else self.standby
        kind.setdefault(member_id, set()).add(task)
        self.counts[member_id] += 1
        self.load = self.task_count / len(self.counts)
        return self.counts[member_id]
