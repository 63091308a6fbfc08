"""Heartbeats, start offsets and listings of share groups, drawn, beside Apache Kafka 4."""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING

import pytest

from protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.interop.coordinators.consumer_heartbeats import create_topics
from tests.interop.coordinators.share_groups.share_heartbeats import (
    GROUP,
    MEMBERS,
    Side,
    Step,
    draw,
)
from tests.interop.security.principals import Principal
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.slow

SEEDS = range(2)
STEPS = 60
START_SECONDS = 60
LOADING = (14, 15, 16)
SETTINGS = {
    "group.share.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


def started(process: BrokerProcess, *, by_java_hash: bool) -> Side:
    """A broker that coordinates the group, with topics."""
    process.start()
    client = Principal(process.port)
    side = Side(client, create_topics(client, by_java_hash=by_java_hash))
    wait_until_coordinated(side)
    return side


def wait_until_coordinated(side: Side) -> None:
    """Find the coordinator, and wait until it has loaded the group."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
    deadline = time.monotonic() + START_SECONDS
    while (
        side.asks.ask(request, 4).coordinators[0].error_code
        or side.take(Step("describe", {}))[GROUP]["group"][0] in LOADING
    ):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """The same topics on both brokers."""
    processes: list[BrokerProcess] = []
    found = []
    try:
        for make, is_java in ((ours, False), (apache_4, True)):
            process = make(tmp_path_factory.mktemp("broker"), SETTINGS)
            processes.append(process)
            found.append(started(process, by_java_hash=is_java))
        yield found[0], found[1]
    finally:
        for side in found:
            side.asks.close()
        for process in processes:
            process.kill()


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_requests_are_answered_as_by_apache(sides: tuple[Side, Side], seed: int) -> None:
    chance = random.Random(seed)
    for side in sides:
        empty(side)
    said = []
    for _ in range(STEPS):
        step = draw(chance)
        answers = [side.take(step) for side in sides]
        said.append(f"{step} → {json.dumps(answers[1])}")
        assert answers[0] == answers[1], "\n".join(said[-25:])


def empty(side: Side) -> None:
    """Remove all members, and delete the group."""
    for member in MEMBERS:
        side.take(Step("heartbeat", {"member": member, "epoch": -1, "ahead": 0, "topics": None}))
    assert side.take(Step("delete", {})) in (0, 69)
    side.epochs.clear()
