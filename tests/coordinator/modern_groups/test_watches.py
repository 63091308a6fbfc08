"""Deadlines of members of each modern kind of group: they follow a clock that is never set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from protocol.errors import ErrorCode
from tests.coordinator.consumer_groups import consumer_harness as consumer
from tests.coordinator.harness import GROUP
from tests.coordinator.share_groups.share_harness import AT_ONCE, share_harness
from tests.coordinator.streams_groups import streams_harness as streams

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tests.coordinator.harness import Harness

HOUR_MS = 3_600_000
TEN_DAYS_MS = 240 * HOUR_MS
SESSION_MS = 45_000


@dataclass
class Pair:
    """A group of the members a and b, both of which have joined."""

    harness: Harness
    beat: Callable[[str], object]
    kind: str
    """The shard's attribute for groups of this kind."""

    @property
    def members(self) -> Collection[str]:
        """The ids of those that are in the group now."""
        group = getattr(self.harness.shard, self.kind).groups.find(GROUP)
        assert group is not None
        members: Collection[str] = group.members.keys()
        return members


def consumers() -> tuple[Harness, consumer.Member, consumer.Member]:
    """Two that have not joined yet."""
    harness = consumer.consumer_harness(orders=2)
    a, b = (consumer.Member(harness, name, ["orders"]) for name in "ab")
    return harness, a, b


def streams_members() -> tuple[Harness, streams.Member, streams.Member]:
    """Two that have not joined yet."""
    harness = streams.streams_harness()
    a, b = (streams.Member(harness, name, process_id=name) for name in "ab")
    return harness, a, b


def pair_of_consumers() -> Pair:
    harness, a, b = consumers()
    a.join()
    b.join()
    consumer.settle(a, b)
    return Pair(harness, lambda name: {"a": a, "b": b}[name].heartbeat(), "consumers")


def pair_of_streams_members() -> Pair:
    harness, a, b = streams_members()
    a.join()
    b.join()
    streams.settle(a, b)
    return Pair(harness, lambda name: {"a": a, "b": b}[name].heartbeat(), "streams")


def pair_of_share_members() -> Pair:
    shares = share_harness(t=1)
    shares.beat("a", "t")
    shares.beat("b", "t")
    return Pair(shares.harness, shares.beat, "shares")


PAIRS = pytest.mark.parametrize(
    "pair_of", [pair_of_consumers, pair_of_streams_members, pair_of_share_members]
)


@PAIRS
@pytest.mark.parametrize("jump_ms", [0, -HOUR_MS, TEN_DAYS_MS])
def test_silent_member_is_removed_whatever_the_wall_clock_shows(
    pair_of: Callable[[], Pair], jump_ms: int
) -> None:
    pair = pair_of()
    pair.harness.now_ms += jump_ms

    for _ in range(SESSION_MS // 5_000):
        assert pair.members == {"a", "b"}
        pair.harness.advance(5_000)
        pair.beat("b")

    assert pair.members == {"b"}


@PAIRS
def test_setting_the_wall_clock_forward_removes_no_member(pair_of: Callable[[], Pair]) -> None:
    pair = pair_of()

    for _ in range(12):
        pair.harness.advance(2_500)
        pair.harness.now_ms += TEN_DAYS_MS
        pair.harness.advance(2_500)
        pair.beat("a")
        pair.beat("b")

    assert pair.members == {"a", "b"}


@pytest.mark.parametrize("jump_ms", [0, -HOUR_MS, TEN_DAYS_MS])
@pytest.mark.parametrize("make", [consumers, streams_members])
def test_a_member_that_revokes_nothing_is_removed_after_its_rebalance_timeout(
    make: Callable[[], tuple[Harness, Any, Any]], jump_ms: int
) -> None:
    harness, slow, other = make()
    slow.join(rebalance_timeout_ms=20_000)
    slow.heartbeat()
    other.join()
    owned = slow.owned
    slow.heartbeat()
    harness.now_ms += jump_ms

    for _ in range(4):
        slow.owned = owned
        assert slow.heartbeat() is ErrorCode.NONE
        harness.advance(5_000)
        other.heartbeat()

    assert slow.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unanswered_initialisation_is_retried_although_the_clock_is_set_back() -> None:
    shares = share_harness(t=1)
    shares.beat("a", "t")
    shares.asked.clear()
    shares.harness.now_ms -= HOUR_MS

    shares.harness.advance(AT_ONCE.initialize_retry_interval_ms)
    shares.beat("a")

    assert len(shares.asked) == 1
