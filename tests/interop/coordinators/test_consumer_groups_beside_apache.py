"""Heartbeats, commits and listings of consumer groups, drawn, beside Apache Kafka 4."""

from __future__ import annotations

import json
import math
import random
import time
from typing import TYPE_CHECKING, Any

import pytest

from protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.interop.coordinators.consumer_heartbeats import (
    LEAVING,
    REGEX_SECONDS,
    RESTING,
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

pytestmark = pytest.mark.slow

SEEDS = range(12)
STEPS = 120
START_SECONDS = 60
MATCHED_SECONDS = 5
"""Time after which the two brokers differ."""
NOT_REFRESHED_SECONDS = 7
"""A regular expression is matched again ten seconds after the last match, if there is reason to; on
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
    """Make the broker coordinate the group, and wait until it does."""
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
    may_be_matched = False
    for _ in range(STEPS):
        if time.monotonic() > ends_at:
            return
        step = draw(chance, assignor)
        answers = [side.take(step) for side in sides]
        said.append(f"{step} → {json.dumps(answers[1])}")
        assert answers[0] == answers[1], "\n".join(said[-25:])
        if "subscribed_topic_regex" in step.fields:
            may_be_matched = True
            ends_at = min(ends_at, time.monotonic() + NOT_REFRESHED_SECONDS)
        if may_be_matched and is_of_a_member(step, answers[0]):
            may_be_matched = False
            await_matches(sides)
        may_be_matched |= is_leaving(step)


def is_of_a_member(step: Step, answer: Any) -> bool:
    """Return whether the answer is to a heartbeat of a member that stays."""
    return step.kind == "heartbeat" and not answer["error_code"] and answer["member_epoch"] > 0


def is_leaving(step: Step) -> bool:
    """Return whether a member leaves, perhaps with the last expression that had been matched.

    The next heartbeat of any member has the others matched, however recently that was done.
    """
    return step.fields.get("epoch") in (LEAVING, RESTING)


def await_matches(sides: tuple[Side, Side]) -> None:
    """Wait until both brokers have matched regular expressions, which they do after answering."""
    describe = Step("describe", {})
    deadline = time.monotonic() + MATCHED_SECONDS
    time.sleep(REGEX_SECONDS)
    while sides[0].take(describe) != sides[1].take(describe) and time.monotonic() < deadline:
        time.sleep(REGEX_SECONDS)


def empty(sides: tuple[Side, Side]) -> None:
    """Remove all members, and delete the group."""
    for side in sides:
        described = side.take(Step("describe", {}))["g"]
        for name, member in described.items():
            if isinstance(member, dict):
                fields = {"epoch": -1, "owned": "silent", "instance_id": member["instance_id"]}
                side.take(Step("heartbeat", {"member": name, **fields}))
        assert side.take(Step("delete", {}, 2)) in (0, 69)
        side.epochs.clear()
        side.owned.clear()
