"""Invariants of the assignors, for drawn groups; tests beside Apache compare the results."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.consumer_groups.assignors.ranges import assign_ranges
from coordinator.consumer_groups.assignors.specification import (
    Assignment,
    Assignor,
    MemberSpecification,
    Specification,
)
from coordinator.consumer_groups.assignors.uniform import assign_uniformly
from tests.support.broker_parts.steps import finished

TOPICS = [UUID(int=number) for number in range(1, 5)]
BOTH = [assign_ranges, assign_uniformly]


@st.composite
def groups(draw: st.DrawFn) -> Specification:
    """Members with subscriptions and a former target, in which no partition is twice."""
    counts = {topic: draw(st.integers(1, 8)) for topic in TOPICS}
    are_alike = draw(st.booleans())
    subsets = st.sets(st.sampled_from(TOPICS), min_size=1)
    shared = frozenset(draw(subsets))
    names = [f"m{number}" for number in range(draw(st.integers(1, 7)))]
    topics = {name: shared if are_alike else frozenset(draw(subsets)) for name in names}
    former: dict[str, dict[UUID, set[int]]] = {name: {} for name in names}
    for topic, count in counts.items():
        for partition in range(count):
            owner = draw(st.sampled_from([None, *names]))
            if owner is not None:
                former[owner].setdefault(topic, set()).add(partition)
    members = {
        name: MemberSpecification(
            None, topics[name], {topic: frozenset(had) for topic, had in former[name].items()}
        )
        for name in names
    }
    return Specification(members, counts, are_alike)


def placed(assignment: Assignment) -> dict[tuple[UUID, int], str]:
    """Return the owner of each partition; no two share one."""
    owners: dict[tuple[UUID, int], str] = {}
    for member, target in assignment.items():
        for topic, partitions in target.items():
            for partition in partitions:
                assert (topic, partition) not in owners
                owners[topic, partition] = member
    return owners


@pytest.mark.parametrize("assign", BOTH)
@settings(max_examples=150, deadline=None)
@given(group=groups())
def test_every_partition_has_one_owner_who_subscribes(
    assign: Assignor, group: Specification
) -> None:
    owners = placed(finished(assign(group)))

    subscribed = frozenset[UUID]().union(*(member.topics for member in group.members.values()))
    wanted = {
        (topic, each) for topic in subscribed for each in range(group.partition_counts[topic])
    }
    assert owners.keys() == wanted
    assert all(topic in group.members[owner].topics for (topic, _), owner in owners.items())


@settings(max_examples=150, deadline=None)
@given(group=groups())
def test_uniform_gives_all_members_as_much_and_then_rests(group: Specification) -> None:
    assignment = finished(assign_uniformly(group))
    if group.are_alike:
        loads = [sum(map(len, assignment.get(member, {}).values())) for member in group.members]
        assert max(loads) - min(loads) <= 1
    settled = Specification(
        {
            name: member._replace(target=assignment.get(name, {}))
            for name, member in group.members.items()
        },
        group.partition_counts,
        group.are_alike,
    )
    assert placed(finished(assign_uniformly(settled))) == placed(assignment)


def test_uniform_moves_as_little_as_it_must() -> None:
    [topic, *_] = TOPICS
    had = {"a": frozenset({0, 1, 2, 3}), "b": frozenset({4, 5, 6}), "c": frozenset[int]()}
    members = {
        name: MemberSpecification(None, frozenset({topic}), {topic: had[name]} if had[name] else {})
        for name in had
    }

    assignment = finished(assign_uniformly(Specification(members, {topic: 7}, are_alike=True)))

    assert assignment == {
        "a": {topic: frozenset({0, 1, 2})},
        "b": {topic: frozenset({4, 5})},
        "c": {topic: frozenset({3, 6})},
    }


def test_ranges_go_to_static_members_first() -> None:
    one, two, *_ = TOPICS
    members = {
        name: MemberSpecification(instance, frozenset({one, two}), {})
        for name, instance in (("a", None), ("b", "j"), ("c", "i"))
    }

    assignment = finished(assign_ranges(Specification(members, {one: 5, two: 2}, are_alike=True)))

    assert assignment == {
        "c": {one: frozenset({0, 1}), two: frozenset({0})},
        "b": {one: frozenset({2, 3}), two: frozenset({1})},
        "a": {one: frozenset({4})},
    }
