"""Target assignments of large groups, which are made and stored in steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from tests.coordinator.harness import Harness
from tests.coordinator.streams_groups.streams_harness import (
    Member,
    group_of,
    settle,
    streams_harness,
)

if TYPE_CHECKING:
    from coordinator.streams_groups.group import StreamsGroup

TASKS = 400


def loaded_to(harness: Harness, end: int) -> Harness:
    """A shard that has loaded the log as far as it goes after a crash."""
    cut = Harness(harness.settings, harness.topics)
    for entry in harness.log[:end]:
        cut.load(entry)
    cut.run(cut.shard.on_loaded(harness.now_ms))
    return cut


def assert_nobody_shares(group: StreamsGroup) -> None:
    given = [
        (name, partition)
        for target in group.targets.values()
        for name, partitions in target.active.items()
        for partition in partitions
    ]
    assert len(given) == len(set(given))


def test_tasks_never_sent_to_a_member_are_not_sticky() -> None:
    harness = streams_harness()
    for name, process_id in (("a", "p"), ("b", "q"), ("c", "r")):
        Member(harness, name, process_id=process_id).join()  # a is told of nothing when it joins

    active = {name: target.active for name, target in group_of(harness).targets.items()}

    assert active == {"a": {"0": {0, 4}}, "b": {"0": {1, 3}}, "c": {"0": {2, 5}}}


def test_large_group_is_assigned_beside_the_heartbeat() -> None:
    harness = streams_harness(one=TASKS)
    member = Member(harness, "a")
    assert member.join() is ErrorCode.NONE
    assert member.heartbeat() is ErrorCode.NONE
    assert member.count() == 0  # its target was not made yet

    settle(member)

    assert member.count() == TASKS
    assert not group_of(harness).memory.is_assigning


def test_wherever_the_log_ends_the_group_goes_on() -> None:
    harness = streams_harness(one=TASKS)
    members = [Member(harness, f"m{n:02}", process_id=f"p{n % 4}") for n in range(20)]
    for member in members:
        member.join()
    settle(*members)
    start = len(harness.log)
    members[3].leave()
    late = Member(harness, "late", process_id="p9")
    late.join()
    members[4].heartbeat()

    unfinished = []
    for end in range(start, len(harness.log)):
        group = group_of(loaded_to(harness, end))
        assert_nobody_shares(group)
        if group.assignment_epoch < group.epoch:
            unfinished.append(end)
    cut = loaded_to(harness, unfinished[len(unfinished) // 2])
    left = [*members[:3], *members[4:]]
    late.harness = cut
    assert late.join() is ErrorCode.NONE
    for member in left:
        member.harness = cut
        if member.heartbeat() is ErrorCode.FENCED_MEMBER_EPOCH:  # its last answer is lost
            assert member.join() is ErrorCode.NONE
    settle(late, *left)

    assert late.count() + sum(member.count() for member in left) == TASKS
    assert_nobody_shares(group_of(cut))
