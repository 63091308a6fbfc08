"""Assignment of replicas to brokers."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.partitions.replica_assignment import (
    AssignmentPlan,
    assign_replicas,
    checked_assignment,
    continue_assignment,
)
from protocol.errors import ApiError, ErrorCode

_brokers = st.dictionaries(
    st.integers(0, 50), st.sampled_from(["r1", "r2", "r3"]), min_size=1, max_size=9
)


def test_five_brokers_follow_the_table() -> None:
    brokers: dict[int, str | None] = dict.fromkeys(range(5))
    placed = dict(assign_replicas(brokers, AssignmentPlan(10, 3), lambda _: 0))
    assert [placed[p] for p in range(7)] == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
    ]


@given(_brokers, st.integers(1, 60), st.data())
def test_replicas_are_distinct_and_leaders_even(
    racks: dict[int, str], partitions: int, data: st.DataObject
) -> None:
    use_racks = data.draw(st.booleans())
    brokers: dict[int, str | None] = {
        broker: rack if use_racks else None for broker, rack in racks.items()
    }
    factor = data.draw(st.integers(1, len(brokers)))
    plan = AssignmentPlan(partitions, factor)
    placed = dict(assign_replicas(brokers, plan, lambda n: data.draw(st.integers(0, n - 1))))
    assert sorted(placed) == list(range(partitions))
    for replicas in placed.values():
        assert len(set(replicas)) == factor
        assert set(replicas) <= set(brokers)
        if use_racks:
            wanted = min(factor, len(set(racks.values())))
            assert len({racks[replica] for replica in replicas}) == wanted
    leaders = Counter(replicas[0] for replicas in placed.values())
    assert max(leaders.values()) - min(leaders[broker] for broker in brokers) <= 1


@given(st.integers(1, 9), st.integers(1, 30), st.integers(1, 30), st.data())
def test_growth_goes_on_where_creation_ended(
    count: int, before: int, added: int, data: st.DataObject
) -> None:
    brokers: dict[int, str | None] = dict.fromkeys(range(count))
    plan = AssignmentPlan(before, count)
    existing = dict(assign_replicas(brokers, plan, lambda n: data.draw(st.integers(0, n - 1))))
    grown = dict(continue_assignment(brokers, existing, added, lambda _: 0))
    assert sorted(grown) == list(range(before, before + added))
    leaders = Counter(replicas[0] for replicas in {**existing, **grown}.values())
    assert max(leaders.values()) - min(leaders[broker] for broker in brokers) <= 1


def test_brokers_without_racks_make_racks_count_for_nothing() -> None:
    placed = dict(assign_replicas({0: "a", 1: None}, AssignmentPlan(1, 2), lambda _: 0))
    assert placed == {0: (0, 1)}


@pytest.mark.parametrize(
    ("plan", "code"),
    [
        (AssignmentPlan(0, 1), ErrorCode.INVALID_PARTITIONS),
        (AssignmentPlan(1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (AssignmentPlan(1, 3), ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_impossible_counts_are_refused(plan: AssignmentPlan, code: ErrorCode) -> None:
    with pytest.raises(ApiError) as caught:
        dict(assign_replicas({0: None, 1: None}, plan, lambda _: 0))
    assert caught.value.code is code


@pytest.mark.parametrize(
    "assignment",
    [
        {0: (0,), 2: (0,)},
        {1: (0,)},
        {0: ()},
        {0: (0, 1), 1: (0,)},
        {0: (0, 0)},
        {0: (0, 7)},
    ],
)
def test_bad_manual_assignments_are_refused(assignment: dict[int, tuple[int, ...]]) -> None:
    with pytest.raises(ApiError) as caught:
        dict(checked_assignment(assignment, {0: None, 1: None}))
    assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(
    "assignment",
    [
        {0: (0,) * 100_000},
        {0: tuple(range(100_000))},
        {2 * index: (0,) for index in range(100_000)},
    ],
    ids=["one broker", "unknown brokers", "gaps"],
)
def test_a_long_assignment_is_not_repeated_in_the_error_message(
    assignment: dict[int, tuple[int, ...]],
) -> None:
    with pytest.raises(ApiError) as caught:
        dict(checked_assignment(assignment, {0: None, 1: None}))
    assert len(caught.value.message) < 200
