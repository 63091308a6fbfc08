"""Dead letters are sent on once and in order, across changes of leader and lost answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.delivery.relay_plan import MOST_RECORDS, RelayPlan, Step
from broker.delivery.waiting_queue import RunPlace, WaitingQueue
from protocol.delays.relay_batch import NOTHING, Position, Relay
from protocol.errors import ErrorCode
from tests.simulation.machine.disk import SimulatedDisk

MOST_IN_MEMORY = 20


def planned(last: Relay | None) -> RelayPlan:
    """Return a plan that has to spill into files."""
    disk = SimulatedDisk(lambda: 0)
    disk.make_directory("/data")
    place = RunPlace(disk, "/data", "dead-letters")
    return RelayPlan(last, WaitingQueue(place, Position._make, MOST_IN_MEMORY))


@dataclass
class DeadLetterLog:
    """The partition they are sent to: takes a producer's batches in order, and none twice."""

    arrived: list[Position] = field(default_factory=list)
    _next: dict[int, int] = field(default_factory=dict)
    _last: dict[int, tuple[int, int]] = field(default_factory=dict)
    most: int = MOST_RECORDS
    """Larger batches are refused."""

    def take(self, relay: Relay, batch: list[Position]) -> ErrorCode:
        if len(batch) > self.most:
            return ErrorCode.MESSAGE_TOO_LARGE
        expected = self._next.get(relay.producer_id, 0)
        if self._last.get(relay.producer_id) == (relay.sequence, len(batch)):
            return ErrorCode.NONE  # the duplicate of the last one
        if relay.sequence != expected:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        self._next[relay.producer_id] = relay.sequence + len(batch)
        self._last[relay.producer_id] = relay.sequence, len(batch)
        self.arrived += batch
        return ErrorCode.NONE


@dataclass
class Leader:
    """Carries a plan out, and may stop after any step; what it noted may be lost if so."""

    source: list[Position]
    log: list[Relay]
    dead_letters: DeadLetterLog
    producer_ids: list[int] = field(default_factory=lambda: [0])

    def begin(self) -> RelayPlan:
        plan = planned(self.log[-1] if self.log else None)
        for position in self.source:
            plan.add(position)
            for _ in plan.spill() if plan.is_full else ():
                pass
        return plan

    def step(self, plan: RelayPlan) -> Step:
        step = plan.next()
        if step is Step.OBTAIN:
            self.producer_ids[0] += 1
            plan.obtained(self.producer_ids[0])
        elif step is Step.NOTE:
            relay = plan.to_note(MOST_RECORDS)
            self.log.append(relay)
            plan.noted_in_log(relay)
        elif step is Step.SEND:
            code = self.dead_letters.take(plan.noted, list(plan.to_send()))
            plan.answered(code)
        return step


def positions(count: int) -> list[Position]:
    return [Position(number * 3, number * 2) for number in range(count)]


def test_a_batch_is_noted_before_it_is_sent_and_after_it_has_arrived() -> None:
    leader = Leader(positions(2), [], DeadLetterLog())
    plan = leader.begin()

    steps = [leader.step(plan) for _ in range(5)]

    assert steps == [Step.OBTAIN, Step.NOTE, Step.SEND, Step.NOTE, Step.REST]
    assert leader.log == [
        Relay(1, 0, 0, NOTHING, Position(3, 2)),
        Relay(1, 0, 2, Position(3, 2), Position(3, 2)),
    ]


def test_a_batch_in_flight_at_the_last_leader_is_sent_again_unchanged() -> None:
    source = positions(3)
    log = [Relay(7, 0, 4, NOTHING, source[1])]
    leader = Leader(source, log, DeadLetterLog(source[:2], {7: 6}, {7: (4, 2)}))
    plan = leader.begin()

    while leader.step(plan) is not Step.REST:
        pass

    assert leader.dead_letters.arrived == source


def test_a_producer_unknown_to_the_dead_letter_topic_gets_a_new_id() -> None:
    leader = Leader(positions(1), [Relay(7, 0, 4, NOTHING, Position(0, 0))], DeadLetterLog())
    plan = leader.begin()

    steps = [leader.step(plan) for _ in range(5)]

    assert steps == [Step.NOTE, Step.SEND, Step.OBTAIN, Step.NOTE, Step.SEND]
    assert leader.dead_letters.arrived == positions(1)


