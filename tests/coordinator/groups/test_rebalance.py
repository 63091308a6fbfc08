"""Deadlines of classic groups: they follow a clock that is never set."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from tests.coordinator.harness import GROUP, Harness

HOUR_MS = 3_600_000
TEN_DAYS_MS = 240 * HOUR_MS


@pytest.mark.parametrize("jump_ms", [0, -HOUR_MS, TEN_DAYS_MS])
def test_silent_member_is_removed_whatever_the_wall_clock_shows(jump_ms: int) -> None:
    harness = Harness()
    leader, _ = harness.stable_group(2, session_ms=10_000)
    harness.now_ms += jump_ms

    harness.advance(5_000)
    assert harness.heartbeat(leader, 1) is ErrorCode.NONE
    harness.advance(5_000)
    assert harness.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS

    assert harness.join(leader).response.generation_id == 2


@pytest.mark.parametrize("jump_ms", [0, -HOUR_MS])
def test_rebalance_ends_without_the_silent_member_as_soon_as_its_session_does(jump_ms: int) -> None:
    harness = Harness()
    leader, _ = harness.stable_group(2, session_ms=10_000)
    harness.now_ms += jump_ms

    _, joining = harness.join_twice()
    rejoining = harness.join(leader)
    harness.advance(9_000)
    assert joining.is_parked
    harness.advance(1_000)

    assert joining.response.generation_id == rejoining.response.generation_id == 2


def test_new_member_that_waits_is_kept_as_the_wall_clock_is_set_forward() -> None:
    harness = Harness()
    harness.stable_group(2, session_ms=400_000, rebalance_ms=400_000)
    _, waiting = harness.join_twice()
    harness.now_ms += TEN_DAYS_MS

    harness.advance(299_000)
    assert waiting.is_parked
    harness.advance(1_000)

    assert waiting.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_setting_the_wall_clock_forward_removes_no_member() -> None:
    harness = Harness()
    members = harness.stable_group(2, session_ms=10_000)

    for _ in range(12):
        harness.advance(2_500)
        harness.now_ms += TEN_DAYS_MS
        harness.advance(2_500)
        assert {harness.heartbeat(member, 1) for member in members} == {ErrorCode.NONE}


def test_sessions_of_a_loaded_group_begin_though_the_wall_clock_is_set_back() -> None:
    before = Harness()
    before.stable_group(2, session_ms=10_000)
    loaded = before.restarted()
    loaded.now_ms -= HOUR_MS

    loaded.advance(10_000)

    group = loaded.shard.find(GROUP)
    assert group is not None
    assert not group.members
