"""Joining, rebalancing and leaving, by heartbeats."""

from __future__ import annotations

import dataclasses

import pytest

from coordinator.consumer_groups.settings import ConsumerGroupSettings
from protocol.errors import ErrorCode
from tests.coordinator.consumer_groups.consumer_harness import (
    AT_ONCE,
    Member,
    beat,
    consumer_harness,
    described,
    group_of,
    settle,
)

STATIC_LEAVE = -2


def test_first_member_gets_everything_at_once() -> None:
    harness = consumer_harness(orders=4)
    member = Member(harness, "a", ["orders"])

    assert member.join() is ErrorCode.NONE

    assert member.epoch == 2
    assert member.count == 4
    assert described(harness).group_state == "Stable"


def test_partition_has_one_owner_while_it_moves() -> None:
    harness = consumer_harness(orders=2)
    a, b = Member(harness, "a", ["orders"]), Member(harness, "b", ["orders"])
    a.join()

    b.join()
    assert (b.epoch, b.count) == (3, 0)
    assert described(harness).group_state == "Reconciling"

    slow = {topic: list(partitions) for topic, partitions in a.owned.items()}
    a.heartbeat()
    assert (a.epoch, a.count) == (2, 1)
    b.heartbeat()
    assert b.count == 0  # a has been told, and may still have it

    a.owned, told = slow, a.owned
    a.heartbeat()
    b.heartbeat()
    assert b.count == 0

    a.owned = told
    a.heartbeat()
    assert a.epoch == 3
    b.heartbeat()
    assert b.count == 1
    assert described(harness).group_state == "Stable"


def test_leaving_member_is_replaced_by_the_others() -> None:
    harness = consumer_harness(orders=6)
    members = [Member(harness, name, ["orders"]) for name in "abc"]
    for member in members:
        member.join()
    settle(*members)
    assert [member.count for member in members] == [2, 2, 2]

    assert members[1].leave() is ErrorCode.NONE
    settle(members[0], members[2])

    assert [members[0].count, members[2].count] == [3, 3]
    assert members[1].heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_static_member_keeps_its_partitions_while_it_is_away() -> None:
    harness = consumer_harness(orders=4)
    a, b = Member(harness, "a", ["orders"], "i"), Member(harness, "b", ["orders"])
    a.join()
    b.join()
    settle(a, b)
    owned, epoch = a.owned, group_of(harness).epoch

    assert a.leave(STATIC_LEAVE) is ErrorCode.NONE
    b.heartbeat()
    assert b.count == 2
    again = Member(harness, "a2", ["orders"], "i")
    assert again.join() is ErrorCode.NONE

    assert again.owned == owned
    assert group_of(harness).epoch == epoch  # nobody else notices
    assert a.heartbeat() is ErrorCode.FENCED_INSTANCE_ID


def test_instance_that_is_in_use_is_not_taken() -> None:
    harness = consumer_harness(orders=4)
    Member(harness, "a", ["orders"], "i").join()

    assert Member(harness, "b", ["orders"], "i").join() is ErrorCode.UNRELEASED_INSTANCE_ID


@pytest.mark.parametrize("ahead", [1, -1])
def test_other_epochs_are_fenced(ahead: int) -> None:
    harness = consumer_harness(orders=4)
    a, b = Member(harness, "a", ["orders"]), Member(harness, "b", ["orders"])
    a.join()
    b.join()
    settle(a, b)
    a.epoch += ahead * 2

    assert a.heartbeat() is ErrorCode.FENCED_MEMBER_EPOCH


def test_of_two_members_with_one_id_the_stale_one_is_fenced() -> None:
    harness = consumer_harness(orders=4)
    first, twin = Member(harness, "a", ["orders"]), Member(harness, "a", ["orders"])
    other = Member(harness, "b", ["orders"])
    first.join()
    assert twin.join() is ErrorCode.NONE  # taken for the first, whose answer was lost
    assert (twin.epoch, twin.owned) == (first.epoch, first.owned)
    other.join()
    settle(first, other)
    assert (first.epoch, first.count, other.count) == (3, 2, 2)

    assert twin.heartbeat() is ErrorCode.FENCED_MEMBER_EPOCH  # it owns what the other has by now
    assert twin.join() is ErrorCode.NONE

    assert (twin.epoch, twin.owned) == (first.epoch, first.owned)
    assert sorted(group_of(harness).members) == ["a", "b"]


