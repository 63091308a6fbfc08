"""Share fetches and acknowledgements, drawn, beside Apache Kafka 4."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop.coordinators.share_fetches import Side, Step, create_topic, draw
from tests.interop.security.principals import Principal
from tests.support.brokers.apache import apache_4
from tests.support.brokers.ours import ours
from tests.support.seeds import quick_and_slow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.broker_process import BrokerProcess

pytestmark = pytest.mark.slow

SEEDS = range(6)
STEPS = 60
SMALL = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """The same topic on both brokers."""
    processes: list[BrokerProcess] = []
    found = []
    try:
        for make in (ours, apache_4):
            process = make(tmp_path_factory.mktemp("broker"), SMALL)
            processes.append(process)
            process.start()
            client = Principal(process.port)
            found.append(Side(client, create_topic(client)))
        yield found[0], found[1]
    finally:
        for side in found:
            side.asks.close()
        for process in processes:
            process.kill()


@pytest.mark.parametrize("seed", quick_and_slow(SEEDS, quick=3))
def test_drawn_requests_are_answered_as_by_apache(sides: tuple[Side, Side], seed: int) -> None:
    chance = random.Random(seed)
    for side in sides:
        side.begin(f"g{seed}")
    held: dict[str, dict[int, int]] = {}
    said = []
    for _ in range(STEPS):
        step = draw(chance, held)
        answers = [side.take(step) for side in sides]
        said.append(f"{step} → {answers[1]}")
        assert answers[0] == answers[1], "\n".join([*said[-25:], f"ours: {answers[0]}"])
        note(held, step, answers[1])
    assert sides[0].stored() == sides[1].stored(), "\n".join(said)


def note(held: dict[str, dict[int, int]], step: Step, answer: Any) -> None:
    """Update the offsets that each member holds, by the answer."""
    code, parts = answer
    if code:
        return
    theirs = held.setdefault(step.member, {})
    if step.epoch == -1:
        theirs.clear()
        return
    refused = parts[0][1] if step.kind == "fetch" and parts else parts[0] if parts else 0
    if refused in (0, None):
        for first, last, _ in step.acks:
            for offset in range(first, last + 1):
                theirs.pop(offset, None)
    if step.kind == "fetch" and parts:
        theirs.update(parts[0][2])
