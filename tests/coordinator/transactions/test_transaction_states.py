"""The table of transitions, and each step that a transaction can take."""

from __future__ import annotations

import pytest

from coordinator.transactions.states import (
    EXPIRABLE,
    STATES_BY_NAME,
    TRANSITIONS,
    TransactionEvent,
    TransactionState,
)
from coordinator.transactions.transaction import Transaction

S, E = TransactionState, TransactionEvent

APACHE_PREVIOUS_STATES = {
    S.EMPTY: {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.ONGOING: {S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.PREPARE_COMMIT: {S.ONGOING},
    S.PREPARE_ABORT: {
        S.ONGOING,
        S.PREPARE_EPOCH_FENCE,
        S.EMPTY,
        S.COMPLETE_COMMIT,
        S.COMPLETE_ABORT,
    },
    S.COMPLETE_COMMIT: {S.PREPARE_COMMIT},
    S.COMPLETE_ABORT: {S.PREPARE_ABORT},
    S.DEAD: {S.EMPTY, S.COMPLETE_ABORT, S.COMPLETE_COMMIT},
    S.PREPARE_EPOCH_FENCE: {S.ONGOING},
}


def test_states_follow_each_other_as_in_apache() -> None:
    followed: dict[TransactionState, set[TransactionState]] = {}
    for (state, _), following in TRANSITIONS.items():
        followed.setdefault(following, set()).add(state)
    assert followed == APACHE_PREVIOUS_STATES


def test_names_are_those_that_clients_know() -> None:
    assert list(STATES_BY_NAME) == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]


def test_only_empty_and_completed_transactions_expire() -> None:
    assert set(EXPIRABLE) == {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}


@pytest.mark.parametrize("state", TransactionState)
@pytest.mark.parametrize("event", TransactionEvent)
def test_a_transition_missing_from_the_table_raises(
    state: TransactionState, event: TransactionEvent
) -> None:
    steps = {
        E.INITIALISED: lambda one: one.raise_epoch(1, 0, 5),
        E.PARTITIONS_ADDED: lambda one: one.add(frozenset({("flights", 0)}), 2, 5),
        E.COMMITTED: lambda one: one.decide(event, 2, -1, 5),
        E.ABORTED: lambda one: one.decide(event, 2, -1, 5),
        E.FENCED: lambda one: one.fence(),
        E.MARKED: lambda one: one.complete(5),
    }
    if event not in steps:
        return
    before = Transaction("t", 7, 1000, producer_epoch=3, state=state)
    if (state, event) in TRANSITIONS:
        assert steps[event](before).state is TRANSITIONS[state, event]
    else:
        with pytest.raises(KeyError):
            steps[event](before)


def test_a_fence_costs_one_epoch_in_either_protocol() -> None:
    ongoing = Transaction("t", 7, 1000, producer_epoch=3, last_epoch=2, state=S.ONGOING)
    newer = ongoing.fence().decide(E.ABORTED, 2, -1, 5)
    older = ongoing.fence().decide(E.ABORTED, 0, -1, 5)
    assert (newer.producer_epoch, newer.last_epoch) == (4, 3)
    assert (older.producer_epoch, older.last_epoch) == (4, -1)


def test_an_end_keeps_the_epoch_in_the_older_protocol() -> None:
    ongoing = Transaction("t", 7, 1000, producer_epoch=3, last_epoch=2, state=S.ONGOING)
    ended = ongoing.decide(E.COMMITTED, 0, -1, 5)
    assert (ended.producer_epoch, ended.last_epoch) == (3, 2)


def test_the_epoch_in_reserve_is_the_last() -> None:
    ongoing = Transaction("t", 7, 1000, producer_epoch=32767, state=S.ONGOING)
    assert ongoing.fence().decide(E.ABORTED, 2, 8, 5).producer_epoch == 32767
    assert ongoing.fence().decide(E.ABORTED, 0, -1, 5).producer_epoch == 32767


def test_a_used_up_producer_goes_on_under_a_new_id_once_all_is_marked() -> None:
    ongoing = Transaction("t", 7, 1000, producer_epoch=32766, state=S.ONGOING)
    decided = ongoing.decide(E.COMMITTED, 2, 8, 5)
    assert (decided.producer_id, decided.producer_epoch) == (7, 32767)
    assert decided.following_identity == (8, 0)
    complete = decided.complete(6)
    assert (complete.producer_id, complete.producer_epoch) == (8, 0)
    assert (complete.previous_producer_id, complete.next_producer_id) == (7, -1)
