"""Requests of producers, decided by a shard: what the golden scripts cannot reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coordinator.transactions.settings import TransactionSettings
from coordinator.transactions.states import TransactionState
from protocol.errors import ErrorCode
from tests.coordinator.harness import Inbox
from tests.coordinator.transactions.harness import FLIGHTS, HOTELS, ID, NEW, OLD, Harness

if TYPE_CHECKING:
    from coordinator.transactions.ports import Identity

S = TransactionState
LAST = 32766
VERSIONS = pytest.mark.parametrize("version", [OLD, NEW])


def identity(told: Identity) -> tuple[int, int]:
    assert told.error is ErrorCode.NONE
    return told.producer_id, told.producer_epoch


# While a transaction is decided and not complete


@VERSIONS
def test_nothing_can_be_done_until_markers_are_written(version: int) -> None:
    shard = Harness()
    producer = shard.begin()
    shard.add(producer, FLIGHTS, version=version)
    ended = shard.end(producer, version=version)
    now = identity(ended) if version == NEW else producer
    concurrent = ErrorCode.CONCURRENT_TRANSACTIONS
    assert shard.initialise().error is concurrent
    assert shard.initialise((9, 9)).error is concurrent
    assert shard.add(now, HOTELS) is concurrent
    assert shard.add((9, 9), HOTELS) is concurrent
    assert shard.verify(now, FLIGHTS) == {FLIGHTS: concurrent}
    assert shard.verify((9, 9), FLIGHTS) == {FLIGHTS: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert shard.end(now, version=NEW).error is concurrent
    assert shard.end((9, 9), version=NEW).error is concurrent
    assert shard.end(now, version=OLD).error is concurrent
    shard.write_markers()
    assert shard.known.state is S.COMPLETE_COMMIT
    assert shard.add(now, HOTELS) is ErrorCode.NONE


def test_markers_carry_the_epoch_that_the_end_raised() -> None:
    shard = Harness()
    producer_id, epoch = shard.begin()
    shard.add((producer_id, epoch), FLIGHTS, HOTELS)
    shard.end((producer_id, epoch))
    shard.write_markers()
    assert shard.markers == [
        (FLIGHTS, producer_id, epoch + 1, "COMMIT"),
        (HOTELS, producer_id, epoch + 1, "COMMIT"),
    ]


def test_markers_of_a_transaction_that_has_gone_on_change_nothing() -> None:
    shard = Harness()
    producer = shard.begin()
    shard.add(producer, FLIGHTS)
    shard.end(producer)
    decided = shard.known
    shard.write_markers()
    length = len(shard.log)
    shard.run(shard.shard.handle_markers_written(decided, shard.now_ms))
    assert len(shard.log) == length


# Epochs that are used up


def test_a_commit_at_the_last_epoch_gives_a_new_id() -> None:
    shard = Harness()
    old = shard.begin(LAST)
    assert shard.add(old, FLIGHTS) is ErrorCode.NONE
    new = identity(shard.end(old))
    assert new == (old[0] + 1, 0)
    shard.write_markers()
    assert shard.markers == [(FLIGHTS, old[0], LAST + 1, "COMMIT")]
    assert identity(shard.end(old)) == new
    assert shard.end(old, commit=False).error is ErrorCode.INVALID_TXN_STATE
    assert shard.end(new).error is ErrorCode.INVALID_TXN_STATE
    assert shard.add(old, FLIGHTS) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert shard.add(new, FLIGHTS) is ErrorCode.NONE


def test_initialising_at_the_last_epoch_gives_a_new_id() -> None:
    shard = Harness()
    old = shard.begin(LAST)
    assert identity(shard.initialise()) == (old[0] + 1, 0)


def test_a_retried_init_with_the_previous_producer_id_is_accepted() -> None:
    shard = Harness()
    old = shard.begin(LAST)
    new = identity(shard.initialise(old))
    assert identity(shard.initialise(old)) == new == (old[0] + 1, 0)
    assert shard.initialise((old[0], LAST - 1)).error is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize(("version", "then"), [(0, (1001, 0)), (2, (1001, 1))])
def test_fencing_the_last_epoch_takes_the_one_in_reserve(
    version: int, then: tuple[int, int]
) -> None:
    shard = Harness(TransactionSettings(finalised=lambda: version))
    old = shard.begin(LAST)
    shard.add(old, FLIGHTS, version=version)
    assert shard.initialise().error is ErrorCode.CONCURRENT_TRANSACTIONS
    shard.write_markers()
    assert shard.markers == [(FLIGHTS, old[0], LAST + 1, "ABORT")]
    assert identity(shard.initialise()) == then


def test_without_a_producer_id_at_hand_clients_come_again() -> None:
    shard = Harness()
    producer = shard.begin(LAST)
    shard.add(producer, FLIGHTS)
    shard.next_id = None
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert shard.end(producer).error is loading
    assert shard.initialise().error is loading
    assert shard.initialise(transactional_id="other").error is loading
    shard.now_ms += 100_000
    shard.expire()
    assert shard.known.state is S.ONGOING


# KIP-360


def test_init_with_a_known_producer_id_and_epoch_raises_the_epoch() -> None:
    shard = Harness()
    first = shard.begin()
    second = identity(shard.initialise(first))
    assert second == (first[0], first[1] + 1)
    assert identity(shard.initialise(first)) == second
    third = identity(shard.initialise(second))
    assert shard.initialise(first).error is ErrorCode.PRODUCER_FENCED
    assert identity(shard.initialise(third)) == (first[0], first[1] + 3)


def test_after_a_reload_a_repeated_request_is_fenced_as_apache_does() -> None:
    shard = Harness()
    first = shard.begin()
    identity(shard.initialise(first))
    reloaded = shard.fail_over()
    assert reloaded.initialise(first).error is ErrorCode.PRODUCER_FENCED


# Two-phase commit (KIP-939)


def test_two_phase_commit_is_refused_unless_it_is_enabled() -> None:
    refused = Harness().initialise(is_two_phase=True)
    assert refused.error is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_two_phase_transaction_never_times_out() -> None:
    shard = Harness(TransactionSettings(is_two_phase_commit_enabled=True))
    producer = identity(shard.initialise(is_two_phase=True, timeout_ms=0))
    shard.add(producer, FLIGHTS)
    shard.now_ms += 2**40
    assert shard.expire() == []
    kept = shard.initialise(is_two_phase=True, keeps_prepared=True)
    assert kept.error is ErrorCode.UNSUPPORTED_VERSION


# Time


def test_an_overdue_transaction_is_aborted_and_its_producer_fenced() -> None:
    shard = Harness()
    producer = shard.begin()
    shard.add(producer, FLIGHTS)
    shard.now_ms += 60_000
    assert shard.expire() == []
    shard.now_ms += 1
    assert shard.expire() == [ID]
    assert shard.known.state is S.PREPARE_ABORT
    assert shard.expire() == []
    shard.write_markers()
    assert shard.markers == [(FLIGHTS, producer[0], producer[1] + 1, "ABORT")]
    assert shard.end(producer, version=OLD).error is ErrorCode.PRODUCER_FENCED
    assert shard.add(producer, FLIGHTS) is ErrorCode.PRODUCER_FENCED


def test_partitions_added_later_do_not_prolong_a_transaction() -> None:
    shard = Harness()
    producer = shard.begin()
    shard.add(producer, FLIGHTS)
    shard.now_ms += 60_001
    shard.add(producer, HOTELS)
    assert shard.expire() == [ID]


def test_an_abort_that_was_decided_meanwhile_is_left_alone() -> None:
    shard = Harness()
    producer = shard.begin()
    shard.add(producer, FLIGHTS)
    shard.now_ms += 60_001
    shard.end(producer)
    shard.run(shard.shard.expire(ID, shard.now_ms))
    shard.run(shard.shard.expire("nobody", shard.now_ms))
    assert shard.known.state is S.PREPARE_COMMIT


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_an_unused_transactional_id_expires(state: TransactionState) -> None:
    shard = Harness(TransactionSettings(id_expiration_ms=5_000))
    shard.begin()
    shard.put(state=state)
    shard.now_ms += 4_999
    assert shard.forget() == []
    shard.now_ms += 1
    assert shard.forget() == [ID]
    assert shard.shard.find(ID) is None
    assert shard.fail_over().shard.find(ID) is None


@pytest.mark.parametrize("state", [S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_an_open_transaction_is_never_forgotten(state: TransactionState) -> None:
    shard = Harness(TransactionSettings(id_expiration_ms=5_000))
    shard.begin()
    shard.put(state=state)
    shard.now_ms += 2**40
    assert shard.forget() == []


# The log


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_refused_append_changes_no_transaction(refusal: ErrorCode, told: ErrorCode) -> None:
    shard = Harness()
    producer = shard.begin()
    shard.add(producer, FLIGHTS)
    before = shard.known
    shard.append_error = refusal
    assert shard.add(producer, HOTELS) is told
    assert shard.end(producer).error is told
    assert shard.initialise().error is told
    assert shard.initialise(transactional_id="other").error is told
    assert shard.known == before
    assert shard.shard.find("other") is None
    assert shard.to_mark == []
    shard.append_error = None
    assert shard.end(producer).error is ErrorCode.NONE


def test_answers_and_markers_wait_for_the_commit() -> None:
    shard = Harness()
    producer = shard.begin()
    shard.add(producer, FLIGHTS)
    shard.commits_at_once = False
    inbox, verified = Inbox(), Inbox()
    shard.send_add(inbox, producer, HOTELS)
    shard.run(shard.shard.handle_verify((ID, *producer), [HOTELS], verified))
    assert inbox.is_parked
    assert verified.is_parked
    ended = Inbox()
    shard.send_end(ended, producer)
    assert ended.is_parked
    assert shard.to_mark == []
    shard.commit()
    assert inbox.response is ErrorCode.NONE
    assert verified.response == {HOTELS: ErrorCode.NONE}
    assert ended.response.error is ErrorCode.NONE
    assert [each.transactional_id for each in shard.to_mark] == [ID]


@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
def test_a_new_coordinator_completes_prepared_transactions(version: int, commit: bool) -> None:
    shard = Harness()
    producer = shard.begin()
    shard.add(producer, FLIGHTS, HOTELS, version=version)
    shard.end(producer, commit=commit, version=version)
    shard.mark(shard.known, FLIGHTS)
    successor = shard.fail_over()
    successor.write_markers()
    assert successor.known.state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)
    epoch = producer[1] + (version == NEW)
    outcome = "COMMIT" if commit else "ABORT"
    assert set(successor.markers) == {
        (FLIGHTS, producer[0], epoch, outcome),
        (HOTELS, producer[0], epoch, outcome),
    }


def test_a_decision_that_was_not_committed_did_not_happen() -> None:
    shard = Harness()
    producer = shard.begin()
    shard.add(producer, FLIGHTS)
    shard.commits_at_once = False
    inbox = Inbox()
    shard.send_end(inbox, producer)
    successor = shard.fail_over()
    assert inbox.response.error is ErrorCode.NOT_COORDINATOR
    assert successor.known.state is S.ONGOING
    assert successor.to_mark == []
