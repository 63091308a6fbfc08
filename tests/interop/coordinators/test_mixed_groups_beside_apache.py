"""Groups with members of both protocols, drawn, beside Apache Kafka 4."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop.coordinators.classic_steps import CLASSIC, MixedSide, draw_mixed
from tests.interop.coordinators.consumer_heartbeats import Step, create_topics
from tests.interop.coordinators.test_consumer_group_logs import OFFSETS, SEGMENT
from tests.interop.coordinators.test_consumer_groups_beside_apache import find_coordinator
from tests.interop.security.principals import Principal
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours
from tests.support.seeds import quick_and_slow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.slow

SEEDS = range(8)
STEPS = 100
AT_ONCE = {
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
}


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MixedSide, MixedSide]]:
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
            found.append(
                MixedSide(
                    client, ids, port=process.port, log=process.data_directory / OFFSETS / SEGMENT
                )
            )
        yield found[0], found[1]
    finally:
        for side in found:
            side.asks.close()
        for process in processes:
            process.kill()


@pytest.mark.parametrize("seed", quick_and_slow(SEEDS, quick=4))
def test_drawn_members_of_both_protocols_are_answered_as_by_apache(
    sides: tuple[MixedSide, MixedSide], seed: int
) -> None:
    chance = random.Random(seed)
    for side in sides:
        empty(side)
    said: list[str] = []
    both(sides, said, "written")
    if seed % 2:
        both(sides, said, "rebalance", ["X"])
    for _ in range(STEPS):
        kind, state = both(sides, said, "kind")
        members = sorted(sides[1].ids)
        if kind == "classic" and state == "PreparingRebalance":
            both(sides, said, "rebalance", members)
            continue
        step = draw_mixed(chance, is_consumer_group=kind == "consumer" and state != "Empty")
        both(sides, said, "take", step)
    both(sides, said, "written")


def both(sides: tuple[MixedSide, MixedSide], said: list[str], what: str, *given: Any) -> Any:
    """Run a step on both, to the same effect."""
    answers = []
    for side in sides:
        found = getattr(side, what)
        answers.append(found(*given) if callable(found) else found)
    if what != "kind":
        said.append(f"{what} {given} → {json.dumps(answers[1], default=str)}")
    assert answers[0] == answers[1], "\n".join(said[-25:])
    return answers[1]


def empty(side: MixedSide) -> None:
    """Remove all members, and delete the group."""
    while True:
        side.take(Step("leave", {"members": [*CLASSIC, "G", "H", *"ABCDEF"]}, 5))
        for name in ("G", "H", "F"):
            instance = "j" if name == "F" else "i"
            fields = {"epoch": -1, "owned": "silent", "instance_id": instance}
            side.take(Step("heartbeat", {"member": name, **fields}))
        if side.take(Step("delete", {}, 2)) in (0, 69):
            break
    side.forget()
