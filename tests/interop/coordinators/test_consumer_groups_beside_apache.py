"""Heartbeats, commits and listings of consumer groups, drawn, beside Apache Kafka 4.3.1."""

from __future__ import annotations

import json
import math
import random
import time
from typing import TYPE_CHECKING

import pytest

from protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.interop.coordinators.consumer_heartbeats import (
    REGEX_SECONDS,
    Side,
    Step,
    create_topics,
    draw,
)
from tests.interop.security.principals import Principal
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours
from tests.support.seeds import quick_and_slow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.broker_process import BrokerProcess

SEEDS = range(12)
STEPS = 120
START_SECONDS = 60
NOT_REFRESHED_SECONDS = 7
"""Ten seconds after it was matched a regular expression is matched anew, if there is reason to; on
two brokers not at the same moment."""
AT_ONCE = {"group.consumer.assignment.interval.ms": "0", "offsets.topic.num.partitions": "1"}


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
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
            found.append(Side(client, ids))
        yield found[0], found[1]
    finally:
        for side in found:
            side.asks.close()
        for process in processes:
            process.kill()


def find_coordinator(client: Principal) -> None:
    """Have the broker coordinate the group, and wait until it does."""
    """Wait until the broker coordinates the group."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    deadline = time.monotonic() + START_SECONDS
    while client.ask(request, 4).coordinators[0].error_code:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    wait = Step("delete", {}, 2)
    while Side(client, {}).take(wait) in (14, 15, 16):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("seed", quick_and_slow(SEEDS, quick=6))
def test_drawn_requests_are_answered_as_by_apache(sides: tuple[Side, Side], seed: int) -> None:
    chance = random.Random(seed)
    empty(sides)
    assignor = chance.choice(("uniform", "range"))
    said = []
    ends_at = math.inf
    for _ in range(STEPS):
        if time.monotonic() > ends_at:
            return
        step = draw(chance, assignor)
        answers = [side.take(step) for side in sides]
        if "subscribed_topic_regex" in step.fields:
            time.sleep(REGEX_SECONDS)  # they are matched after the answer
            ends_at = min(ends_at, time.monotonic() + NOT_REFRESHED_SECONDS)
        said.append(f"{step} → {json.dumps(answers[1])}")
        assert answers[0] == answers[1], "\n".join(said[-25:])


def empty(sides: tuple[Side, Side]) -> None:
    """Have all members leave, and the group deleted."""
    for side in sides:
        described = side.take(Step("describe", {}))["g"]
        for name, member in described.items():
            if isinstance(member, dict):
                fields = {"epoch": -1, "owned": "silent", "instance_id": member["instance_id"]}
                side.take(Step("heartbeat", {"member": name, **fields}))
        assert side.take(Step("delete", {}, 2)) in (0, 69)
        side.epochs.clear()
        side.owned.clear()
