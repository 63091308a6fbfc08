"""State transitions of a node's broker, and the delays between restarts."""

from __future__ import annotations

from broker.node.states import TRANSITIONS, Backoff, Event, State

BACKOFF = Backoff(first_ms=1000, longest_ms=60_000)


def test_only_a_stopping_broker_stays_down_when_it_ends() -> None:
    ended = {
        state: TRANSITIONS[state, Event.ENDED]
        for state in State
        if (state, Event.ENDED) in TRANSITIONS
    }
    assert ended == {
        State.STARTING: State.WAITING,
        State.SERVING: State.WAITING,
        State.STOPPING: State.DOWN,
    }


def test_every_broker_can_be_stopped_at_any_time_and_none_serves_after_that() -> None:
    stopped = {TRANSITIONS[state, Event.STOP] for state in State}
    assert stopped == {State.DOWN, State.STOPPING}
    assert (State.STOPPING, Event.SERVES) not in TRANSITIONS


def test_a_broker_that_runs_is_not_started_a_second_time() -> None:
    running = (State.STARTING, State.SERVING, State.STOPPING)
    assert [state for state in running if (state, Event.RUNS) in TRANSITIONS] == []


def test_waits_double_up_to_the_longest() -> None:
    waits = [BACKOFF.wait_ms(failures) for failures in range(1, 9)]
    assert waits == [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]
    assert BACKOFF.wait_ms(1_000_000) == 60_000


def test_a_broker_that_served_for_long_begins_with_the_first_wait_again() -> None:
    assert BACKOFF.failures(5, served_ms=59_999) == 6
    assert BACKOFF.failures(5, served_ms=60_000) == 1
