"""The interval before the next assignment of a group, of any kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.modern_groups.group import ModernGroup
from tests.coordinator.consumer_groups import consumer_harness as consumer
from tests.coordinator.share_groups import share_harness as share
from tests.coordinator.streams_groups import streams_harness as streams

HOUR_MS = 3_600_000
INTERVAL_MS = 10_000


@pytest.mark.parametrize(
    ("made_ms", "now_ms", "is_young"),
    [
        (1_000, 1_000, True),
        (1_000, 10_999, True),
        (1_000, 11_000, False),
        (1_001, 1_000, False),
        (0, 1_000, False),
    ],
)
def test_assignment_is_young_for_its_interval(made_ms: int, now_ms: int, *, is_young: bool) -> None:
    group: ModernGroup[object, object] = ModernGroup("g")
    group.assignment_timestamp_ms = made_ms
    assert group.was_assigned_within(INTERVAL_MS, now_ms) is is_young
    assert not group.was_assigned_within(0, now_ms)


def test_consumers_assignment_made_in_the_future_does_not_hold_up_the_next() -> None:
    settings = replace(consumer.AT_ONCE, assignment_interval_ms=INTERVAL_MS)
    harness = consumer.consumer_harness(settings, orders=2)
    a, b = (consumer.Member(harness, name, ["orders"]) for name in "ab")
    a.join()

    harness.now_ms -= HOUR_MS
    b.join()
    consumer.settle(a, b)

    assert (a.count, b.count) == (1, 1)


def test_streams_assignment_made_in_the_future_does_not_hold_up_the_next() -> None:
    harness = streams.streams_harness(replace(streams.AT_ONCE, assignment_interval_ms=INTERVAL_MS))
    a, b = (streams.Member(harness, name, process_id=name) for name in "ab")
    a.join()
    harness.advance(INTERVAL_MS)
    streams.settle(a)

    harness.now_ms -= HOUR_MS
    b.join()
    assert b.statuses == []
    streams.settle(a, b)

    assert (a.count(), b.count()) == (3, 3)


def test_share_assignment_made_in_the_future_does_not_hold_up_the_next() -> None:
    shares = share.share_harness(replace(share.AT_ONCE, assignment_interval_ms=INTERVAL_MS), t=2)
    shares.beat("a", "t")
    shares.initialise()

    shares.harness.now_ms -= HOUR_MS

    assert shares.beat("a").member_epoch == 3
    assert shares.told["a"] == {"t": [0, 1]}
