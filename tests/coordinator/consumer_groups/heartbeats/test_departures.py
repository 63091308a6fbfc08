"""Members that leave or are silent, and groups that take no more."""

from __future__ import annotations

from coordinator.consumer_groups.settings import ConsumerGroupSettings
from protocol.errors import ErrorCode
from tests.coordinator.consumer_groups.consumer_harness import (
    Member,
    consumer_harness,
    group_of,
    settle,
)

STATIC_LEAVE = -2


def test_group_that_is_full_takes_no_more() -> None:
    harness = consumer_harness(ConsumerGroupSettings(max_size=1), orders=2)
    Member(harness, "a", ["orders"]).join()

    assert Member(harness, "b", ["orders"]).join() is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_static_member_comes_back_to_a_group_that_is_full() -> None:
    harness = consumer_harness(ConsumerGroupSettings(max_size=1), orders=2)
    member = Member(harness, "a", ["orders"], instance_id="i")
    member.join()
    member.leave(STATIC_LEAVE)

    assert Member(harness, "b", ["orders"], instance_id="i").join() is ErrorCode.NONE


def test_the_assignment_epoch_of_an_emptied_group_follows_its_epoch() -> None:
    harness = consumer_harness(orders=2)
    a, b = Member(harness, "a", ["orders"]), Member(harness, "b", ["orders"])
    a.join()
    b.join()

    a.leave()
    assert (group_of(harness).epoch, group_of(harness).assignment_epoch) == (4, 3)
    b.leave()
    assert (group_of(harness).epoch, group_of(harness).assignment_epoch) == (5, 5)


def test_silent_member_is_removed() -> None:
    harness = consumer_harness(orders=2)
    a, b = Member(harness, "a", ["orders"]), Member(harness, "b", ["orders"])
    a.join()
    b.join()
    for _ in range(10):
        harness.advance(5_000)
        b.heartbeat()
    settle(b)

    assert list(group_of(harness).members) == ["b"]
    assert b.count == 2
