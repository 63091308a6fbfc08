"""Replicas that catch up are held up where that is asked for, and no others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from broker.partitions.throttle import Span, Throttle
from config.topic import TopicConfig
from tests.broker.replica_fetchers.harness import ManualClock
from tests.broker.replica_fetchers.nodes import Ensemble, run_ensemble

if TYPE_CHECKING:
    from pathlib import Path

ALL = (0, 1, 2)
MUCH = 1_000_000
LIFTED = 1 << 40
SOME_ROUNDS_MS = 100


def throttle(clock: ManualClock, rate: int) -> Throttle:
    made = Throttle(
        1, lambda config: config.leader_replication_throttled_replicas, Span(3, 1000), clock.now_ms
    )
    made.bytes_per_second = rate
    return made


def test_a_rate_is_that_of_the_last_windows() -> None:
    clock = ManualClock()
    one = throttle(clock, 1000)

    def is_exceeded() -> bool:
        return one.is_exceeded

    assert not is_exceeded()
    one.record(1000)
    assert not is_exceeded()
    one.record(1)
    assert is_exceeded()
    clock.time_ms += 1001
    assert not is_exceeded(), "1001 bytes in 1001 ms"
    one.record(5000)
    assert is_exceeded()
    clock.time_ms += 2500
    assert is_exceeded(), "5000 bytes in 2500 ms"
    clock.time_ms += 500
    assert not is_exceeded(), "the windows have passed"


@pytest.mark.parametrize(
    ("listed", "is_covered"),
    [((), False), (("*",), True), (("0:1", "4:1"), True), (("0:1", "4:2"), False)],
)
def test_topics_name_the_replicas_of_brokers(listed: tuple[str, ...], is_covered: bool) -> None:
    class Log:
        config = TopicConfig(leader_replication_throttled_replicas=listed)

    class Partition:
        index = 4
        log = Log

    assert throttle(ManualClock(), 1).covers(cast("Any", Partition)) is is_covered


def throttle_all(nodes: Ensemble) -> None:
    """List all replicas as throttled, and exceed every rate by far."""
    for node in nodes.nodes.values():
        node.topic_configs.config = replace(
            node.topic_configs.config,
            leader_replication_throttled_replicas=("*",),
            follower_replication_throttled_replicas=("*",),
        )
        for each in node.throttles:
            each.record(MUCH)


def test_a_leader_throttles_followers_out_of_sync(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        throttle_all(nodes)
        nodes[0].throttles.leader.bytes_per_second = 1
        nodes.lead(0, isr=(0, 1), epoch=0, told=(0, 1))
        nodes[0].append(5)
        await nodes.until(lambda: nodes[0].offsets == (5, 5))
        nodes.lead(0, isr=(0, 1), epoch=0, told=(2,))
        await nodes[0].timers.sleep(SOME_ROUNDS_MS)
        assert nodes[2].offsets[1] == 0

        nodes[0].throttles.leader.bytes_per_second = LIFTED
        nodes[0].append(5)
        await nodes.until_equal(10)

    run_ensemble(tmp_path, scenario)


def test_a_follower_out_of_sync_throttles_its_fetches(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        throttle_all(nodes)
        nodes[2].throttles.follower.bytes_per_second = 1
        nodes.lead(0, isr=(0, 1), epoch=0)
        nodes[0].append(5)
        await nodes.until(lambda: nodes[1].offsets[1] == 5)
        await nodes[0].timers.sleep(SOME_ROUNDS_MS)
        assert nodes[2].offsets[1] == 0

        nodes[2].throttles.follower.bytes_per_second = LIFTED
        await nodes.until_equal(5)

    run_ensemble(tmp_path, scenario)


def test_replicas_go_on_when_fetchers_become_more_or_fewer(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=ALL, epoch=0)
        for end, count in ((5, 1), (10, 7), (15, 1)):
            nodes[1].following.use(count)
            nodes[0].append(5)
            await nodes.until_equal(end)

    run_ensemble(tmp_path, scenario)
