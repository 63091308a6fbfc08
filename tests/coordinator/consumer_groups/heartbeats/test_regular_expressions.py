"""Intervals at which regular expressions are matched again."""

from __future__ import annotations

from coordinator.consumer_groups.heartbeats.regular_expressions import SHORTEST_INTERVAL_MS
from tests.coordinator.consumer_groups.consumer_harness import Member, consumer_harness, settle

HOUR_MS = 3_600_000


def test_expression_that_was_matched_in_the_future_is_matched_again_at_once() -> None:
    harness = consumer_harness(orders=2)
    member = Member(harness, "a", [])
    member.join(subscribed_topic_names=None, subscribed_topic_regex="or.*")
    settle(member)
    assert member.count == 2

    harness.now_ms -= HOUR_MS
    harness.topics.put("orders-2", 4)
    member.heartbeat()
    settle(member)
    assert member.count == 6

    harness.topics.put("orders-3", 1)
    harness.advance(SHORTEST_INTERVAL_MS)
    member.heartbeat()
    settle(member)
    assert member.count == 6
    harness.advance(1)
    member.heartbeat()
    settle(member)
    assert member.count == 7
