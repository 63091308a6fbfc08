"""Every task is at one member, shared out fairly, and stays where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from coordinator.streams_groups.assignor.sticky import (
    Assignment,
    MemberSpecification,
    Specification,
    assign,
)
from coordinator.streams_groups.tasks import NO_TASKS, Tasks
from coordinator.streams_groups.topology import ConfiguredSubtopology, InternalTopic
from tests.support.broker_parts.steps import finished

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from coordinator.streams_groups.tasks import TaskSet

Processes = dict[str, str]


def subtopology(tasks: int, *, is_stateful: bool) -> ConfiguredSubtopology:
    store = InternalTopic("store", tasks, 0, {})
    return ConfiguredSubtopology(tasks, {"t"}, (), {}, {"store": store} if is_stateful else {})


def assigned(
    processes: Processes,
    subtopologies: Mapping[str, ConfiguredSubtopology],
    before: Assignment | None = None,
    replicas: int = 0,
) -> Assignment:
    members = {
        member: MemberSpecification(processes[member], (before or {}).get(member, NO_TASKS))
        for member in sorted(processes)
    }
    found: Assignment = finished(assign(Specification(members, subtopologies, replicas)))
    return found


def ids(tasks: TaskSet) -> Iterator[tuple[str, int]]:
    for name, partitions in tasks.items():
        for partition in partitions:
            yield name, partition


def sizes(assignment: Assignment) -> list[int]:
    return sorted(len([*ids(tasks.active)]) for tasks in assignment.values())


PROCESSES = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("pqr"), min_size=1)
SUBTOPOLOGIES = st.dictionaries(
    st.sampled_from("012"),
    st.builds(lambda n, s: subtopology(n, is_stateful=s), st.integers(1, 9), st.booleans()),
    min_size=1,
)


@given(PROCESSES, SUBTOPOLOGIES, st.integers(0, 3), PROCESSES)
def test_each_task_is_active_once_and_its_copies_are_elsewhere(
    former: Processes,
    subtopologies: dict[str, ConfiguredSubtopology],
    replicas: int,
    processes: Processes,
) -> None:
    before = assigned(former, subtopologies, replicas=replicas)
    after = assigned(processes, subtopologies, before, replicas)
    active = [task for tasks in after.values() for task in ids(tasks.active)]
    wanted = {(name, n) for name, each in subtopologies.items() for n in range(each.task_count)}
    assert sorted(active) == sorted(wanted)
    assert max(sizes(after)) <= -(-len(wanted) // len(processes))
    everything = [
        (processes[member], task)
        for member, tasks in after.items()
        for task in (*ids(tasks.active), *ids(tasks.standby))
    ]
    assert len(set(everything)) == len(everything)  # no process has two of one task
    copies = min(replicas, len(set(processes.values())) - 1)
    standby = [task for tasks in after.values() for task in ids(tasks.standby)]
    for name, partition in wanted:
        is_copied = subtopologies[name].is_stateful
        assert standby.count((name, partition)) == (copies if is_copied else 0)
    assert all(tasks.warmup == {} for tasks in after.values())


@given(PROCESSES, SUBTOPOLOGIES)
def test_nothing_moves_when_nothing_changed(
    processes: Processes, subtopologies: dict[str, ConfiguredSubtopology]
) -> None:
    before = assigned(processes, subtopologies)

    assert assigned(processes, subtopologies, before) == before


def test_tasks_of_one_partition_are_given_out_apart_and_stay_together() -> None:
    both = {"0": subtopology(2, is_stateful=False), "1": subtopology(2, is_stateful=False)}
    before = {
        "a": Tasks({"0": frozenset({0}), "1": frozenset({0})}, {}, {}),
        "b": Tasks({"0": frozenset({1}), "1": frozenset({1})}, {}, {}),
    }

    assert assigned({"a": "p", "b": "q"}, both, before) == before


def test_a_task_goes_to_where_its_copy_is() -> None:
    two = {"0": subtopology(2, is_stateful=True)}
    before = {
        "a": Tasks({"0": frozenset({0})}, {"0": frozenset({1})}, {}),
        "b": Tasks({"0": frozenset({1})}, {"0": frozenset({0})}, {}),
        "c": NO_TASKS,
    }
    after = assigned({"b": "q", "c": "r"}, two, before, replicas=1)

    assert after["c"].active == {"0": frozenset({0})} or after["b"].active == {"0": frozenset({1})}
    assert sizes(after) == [1, 1]


def test_threads_of_a_process_share_its_tasks_evenly() -> None:
    one = {"0": subtopology(6, is_stateful=False)}

    assert sizes(assigned({"a": "p", "b": "p", "c": "q"}, one)) == [2, 2, 2]
