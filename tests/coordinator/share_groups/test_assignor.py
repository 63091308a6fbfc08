"""The simple assignor: balanced, sticky, and no partition without a member."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from coordinator.share_groups.assignor import assign_shares
from tests.support.broker_parts.steps import finished

if TYPE_CHECKING:
    from coordinator.modern_groups.assignments import Target

TOPICS = [UUID(int=1), UUID(int=2)]
MEMBERS = "abcdefgh"

sizes = st.lists(st.integers(0, 7), min_size=2, max_size=2)


def assigned(
    members: dict[str, set[UUID]], targets: dict[str, Target], counts: list[int]
) -> dict[str, Target]:
    assignable = {
        topic: frozenset(range(count)) for topic, count in zip(TOPICS, counts, strict=True)
    }
    subscriptions = {name: frozenset(topics) for name, topics in members.items()}
    are_alike = len(set(subscriptions.values())) < 2
    return finished(assign_shares(subscriptions, targets, assignable, are_alike=are_alike))


def holders(assignment: dict[str, Target]) -> Counter[tuple[UUID, int]]:
    return Counter(
        (topic, index)
        for target in assignment.values()
        for topic, indexes in target.items()
        for index in indexes
    )


@given(
    st.lists(
        st.tuples(
            st.sets(st.sampled_from(MEMBERS), min_size=1),
            sizes,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_members_that_subscribe_alike_share_evenly(
    rounds: list[tuple[set[str], list[int]]],
) -> None:
    targets: dict[str, Target] = {}
    for names, counts in rounds:
        places = sum(counts)
        targets = assigned({name: set(TOPICS) for name in names}, targets, counts)
        assert targets.keys() == names
        held = holders(targets)
        sharing = -(-len(names) // places) if places else 0
        wanted = {(t, i) for t, count in zip(TOPICS, counts, strict=True) for i in range(count)}
        assert held.keys() == wanted, "each partition has a member, and nothing else is assigned"
        assert all(count <= sharing for count in held.values())
        parts = [sum(map(len, target.values())) for target in targets.values()]
        assert max(parts) <= -(-sharing * places // len(names))


@given(
    st.dictionaries(
        st.sampled_from(MEMBERS), st.sets(st.sampled_from(TOPICS)), min_size=1, max_size=8
    ),
    sizes,
)
def test_members_are_assigned_only_subscribed_topics(
    members: dict[str, set[UUID]], counts: list[int]
) -> None:
    targets = assigned(members, {}, counts)
    for name, topics in members.items():
        assert targets[name].keys() <= topics
    for topic, count in zip(TOPICS, counts, strict=True):
        subscribed = any(topic in topics for topics in members.values())
        found = {index for each, index in holders(targets) if each == topic}
        assert found == (set(range(count)) if subscribed else set())


@given(st.sets(st.sampled_from(MEMBERS), min_size=1), sizes)
def test_an_unchanged_group_keeps_its_assignment(names: set[str], counts: list[int]) -> None:
    members = {name: set(TOPICS) for name in names}
    first = assigned(members, {}, counts)
    assert assigned(members, first, counts) == first


def test_a_new_member_takes_only_surplus_partitions() -> None:
    members = {name: {TOPICS[0]} for name in "ab"}
    before = assigned(members, {}, [6, 0])
    after = assigned({**members, "c": {TOPICS[0]}}, before, [6, 0])
    for name in "ab":
        assert after[name][TOPICS[0]] < before[name][TOPICS[0]]
    assert [len(after[name][TOPICS[0]]) for name in "abc"] == [2, 2, 2]


def test_more_members_than_partitions_share_them() -> None:
    members = {name: {TOPICS[0]} for name in "abcde"}
    assert sorted(holders(assigned(members, {}, [2, 0])).values()) == [3, 3]