def test_lost_answer_is_given_again() -> None:
    harness = consumer_harness(orders=4)
    a, b = Member(harness, "a", ["orders"]), Member(harness, "b", ["orders"])
    a.join()
    b.join()
    a.heartbeat()
    before = a.epoch
    a.heartbeat()
    assert a.epoch == before + 1

    a.epoch = before

    assert a.heartbeat() is ErrorCode.NONE
    assert a.epoch == before + 1


def test_new_partitions_are_given_out() -> None:
    harness = consumer_harness(orders=2)
    member = Member(harness, "a", ["orders"])
    member.join()

    harness.topics.put("orders", 5)
    settle(member)

    assert member.count == 5


def test_topic_that_is_deleted_and_one_that_appears() -> None:
    harness = consumer_harness(orders=2)
    member = Member(harness, "a", ["orders", "later"])
    member.join()

    harness.topics.remove("orders")
    harness.topics.put("later", 3)
    settle(member)

    assert member.count == 3


def test_next_assignment_waits_for_its_interval() -> None:
    harness = consumer_harness(ConsumerGroupSettings(assignment_interval_ms=1_000), orders=2)
    a, b = Member(harness, "a", ["orders"]), Member(harness, "b", ["orders"])
    a.join()

    b.join()
    assert (group_of(harness).epoch, group_of(harness).assignment_epoch) == (3, 2)
    assert described(harness).group_state == "Assigning"
    harness.advance(1_000)
    settle(a, b)

    assert (a.count, b.count) == (1, 1)


def test_member_that_changes_the_preferred_assignor_bumps_the_group_epoch() -> None:
    harness = consumer_harness(orders=2)
    Member(harness, "a", ["orders"]).join()

    Member(harness, "b", []).join(server_assignor="range")
    assert group_of(harness).epoch == 3

    Member(harness, "c", []).join(server_assignor="range")
    assert group_of(harness).epoch == 3


def test_member_that_keeps_partitions_is_removed() -> None:
    harness = consumer_harness(orders=2)
    a, b = Member(harness, "a", ["orders"]), Member(harness, "b", ["orders"])
    a.join(rebalance_timeout_ms=20_000)
    b.join()
    owned = a.owned
    for _ in range(5):
        a.owned = owned
        a.heartbeat()
        harness.advance(5_000)
        b.heartbeat()
    settle(b)

    assert b.count == 2
    assert a.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_member_that_keeps_partitions_is_removed_by_the_next_coordinator_too() -> None:
    harness = consumer_harness(orders=2)
    a, b = Member(harness, "a", ["orders"]), Member(harness, "b", ["orders"])
    a.join(rebalance_timeout_ms=20_000)
    b.join()
    owned = a.owned
    a.heartbeat()

    loaded = harness.restarted()
    for _ in range(5):
        a.harness, a.owned = loaded, owned
        a.heartbeat()
        loaded.advance(5_000)

    assert list(group_of(loaded).members) == ["b"]


def test_session_timeouts_restart_when_the_log_is_loaded() -> None:
    harness = consumer_harness(orders=2)
    a, b = Member(harness, "a", ["orders"]), Member(harness, "b", ["orders"])
    a.join()
    b.join()
    settle(a, b)
    harness.advance(40_000)

    loaded = harness.restarted()
    b.harness = loaded
    loaded.advance(40_000)
    assert len(group_of(loaded).members) == 2
    assert b.heartbeat() is ErrorCode.NONE
    loaded.advance(10_000)

    assert list(group_of(loaded).members) == ["b"]


def test_refused_append_changes_nothing() -> None:
    harness = consumer_harness(orders=2)
    harness.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    member = Member(harness, "a", ["orders"])

    assert member.join() is ErrorCode.NOT_COORDINATOR
    harness.append_error = None
    assert member.join() is ErrorCode.NONE
    assert member.count == 2


