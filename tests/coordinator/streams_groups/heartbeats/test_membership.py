"""Members with an instance id leave for a while, come back, and are fenced (KIP-1071, KIP-345)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from protocol.errors import ErrorCode
from protocol.messages.streams_groups import StreamsGroupEndpoint
from tests.coordinator.streams_groups.streams_harness import (
    AT_ONCE,
    Member,
    beat,
    described,
    group_of,
    settle,
    streams_harness,
)

if TYPE_CHECKING:
    from tests.coordinator.harness import Harness

INSTANCE: dict[str, Any] = {"instance_id": "i"}


def static_pair(harness: Harness) -> tuple[Member, Member]:
    """Return a static and a dynamic member that share the tasks."""
    static, other = Member(harness, "a", process_id="p"), Member(harness, "b", process_id="q")
    static.join(**INSTANCE)
    other.join()
    settle(static, other)
    assert (static.count(), other.count()) == (3, 3)
    return static, other


def leave(member: Member, epoch: int = -2, **said: Any) -> ErrorCode:
    options = INSTANCE | said
    answer = beat(member.harness, member_id=member.member_id, member_epoch=epoch, **options)
    return ErrorCode(answer.response.error_code)


def test_a_returning_static_member_keeps_its_tasks_without_rebalance() -> None:
    harness = streams_harness()
    static, other = static_pair(harness)
    epoch, owned = group_of(harness).epoch, static.owned

    assert leave(static) is ErrorCode.NONE
    settle(other)
    assert other.count() == 3
    successor = Member(harness, "c", process_id="p")
    assert successor.join(**INSTANCE) is ErrorCode.NONE

    assert successor.owned == owned
    assert group_of(harness).epoch == successor.epoch == epoch
    assert set(group_of(harness).members) == {"b", "c"}
    assert described(harness).group_state == "Stable"


def test_member_of_another_process_rebalances_when_it_comes_back() -> None:
    harness = streams_harness()
    static, _ = static_pair(harness)
    epoch = group_of(harness).epoch

    leave(static)
    Member(harness, "c", process_id="elsewhere").join(**INSTANCE)

    assert group_of(harness).epoch == epoch + 1


def test_instance_that_has_not_left_is_not_released() -> None:
    harness = streams_harness()
    static, _ = static_pair(harness)

    assert Member(harness, "c").join(**INSTANCE) is ErrorCode.UNRELEASED_INSTANCE_ID
    assert static.join(**INSTANCE) is ErrorCode.UNRELEASED_INSTANCE_ID
    assert Member(harness, "c").leave() is ErrorCode.UNKNOWN_MEMBER_ID


def test_predecessor_is_fenced() -> None:
    harness = streams_harness()
    static, _ = static_pair(harness)
    leave(static)
    Member(harness, "c").join(**INSTANCE)

    assert static.heartbeat(**INSTANCE) is ErrorCode.FENCED_INSTANCE_ID
    assert leave(static) is ErrorCode.FENCED_INSTANCE_ID
    assert static.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_unknown_instance_has_no_heartbeat() -> None:
    harness = streams_harness()
    _, other = static_pair(harness)

    assert other.heartbeat(instance_id="nobody") is ErrorCode.UNKNOWN_MEMBER_ID


def test_static_member_that_leaves_for_good_gives_up_its_tasks() -> None:
    harness = streams_harness()
    static, other = static_pair(harness)

    assert leave(static, epoch=-1) is ErrorCode.NONE
    settle(other)

    assert other.count() == 6
    assert "i" not in group_of(harness).static_members


def test_member_that_does_not_come_back_in_its_session_is_removed() -> None:
    harness = streams_harness()
    static, other = static_pair(harness)
    leave(static)

    for _ in range(3):
        harness.advance(AT_ONCE.session_timeout_ms // 2)
        other.heartbeat()
    settle(other)

    assert other.count() == 6


def test_full_group_takes_a_static_member_back() -> None:
    harness = streams_harness(replace(AT_ONCE, max_size=2))
    static, _ = static_pair(harness)
    leave(static)

    assert Member(harness, "d").join() is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert Member(harness, "c").join(**INSTANCE) is ErrorCode.NONE


def test_instance_outlives_its_coordinator() -> None:
    harness = streams_harness()
    static, _ = static_pair(harness)
    leave(static)

    successor = Member(harness.restarted(), "c", process_id="p")
    assert successor.join(**INSTANCE) is ErrorCode.NONE
    assert successor.count() == 3


def test_the_endpoint_of_a_static_member_is_dropped_when_it_rejoins_without_one() -> None:
    harness = streams_harness()
    static = Member(harness, "a")
    static.join(user_endpoint=StreamsGroupEndpoint(host="h", port=1), **INSTANCE)
    settle_static(static)
    leave(static)
    successor = Member(harness, "c")
    successor.join(**INSTANCE)

    assert successor.answer is not None
    assert successor.answer.partitions_by_user_endpoint == []


def settle_static(member: Member) -> None:
    for _ in range(3):
        assert member.heartbeat(**INSTANCE) is ErrorCode.NONE


@pytest.mark.parametrize("epoch", [-2])
def test_leaving_for_a_while_takes_an_instance(epoch: int) -> None:
    harness = streams_harness()
    member = Member(harness, "a")
    member.join()

    assert leave(member, epoch, instance_id="nobody") is ErrorCode.UNKNOWN_MEMBER_ID
