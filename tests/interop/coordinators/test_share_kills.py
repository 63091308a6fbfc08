"""A broker that is killed again and again: what was finished stays so, and nothing else is lost."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop.coordinators.share_fetches import (
    BATCHES,
    CLOSING,
    FIRST_MEMBER,
    OPENING,
    Side,
    Step,
    create_topic,
    draw,
)
from tests.interop.coordinators.test_share_fetches_beside_apache import SMALL, note
from tests.interop.security.principals import Principal
from tests.support.brokers.ours import ours

if TYPE_CHECKING:
    from pathlib import Path

LIVES = 3
STEPS = 25
RELEASE = 2
DELIVERY_LIMIT = 5
AFTER_START_MS, SILENCE_MS = 10_000, 500


class Judge:
    """Records delivered to a group, and those that must not be delivered again."""

    def __init__(self) -> None:
        self.finished: set[int] = set()
        self.deliveries: dict[int, int] = {}

    def given(self, counts: dict[int, int]) -> None:
        """A member was given records, with these delivery counts."""
        assert not self.finished.intersection(counts), "finished records come again"
        for offset, count in counts.items():
            self.deliveries[offset] = max(count, self.deliveries.get(offset, 0))

    def answered(self, step: Step, answer: Any) -> None:
        """A step was taken."""
        code, parts = answer
        refused = bool(code) or bool(parts and (parts[0][1] if step.kind == "fetch" else parts[0]))
        for first, last, types in () if refused else step.acks:
            for offset in range(first, last + 1):
                if (types[offset - first] if len(types) > 1 else types[0]) != RELEASE:
                    self.finished.add(offset)
        if step.kind == "fetch" and not code and parts:
            self.given(parts[0][2])

    def missing(self) -> set[int]:
        """Records that were neither finished nor delivered for the last time."""
        spent = {each for each, count in self.deliveries.items() if count == DELIVERY_LIMIT}
        return set(range(sum(BATCHES))) - self.finished - spent


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 5, 7])
def test_no_record_is_lost_and_no_finished_one_delivered_again(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    judge = Judge()
    broker = ours(tmp_path, SMALL)
    client = Principal(broker.port)
    broker.start()
    try:
        side = Side(client, create_topic(client))
        side.begin("g")
        judge.finished.add(0)  # as it has begun
        for _ in range(LIVES):
            live(side, chance, judge)
            broker.kill()
            broker.start()
            client.close()
            side.epochs.clear()
            begin_again(side, judge)
        drain(side, judge)
    finally:
        client.close()
        broker.kill()
    assert judge.missing() == set()


def live(side: Side, chance: random.Random, judge: Judge) -> None:
    """Drawn members, until the broker dies."""
    held: dict[str, dict[int, int]] = {}
    for _ in range(STEPS):
        step = draw(chance, held)
        answer = side.take(step)
        judge.answered(step, answer)
        note(held, step, answer)


def begin_again(side: Side, judge: Judge) -> None:
    """Wait until the state is read, by taking a record and giving it back."""
    before = side.stored()
    first = Step("fetch", FIRST_MEMBER, [], max_records=1, mode=1)
    judge.answered(first, side.fetch(first, OPENING, AFTER_START_MS))
    after = side.stored()
    assert all(after[offset] >= before[offset] for offset in after), "a count or state fell"
    side.take(Step("acknowledge", FIRST_MEMBER, [], epoch=CLOSING))


def drain(side: Side, judge: Judge) -> None:
    """Accept all that comes until nothing comes any more."""
    everything = Step("fetch", "last", [], max_records=500, batch_size=500)
    while True:
        answer = side.fetch(everything, side.epochs.get("last", OPENING), SILENCE_MS)
        judge.answered(everything, answer)
        if not answer[1]:
            return
        step = Step("acknowledge", "last", [(each, each, [1]) for each in answer[1][0][2]])
        accepted = side.take(step)
        assert accepted == (0, [0])
        judge.answered(step, accepted)
