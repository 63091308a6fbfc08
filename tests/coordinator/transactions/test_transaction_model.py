"""Random producers, clocks, failures and failovers: what holds of transactions after every step.

- what is stored goes from state to state as the table says, and producers' identities only rise
- a transaction ends in one way: no partition gets both kinds of marker with one identity, and what
  a producer was told is what happens, whoever coordinates
- nobody but the newest producer changes anything
- what a failover reads back is what was stored and committed
- in the end nothing is left decided but incomplete
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coordinator.transactions.records import TransactionFormat, TransactionRecord
from coordinator.transactions.settings import TransactionSettings
from coordinator.transactions.states import TRANSITIONS, TransactionEvent, TransactionState
from coordinator.transactions.transaction import EXHAUSTED_EPOCH
from protocol.errors import ErrorCode
from tests.coordinator.harness import Inbox
from tests.coordinator.transactions.harness import NEW, OLD, Harness

if TYPE_CHECKING:
    from coordinator.transactions.transaction import Transaction

S = TransactionState
IDS = ("a", "b")
PARTITIONS = (("flights", 0), ("flights", 1), ("__consumer_offsets", 3))
EPOCHS = (0, 32764, 32766)
FOLLOWING = {(state, following) for (state, _), following in TRANSITIONS.items()} | {
    (S.ONGOING, TRANSITIONS[S.PREPARE_EPOCH_FENCE, TransactionEvent.ABORTED])
}
STEPS_BACK = st.sampled_from([0, 0, 0, 0, 1, 2, -1])
"""Epochs by which a producer's own lags behind."""


