"""A consumer group becomes a classic one when the last member of the consumer protocol is gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.consumer_groups.settings import MigrationPolicy
from coordinator.groups.states import GroupState
from protocol.errors import ErrorCode
from tests.coordinator.consumer_groups.classic_members.classic_member import ClassicMember
from tests.coordinator.consumer_groups.classic_members.moves import (
    PARTITIONS,
    TOPIC,
    classic_group,
    rejoin_all,
    settle,
)
from tests.coordinator.consumer_groups.consumer_harness import (
    AT_ONCE,
    Member,
    consumer_harness,
    group_of,
)
from tests.coordinator.harness import GROUP, Harness


def mixed_group() -> tuple[Harness, list[ClassicMember], Member]:
    """A settled consumer group with two members of the classic protocol and one of its own."""
    harness, classic = classic_group(2)
    member = Member(harness, "c", [TOPIC])
    member.join()
    settle(*classic, member)
    return harness, classic, member


@pytest.mark.parametrize("how", ["leave", "expire"])
def test_classic_members_rebalance_after_the_last_consumer_member_left(how: str) -> None:
    harness, classic, member = mixed_group()
    one = classic[0]
    harness.commit(7, member_id=one.member_id, generation=one.generation)
    epoch = group_of(harness).epoch
    if how == "leave":
        assert member.leave() is ErrorCode.NONE
    else:
        for _ in range(10):
            harness.advance(5_000)
            for each in classic:
                harness.heartbeat(each.member_id, each.generation)

    group = harness.shard.find(GROUP)
    assert group is not None
    assert (group.state, group.generation) == (GroupState.PREPARING_REBALANCE, epoch)
    assert harness.shard.consumers.groups.find(GROUP) is None
    assert harness.stored_offsets() == {(TOPIC, 0): 7}
    told = [harness.heartbeat(each.member_id, each.generation) for each in classic]
    assert told == [ErrorCode.REBALANCE_IN_PROGRESS] * 2

    rejoin_all(harness, classic)
    assert [each.count for each in classic] == [3, 3]
    assert group.generation == epoch + 1


def test_the_downgrade_record_holds_every_members_assignment() -> None:
    harness, classic, member = mixed_group()
    member.leave()

    loaded = harness.restarted()

    group = loaded.shard.find(GROUP)
    assert group is not None
    assert {each.member_id for each in classic} == group.members.keys()
    assert all(each.assignment for each in group.members.values())
    assert loaded.shard.consumers.groups.find(GROUP) is None


def test_partitions_a_classic_member_still_holds_are_not_assigned_to_others() -> None:
    """The group turns consumer, classic, and consumer again before the member knows."""
    harness, [classic] = classic_group(1)
    assert classic.count == PARTITIONS
    guest = Member(harness, "b", [TOPIC])
    guest.join()
    guest.leave()

    other = Member(harness, "a", [TOPIC])
    other.join()

    assert not other.owned
    assert classic.heartbeat() is ErrorCode.ILLEGAL_GENERATION
    assert classic.join() is ErrorCode.NONE
    settle(classic, other)
    assert classic.count + sum(map(len, other.owned.values())) == PARTITIONS
    assert other.owned


def test_others_rebalance_though_the_coordinator_dies_before_they_do() -> None:
    """Otherwise no member would get the partitions of the one that left, as none is notified."""
    harness, classic, member = mixed_group()
    member.leave()

    loaded = harness.restarted()

    told = [loaded.heartbeat(each.member_id, each.generation) for each in classic]
    assert told == [ErrorCode.REBALANCE_IN_PROGRESS] * 2
    for each in classic:
        each.harness = loaded
    rejoin_all(loaded, classic)
    assert [each.count for each in classic] == [3, 3]
    again = loaded.restarted()
    assert [again.heartbeat(each.member_id, each.generation) for each in classic] == [0, 0]


def test_a_later_generation_is_no_downgrade_after_compaction() -> None:
    harness, classic, member = mixed_group()
    member.leave()
    one = classic[0]
    harness.commit(7, member_id=one.member_id, generation=one.generation)
    rejoin_all(harness, classic)

    harness.compact(1.0, drops_tombstones=False)
    loaded = harness.restarted()

    assert [loaded.heartbeat(each.member_id, each.generation) for each in classic] == [0, 0]


def test_all_that_members_support_is_known_after_the_move() -> None:
    harness, _classic, member = mixed_group()
    member.leave()

    other = ClassicMember(harness, [TOPIC], protocols=("sticky",))
    assert other.ask_to_join().is_parked  # not refused for want of "range"


def test_sessions_go_on_in_the_classic_group() -> None:
    harness, [one, two], member = mixed_group()
    member.leave()
    harness.advance(9_000)
    harness.heartbeat(one.member_id, one.generation)
    harness.advance(9_000)

    group = harness.shard.find(GROUP)
    assert group is not None
    assert group.members.keys() == {one.member_id}
    assert two.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    "settings",
    [
        replace(AT_ONCE, migration=MigrationPolicy.UPGRADE),
        replace(AT_ONCE, classic_max_size=1),
    ],
    ids=["policy", "too large"],
)
def test_group_may_have_to_stay_a_consumer_group(settings: object) -> None:
    harness, classic = classic_group(2, settings)  # type: ignore[arg-type]
    member = Member(harness, "c", [TOPIC])
    member.join()
    settle(*classic, member)
    member.leave()

    assert classic[0].join() is ErrorCode.NONE  # nothing tells it to, as in Apache Kafka
    settle(*classic)
    assert [each.count for each in classic] == [3, 3]
    assert harness.shard.find(GROUP) is None


def test_static_member_goes_back_and_keeps_its_partitions() -> None:
    harness = consumer_harness(orders=PARTITIONS)
    new = Member(harness, "c", [TOPIC], instance_id="i")
    new.join()
    old = ClassicMember(harness, [TOPIC], instance_id="i")

    assert old.joined(old.ask_to_join()) is ErrorCode.NONE

    group = harness.shard.find(GROUP)
    assert group is not None
    assert (group.state, group.generation) == (GroupState.STABLE, old.generation)
    assert old.sync() is ErrorCode.NONE
    assert old.count == PARTITIONS
    assert new.heartbeat() is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_static_member_with_another_subscription_is_rebalanced() -> None:
    harness = consumer_harness(orders=PARTITIONS, other=1)
    Member(harness, "c", [TOPIC], instance_id="i").join()
    old = ClassicMember(harness, ["other"], instance_id="i")

    assert old.joined(old.ask_to_join()) is ErrorCode.NONE

    group = harness.shard.find(GROUP)
    assert group is not None
    assert group.state is GroupState.PREPARING_REBALANCE
    assert old.sync() is ErrorCode.ILLEGAL_GENERATION  # and it joins again
    loaded = harness.restarted().shard.find(GROUP)
    assert loaded is not None
    assert loaded.state is GroupState.PREPARING_REBALANCE


def test_an_administrator_removes_members_of_both_protocols_at_once() -> None:
    harness, [one, two], member = mixed_group()

    left = harness.leave(one.member_id, member.member_id, "nobody")

    assert [each.error_code for each in left] == [0, 0, ErrorCode.UNKNOWN_MEMBER_ID]
    group = harness.shard.find(GROUP)
    assert group is not None
    assert group.members.keys() == {two.member_id}
    assert two.leave() is ErrorCode.NONE


def test_classic_requests_of_unknown_and_stale_members_are_refused() -> None:
    harness, [one, _], member = mixed_group()
    stranger = replace(one, member_id="nobody")

    assert stranger.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert stranger.sync() is ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.heartbeat(member.member_id, member.epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    stale = replace(one, generation=one.generation - 1)
    assert stale.sync() is ErrorCode.ILLEGAL_GENERATION
    assert harness.heartbeat(one.member_id, stale.generation) is ErrorCode.ILLEGAL_GENERATION
    wrong = harness.sync(one.member_id, one.generation, protocol_type="connect")
    assert wrong.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
