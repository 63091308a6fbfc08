"""Heartbeats, commits and listings of streams groups, drawn, beside Apache Kafka 4."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from tests.interop.coordinators.consumer_heartbeats import Step, create_topics
from tests.interop.coordinators.test_consumer_groups_beside_apache import find_coordinator
from tests.interop.security.principals import Principal
from tests.interop.streams.streams_heartbeats import (
    MEMBERS,
    SETTLING_SECONDS,
    StreamsSide,
    draw,
    missing_topics,
)
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours
from tests.support.topologies import TOPOLOGIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.slow

SEEDS = range(len(TOPOLOGIES))
STEPS = 120
AT_ONCE = {
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.num.standby.replicas": "1",
    "offsets.topic.num.partitions": "1",
}
GONE = (0, 69)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StreamsSide, StreamsSide]]:
    """The same topics on both brokers."""
    processes: list[BrokerProcess] = []
    found = []
    try:
        for make, is_java in ((ours, False), (apache_4, True)):
            process = make(tmp_path_factory.mktemp("broker"), AT_ONCE)
            processes.append(process)
            process.start()
            client = Principal(process.port)
            ids = create_topics(client, by_java_hash=is_java)
            find_coordinator(client)
            found.append(StreamsSide(client, ids))
        yield found[0], found[1]
    finally:
        for side in found:
            side.asks.close()
        for process in processes:
            process.kill()


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_requests_are_answered_as_by_apache(
    sides: tuple[StreamsSide, StreamsSide], seed: int
) -> None:
    chance = random.Random(seed)
    kind, prefix = TOPOLOGIES[seed % len(TOPOLOGIES)], f"seed-{seed}"
    empty(sides)
    said = []
    for _ in range(STEPS):
        step = draw(chance, kind, prefix)
        answers = [side.take(step) for side in sides]
        said.append(f"{_short(step)} → {answers[1]}")
        assert answers[0] == answers[1], "\n".join([*said[-25:], f"ours: {answers[0]}"])
        missing = missing_topics(answers[0], prefix) if step.kind == "heartbeat" else set()
        if missing:
            for side in sides:
                side.wait_for_topics(missing)
            time.sleep(SETTLING_SECONDS)


def _short(step: Step) -> str:
    fields = {name: value for name, value in step.fields.items() if name != "topology"}
    return f"{step.kind} {fields}"


def empty(sides: tuple[StreamsSide, StreamsSide]) -> None:
    """Remove all members, and delete the group."""
    for side in sides:
        shown = side.take(Step("describe", {}, 0))["g"]
        for member in MEMBERS:
            if member in shown:
                fields = {"member": member, "epoch": -1, "owned": "silent"}
                side.take(Step("heartbeat", fields, 0))
        assert side.take(Step("delete", {}, 2)) in GONE
        side.epochs.clear()
        side.tasks.clear()
        side.endpoint_epochs.clear()