@pytest.mark.parametrize("leaves", [True, False])
def test_member_whose_removal_is_not_stored_is_removed_later(*, leaves: bool) -> None:
    harness = consumer_harness(orders=2)
    member = Member(harness, "a", ["orders"])
    member.join()
    harness.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    if leaves:
        assert member.leave() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    harness.advance(45_000)
    assert list(group_of(harness).members) == ["a"]

    harness.append_error = None
    harness.advance(1_000)

    assert not group_of(harness).members


def test_heartbeat_that_is_not_committed_in_time_has_to_look_for_its_coordinator() -> None:
    harness = consumer_harness(orders=2)
    harness.commit_error = ErrorCode.REQUEST_TIMED_OUT

    error = Member(harness, "a", ["orders"]).join()

    assert error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_regular_expression_is_resolved_beside_the_heartbeat() -> None:
    harness = consumer_harness(orders=2, other=3)
    member = Member(harness, "a", [])
    member.join(subscribed_topic_names=None, subscribed_topic_regex="or.*")
    assert member.count == 0

    settle(member)
    assert member.count == 2

    harness.topics.put("orders-2", 4)
    settle(member)
    assert member.count == 2
    harness.advance(10_001)
    member.heartbeat()
    settle(member)
    assert member.count == 6


def test_regular_expression_that_matches_ten_thousand_topics() -> None:
    harness = consumer_harness(AT_ONCE, **{f"topic-{number}": 1 for number in range(10_000)})
    members = [Member(harness, name, []) for name in "ab"]
    for member in members:
        member.join(subscribed_topic_names=None, subscribed_topic_regex="topic-.*")
    settle(*members)
    assert [member.count for member in members] == [5_000, 5_000]

    loaded = harness.restarted()

    group = loaded.shard.consumers.groups.find("orders")
    assert group is not None
    assert [len(each.assigned) for each in group.members.values()] == [5_000, 5_000]


def test_an_invalid_regular_expression_is_refused() -> None:
    harness = consumer_harness()
    member = Member(harness, "a", [])

    assert member.join(subscribed_topic_regex="(") is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert harness.shard.consumers.groups.find("orders") is None


def test_regular_expressions_of_a_group_are_limited() -> None:
    harness = consumer_harness(dataclasses.replace(AT_ONCE, pattern_max_count=2), orders=2)
    a, b, c = (Member(harness, name, []) for name in "abc")
    assert a.join(subscribed_topic_names=None, subscribed_topic_regex="o.*") is ErrorCode.NONE
    assert b.join(subscribed_topic_names=None, subscribed_topic_regex="or.*") is ErrorCode.NONE
    settle(a, b)

    refused = ErrorCode.INVALID_REGULAR_EXPRESSION
    assert c.join(subscribed_topic_names=None, subscribed_topic_regex="x.*") is refused
    assert c.join(subscribed_topic_names=None, subscribed_topic_regex="or.*") is ErrorCode.NONE
    assert b.heartbeat(subscribed_topic_regex="y.*") is refused  # as "or.*" is that of c too
    assert a.heartbeat(subscribed_topic_regex="x.*") is ErrorCode.NONE


def test_empty_classic_group_becomes_a_consumer_group_and_back() -> None:
    harness = consumer_harness(orders=2)
    [classic] = harness.stable_group(1)
    member = Member(harness, "a", ["orders"])
    assert member.join() is ErrorCode.GROUP_ID_NOT_FOUND
    harness.leave(classic)
    harness.commit(7)

    assert member.join() is ErrorCode.NONE
    assert harness.shard.find("orders") is None
    assert harness.stored_offsets() == {("orders", 0): 7}
    loaded = harness.restarted()
    assert loaded.shard.find("orders") is None
    assert described(loaded).group_state == "Stable"

    member.leave()
    harness.append(harness.shard.handle_change_to_classic("orders"))
    assert harness.join().error is ErrorCode.MEMBER_ID_REQUIRED
    assert harness.stored_offsets() == {("orders", 0): 7}


def test_members_id_is_made_for_old_clients() -> None:
    harness = consumer_harness(orders=2)

    answer = beat(
        harness,
        member_epoch=0,
        rebalance_timeout_ms=1,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )

    assert answer.member_id == "0001"
