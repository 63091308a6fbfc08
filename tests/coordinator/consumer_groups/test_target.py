"""Target assignments of large groups, which are made and stored in steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from tests.coordinator.consumer_groups.consumer_harness import (
    AT_ONCE,
    Member,
    consumer_harness,
    group_of,
    settle,
)
from tests.coordinator.harness import Harness

if TYPE_CHECKING:
    from coordinator.consumer_groups.group import ConsumerGroup
    from coordinator.effects import Steps

PARTITIONS = 900


def members_of(harness: Harness, count: int) -> list[Member]:
    members = [Member(harness, f"m{number:03}", ["orders"]) for number in range(count)]
    for member in members:
        assert member.join() is ErrorCode.NONE
    return members


def loaded_to(harness: Harness, end: int) -> Harness:
    """A shard that has loaded the log as far as it goes after a crash."""
    cut = Harness(harness.settings, harness.topics)
    for entry in harness.log[:end]:
        cut.load(entry)
    cut.run(cut.shard.on_loaded(harness.now_ms))
    return cut


def assert_nobody_shares(group: ConsumerGroup) -> None:
    given = [
        (topic, partition)
        for target in group.targets.values()
        for topic, partitions in target.items()
        for partition in partitions
    ]
    assert len(given) == len(set(given))


def test_large_group_is_assigned_beside_the_heartbeat() -> None:
    harness = consumer_harness(orders=PARTITIONS)
    [first] = members_of(harness, 1)
    assert first.count == 0  # its target was not made yet

    settle(first)

    assert first.count == PARTITIONS


def test_wherever_the_log_ends_the_group_goes_on() -> None:
    harness = consumer_harness(orders=PARTITIONS)
    members = members_of(harness, 120)
    settle(*members)
    start = len(harness.log)
    members[3].leave()
    late = Member(harness, "late", ["orders"])
    late.join()
    members[4].heartbeat()

    for end in range(start, len(harness.log), 7):
        assert_nobody_shares(group_of(loaded_to(harness, end)))

    unfinished = [
        end
        for end in range(start, len(harness.log))
        if (group := group_of(loaded_to(harness, end))).assignment_epoch < group.epoch
    ]
    cut = loaded_to(harness, unfinished[len(unfinished) // 2])
    group = group_of(cut)
    assert group.assignment_epoch < group.epoch
    present = [Member(cut, name, ["orders"]) for name in group.members]
    for member in present:
        stored = group.members[member.member_id]
        member.epoch = stored.member_epoch
        member.owned = {topic: list(given) for topic, given in stored.assigned.items()}
    settle(*present)
    assert sum(member.count for member in present) == PARTITIONS
    assert_nobody_shares(group_of(cut))


def test_members_that_come_and_go_meanwhile() -> None:
    harness = consumer_harness(AT_ONCE, orders=PARTITIONS)
    members = members_of(harness, 60)
    settle(*members)
    static = Member(harness, "static", ["orders"], "i")
    jobs: list[Steps[None]] = []

    def keep(effects: object) -> None:
        jobs.extend(getattr(effects, "jobs", ()))
        effects.jobs = []  # type: ignore[attr-defined]
        run(effects)  # type: ignore[arg-type]

    run = harness.run
    harness.run = keep  # type: ignore[method-assign]
    static.join()
    [job] = jobs
    for count, step in enumerate(job):
        if step is not None:
            run(step)
        if count == 1:
            members[0].leave()
            static.leave(-2)
            static = Member(harness, "again", ["orders"], "i")
            static.join()
        assert_nobody_shares(group_of(harness))
    harness.run = run  # type: ignore[method-assign]
    assert "m000" not in group_of(harness).targets

    settle(*members[1:], static)
    counts = [member.count for member in [*members[1:], static]]
    assert (sum(counts), max(counts) - min(counts)) == (PARTITIONS, 0)