def test_a_retriable_error_leaves_the_relay_plan_unchanged() -> None:
    plan = Leader(positions(1), [], DeadLetterLog()).begin()
    assert plan.next() is Step.OBTAIN
    plan.obtained(1)
    plan.noted_in_log(plan.to_note(MOST_RECORDS))

    assert not plan.answered(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    assert plan.next() is Step.SEND
    assert plan.least_offset == 0


@pytest.mark.parametrize("is_led_by_another", [True, False])
def test_a_batch_that_is_too_large_is_halved_until_accepted(*, is_led_by_another: bool) -> None:
    """The note of a smaller batch is committed before that is sent."""
    count, most = 2 * MOST_RECORDS, 7
    leader = Leader(positions(count), [], DeadLetterLog(most=most))
    plan, chance = leader.begin(), Random(7)
    while (step := leader.step(plan)) is not Step.REST:
        if is_led_by_another and step is Step.NOTE and chance.random() < 0.5:
            plan = leader.begin()

    assert leader.dead_letters.arrived == positions(count)
    assert len(leader.log) < 5 * count


def test_a_single_record_that_is_too_large_is_retried() -> None:
    plan = Leader(positions(1), [], DeadLetterLog()).begin()
    assert plan.next() is Step.OBTAIN
    plan.obtained(1)
    plan.noted_in_log(plan.to_note(MOST_RECORDS))

    assert not plan.answered(ErrorCode.MESSAGE_TOO_LARGE)

    assert plan.next() is Step.SEND


def test_a_dead_letter_deleted_from_the_log_is_not_waited_for() -> None:
    plan = planned(Relay(7, 0, 4, NOTHING, Position(9, 9)))

    assert plan.next() is Step.REST
    plan.add(Position(10, 10))
    assert plan.next() is Step.OBTAIN
    plan.obtained(8)

    assert plan.next() is Step.NOTE
    assert plan.to_note(1) == Relay(8, 0, 0, Position(9, 9), Position(10, 10))


def test_dead_letters_after_a_deleted_one_are_no_duplicates() -> None:
    """It had arrived unnoted: its leader died, and records were deleted, say."""
    source = positions(4)
    dead_letters = DeadLetterLog(source[:2], {7: 6}, {7: (4, 2)})
    leader = Leader(source[2:], [Relay(7, 0, 4, NOTHING, source[1])], dead_letters)
    plan = leader.begin()

    while leader.step(plan) is not Step.REST:
        pass

    assert dead_letters.arrived == source


@given(st.integers(0, 3 * MOST_RECORDS), st.integers(0, 2**32))
def test_each_dead_letter_arrives_once_in_order_across_leaders(count: int, seed: int) -> None:
    chance = Random(seed)
    source = positions(count)
    leader = Leader([], [], DeadLetterLog())
    for _ in range(20):
        leader.source = source[: chance.randint(len(leader.source), count)]
        plan = leader.begin()
        for _ in range(chance.randint(0, 8)):
            if leader.step(plan) is Step.REST:
                break
        else:
            # It dies: what it noted last may not be committed, but what it sent after that is.
            if leader.log and plan.next() is Step.SEND and chance.random() < 0.5:
                leader.log.pop()
    leader.source = source
    plan = leader.begin()
    while leader.step(plan) is not Step.REST:
        pass

    assert leader.dead_letters.arrived == source


def test_dead_letters_in_memory_are_bounded() -> None:
    count = 100 * MOST_IN_MEMORY
    leader = Leader(positions(count), [], DeadLetterLog())
    plan = leader.begin()

    assert len(plan._behind._heap) <= MOST_IN_MEMORY
    assert len(plan) == count
    while leader.step(plan) is not Step.REST:
        assert len(plan._dead) <= MOST_RECORDS

    assert leader.dead_letters.arrived == positions(count)
    assert len(plan) == 0
    assert plan.least_offset is None