class TransactionMachine(RuleBasedStateMachine):
    """A shard under random producers."""

    @initialize(
        version=st.sampled_from([0, 1, 2, 2]),
        first_epoch=st.sampled_from(EPOCHS),
        is_mixed=st.booleans(),
    )
    def start(self, version: int, first_epoch: int, is_mixed: bool) -> None:
        self.older = OLD if is_mixed else NEW
        """Version of producers that do not speak the newest one."""
        self.is_newest = version >= NEW and not is_mixed
        self.settings = TransactionSettings(finalised=lambda: version, id_expiration_ms=500_000)
        self.harness = Harness(self.settings)
        self.told: dict[tuple[str, int, int], bool] = {}
        """Outcomes confirmed to producers: whether committed, by id and epoch of the markers."""
        for name in IDS:
            self.harness.initialise(transactional_id=name)
            known = self.known(name)
            assert known is not None
            begun = replace(known, producer_epoch=first_epoch)
            self.harness.append([TransactionRecord(name, begun)])

    def known(self, name: str) -> Transaction | None:
        return self.harness.shard.find(name)

    def producer(self, name: str, steps_back: int) -> tuple[int, int]:
        known = self.known(name)
        if known is None:
            return 1, 0
        # Nobody is ever told the epoch in reserve.
        return known.producer_id, min(known.producer_epoch - steps_back, EXHAUSTED_EPOCH)

    def is_newest_producer(self, name: str, producer: tuple[int, int]) -> bool:
        known = self.known(name)
        return known is not None and producer == (known.producer_id, known.producer_epoch)

    @rule(name=st.sampled_from(IDS), goes_on=st.booleans(), steps_back=STEPS_BACK)
    def initialise(self, name: str, goes_on: bool, steps_back: int) -> None:
        inbox = Inbox()
        expected = self.producer(name, steps_back) if goes_on else None
        if expected is None or min(expected) >= 0:
            self.harness.send_initialise(inbox, expected, name)

    @rule(
        name=st.sampled_from(IDS),
        partition=st.sampled_from(PARTITIONS),
        is_newer=st.booleans(),
        steps_back=STEPS_BACK,
    )
    def add(self, name: str, partition: tuple[str, int], is_newer: bool, steps_back: int) -> None:
        before, producer = self.known(name), self.producer(name, steps_back)
        is_newest = self.is_newest_producer(name, producer)
        self.harness.send_add(
            Inbox(),
            producer,
            partition,
            version=NEW if is_newer else self.older,
            transactional_id=name,
        )
        assert is_newest or self.known(name) == before

    @rule(
        name=st.sampled_from(IDS),
        commit=st.booleans(),
        is_newer=st.booleans(),
        steps_back=STEPS_BACK,
    )
    def end(self, name: str, commit: bool, is_newer: bool, steps_back: int) -> None:
        before = self.known(name)
        inbox = Inbox()
        producer = self.producer(name, steps_back)
        is_newest = self.is_newest_producer(name, producer)
        version = NEW if is_newer else self.older
        self.harness.send_end(
            inbox, producer, commit=commit, version=version, transactional_id=name
        )
        after = self.known(name)
        assert is_newest or after == before
        if after is not None and after != before:
            self.expect(name, after, inbox)

    def expect(self, name: str, decided: Transaction, inbox: Inbox) -> None:
        """Record a decision once its producer is told: told late, it counts from then."""
        is_commit = decided.state is S.PREPARE_COMMIT
        key = (name, decided.producer_id, decided.producer_epoch)
        complete = inbox.complete

        def told(value: object) -> None:
            complete(value)
            if inbox.response.error is ErrorCode.NONE:
                self.told[key] = is_commit

        if inbox.is_parked:
            inbox.complete = told  # type: ignore[method-assign]
        elif inbox.response.error is ErrorCode.NONE:
            self.told[key] = is_commit

    @rule(delay_ms=st.sampled_from([0, 1, 60_001, 600_000]))
    def time_passes(self, delay_ms: int) -> None:
        self.harness.now_ms += delay_ms

    @rule()
    def overdue_transactions_are_aborted(self) -> None:
        self.harness.expire()

    @rule()
    def unused_ids_are_forgotten(self) -> None:
        self.harness.forget()

    @rule()
    def markers_are_written(self) -> None:
        self.harness.write_markers()

    @precondition(lambda self: self.harness.to_mark)
    @rule(data=st.data())
    def some_markers_are_written(self, data: st.DataObject) -> None:
        transaction = data.draw(st.sampled_from(self.harness.to_mark))
        if transaction.partitions:
            partition = data.draw(st.sampled_from(sorted(transaction.partitions)))
            self.harness.mark(transaction, partition)

    @rule(error=st.sampled_from([None, None, ErrorCode.NOT_ENOUGH_REPLICAS]))
    def disk_or_replicas_change(self, error: ErrorCode | None) -> None:
        self.harness.append_error = error

    @rule(at_once=st.booleans())
    def replication_changes(self, at_once: bool) -> None:
        self.harness.commits_at_once = at_once
        if at_once:
            self.harness.commit()

    @rule()
    def replicas_catch_up(self) -> None:
        self.harness.commit()

    @rule()
    def producer_ids_run_out(self) -> None:
        self.harness.next_id = (
            None if self.harness.next_id is not None else 5000 + len(self.harness.log)
        )

    @rule()
    def coordinator_moves(self) -> None:
        self.harness = self.harness.fail_over()

    @invariant()
    def what_is_stored_follows_the_table(self) -> None:
        if not hasattr(self, "harness"):
            return
        latest: dict[str, Transaction] = {}
        for record in self.stored():
            name, transaction = record
            before = latest.pop(name, None)
            if transaction is None:
                assert before is not None
                continue
            latest[name] = transaction
            if before is None or before.producer_epoch + 10 < transaction.producer_epoch:
                continue  # the first epoch of the test, put there
            assert (before.state, transaction.state) in FOLLOWING
            assert (before.producer_id, before.producer_epoch) <= (
                transaction.producer_id,
                transaction.producer_epoch,
            )
            assert 0 <= transaction.producer_epoch <= 32767
            if not transaction.state.is_decided:
                assert transaction.producer_epoch <= 32767 - (transaction.client_version >= NEW)

    def stored(self) -> list[tuple[str, Transaction | None]]:
        read = [TransactionFormat(lambda: 2).decode(*entry) for entry in self.harness.log]
        return [(one.transactional_id, one.transaction) for one in read if one is not None]

    @invariant()
    def a_transaction_ends_in_one_way(self) -> None:
        """With an epoch for each transaction, the epoch of its markers identifies it."""
        if not hasattr(self, "harness") or not self.is_newest:
            return
        outcomes: dict[tuple[int, int], str] = {}
        for _, producer_id, epoch, outcome in self.harness.markers:
            assert outcomes.setdefault((producer_id, epoch), outcome) == outcome
        for (_, producer_id, epoch), is_commit in self.told.items():
            outcome = "COMMIT" if is_commit else "ABORT"
            assert outcomes.get((producer_id, epoch), outcome) == outcome

    @invariant()
    def a_failover_reads_back_what_was_stored(self) -> None:
        if not hasattr(self, "harness") or not self.harness.commits_at_once:
            return
        other = Harness(self.settings)
        for key, value in self.harness.log:
            record = TransactionFormat(lambda: 2).decode(key, value)
            assert record is not None
            other.shard.replay(record)
        for name in IDS:
            live, read = self.known(name), other.shard.find(name)
            assert (live is None) == (read is None)
            if live is not None and read is not None:
                assert comparable(live, self.settings.version) == comparable(
                    read, self.settings.version
                )
        decided = {name for name in IDS if (one := self.known(name)) and one.state.is_decided}
        due = {one.transactional_id for one in self.harness.to_mark}
        assert decided <= due

    def teardown(self) -> None:
        if not hasattr(self, "harness"):
            return
        self.harness.append_error = None
        self.harness.commits_at_once = True
        self.harness.commit()
        self.harness.write_markers()
        for name in IDS:
            known = self.known(name)
            assert known is None or not known.state.is_decided


def comparable(transaction: Transaction, version: int) -> Transaction:
    """Return the part of a transaction that records keep: of the oldest format, less."""
    kept = replace(transaction, last_epoch=-1)
    if version >= 1:
        return kept
    return replace(kept, previous_producer_id=-1, next_producer_id=-1, client_version=0)


TestTransactions = TransactionMachine.TestCase
TestTransactions.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
