"""A shard of transactions with a list for a log, and a high watermark that tests move.

`Harness` is the broker's part in small: it appends, replays, answers what is committed, and keeps
the transactions whose markers are due. A reply must be answered once.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from coordinator.transactions.initialisation import check
from coordinator.transactions.ports import End, Identity, Initialisation
from coordinator.transactions.records import TransactionFormat, TransactionRecord
from coordinator.transactions.settings import TransactionSettings
from coordinator.transactions.shard import TransactionShard
from protocol.errors import ApiError, ErrorCode
from tests.coordinator.harness import Inbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.effects import CommittedAnswer
    from coordinator.transactions.effects import TransactionEffects
    from coordinator.transactions.transaction import TopicPartition, Transaction

ID = "payments"
FLIGHTS = ("flights", 0)
HOTELS = ("hotels", 1)
NEW, OLD = 2, 0
TIMEOUT_MS = 60_000


class Harness:
    """A shard and everything around it."""

    def __init__(self, settings: TransactionSettings | None = None, first_id: int = 1000) -> None:
        self.settings = settings or TransactionSettings()
        self.now_ms = 1_000_000
        self.next_id: int | None = first_id
        self.log: list[tuple[bytes, bytes | None]] = []
        self.high_watermark = 0
        self.commits_at_once = True
        self.append_error: ErrorCode | None = None
        self.to_mark: list[Transaction] = []
        self.markers: list[tuple[TopicPartition, int, int, str]] = []
        self._waiting: list[tuple[int, Callable[[ErrorCode], None]]] = []
        self._format = TransactionFormat(self.settings.finalised)
        self.shard = TransactionShard(self.settings, self._new_id)

    def _new_id(self) -> int | None:
        taken = self.next_id
        if taken is not None:
            self.next_id = taken + 1
        return taken

    # The broker's part

    def run(self, effects: TransactionEffects) -> bool:
        """Do what the broker does with the outcome of a decision."""
        if effects.records and self.append_error is not None:
            for refused in effects.committed_answers:
                refused.reply.complete(refused.refuse(self.append_error))
            return False
        self.append(effects.records)
        for answer in effects.answers:
            answer.reply.complete(answer.response)
        self._when_committed(partial(_answer, effects.committed_answers))
        self._when_committed(partial(self._note_decided, effects.to_mark))
        return True

    def append(self, records: list[TransactionRecord]) -> None:
        for record in records:
            self.log.append((self._format.encode_key(record), self._format.encode_value(record)))
            self.shard.replay(record)
        if self.commits_at_once:
            self.commit()

    def _note_decided(self, decided: list[Transaction], code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            self.to_mark += decided

    def commit(self) -> None:
        """Commit all appended records, and call their waiters."""
        self.high_watermark = len(self.log)
        waiting, self._waiting = self._waiting, []
        for _, callback in waiting:
            callback(ErrorCode.NONE)

    def _when_committed(self, callback: Callable[[ErrorCode], None]) -> None:
        if self.high_watermark >= len(self.log):
            callback(ErrorCode.NONE)
        else:
            self._waiting.append((len(self.log), callback))

    def fail_over(self) -> Harness:
        """Fail over to another broker, which has the committed records; waiting requests fail."""
        waiting, self._waiting = self._waiting, []
        for _, callback in waiting:
            callback(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        other = Harness(self.settings)
        other.now_ms, other.next_id = self.now_ms, self.next_id
        other.commits_at_once = self.commits_at_once
        other.log = self.log[: self.high_watermark]
        other.high_watermark = len(other.log)
        other.markers = self.markers
        for key, value in other.log:
            record = other._format.decode(key, value)
            assert record is not None
            other.shard.replay(record)
        other.run(other.shard.on_loaded())
        return other

    def write_markers(self) -> None:
        """Write the markers of all decided transactions, and report them to the shard."""
        decided, self.to_mark = self.to_mark, []
        for transaction in decided:
            for partition in sorted(transaction.partitions):
                self.mark(transaction, partition)
            if not self.run(self.shard.handle_markers_written(transaction, self.now_ms)):
                self.to_mark.append(transaction)

    def mark(self, transaction: Transaction, partition: TopicPartition) -> None:
        self.markers.append(
            (
                partition,
                transaction.producer_id,
                transaction.producer_epoch,
                transaction.state.name.removeprefix("PREPARE_"),
            )
        )

    # Requests

    def initialise(
        self, expected: tuple[int, int] | None = None, transactional_id: str = ID, **fields: Any
    ) -> Identity:
        inbox = Inbox()
        self.send_initialise(inbox, expected, transactional_id, **fields)
        told: Identity = inbox.response
        return told

    def send_initialise(
        self,
        inbox: Inbox,
        expected: tuple[int, int] | None = None,
        transactional_id: str = ID,
        **fields: Any,
    ) -> None:
        request = Initialisation(
            transactional_id, fields.pop("timeout_ms", TIMEOUT_MS), expected, **fields
        )
        try:
            check(request, self.settings)
        except ApiError as error:
            inbox.complete(Identity(error.code))
            return
        self.run(self.shard.handle_initialise(request, inbox, self.now_ms))

    def add(
        self, producer: tuple[int, int], *partitions: TopicPartition, version: int = NEW
    ) -> ErrorCode:
        inbox = Inbox()
        self.send_add(inbox, producer, *partitions, version=version)
        code: ErrorCode = inbox.response
        return code

    def send_add(
        self,
        inbox: Inbox,
        producer: tuple[int, int],
        *partitions: TopicPartition,
        version: int = NEW,
        transactional_id: str = ID,
    ) -> None:
        self.run(
            self.shard.handle_add_partitions(
                (transactional_id, *producer),
                frozenset(partitions),
                version,
                inbox,
                self.now_ms,
            )
        )

    def verify(
        self, producer: tuple[int, int], *partitions: TopicPartition
    ) -> dict[TopicPartition, ErrorCode]:
        inbox = Inbox()
        self.run(self.shard.handle_verify((ID, *producer), partitions, inbox))
        found: dict[TopicPartition, ErrorCode] = inbox.response
        return found

    def end(
        self, producer: tuple[int, int], *, commit: bool = True, version: int = NEW
    ) -> Identity:
        inbox = Inbox()
        self.send_end(inbox, producer, commit=commit, version=version)
        told: Identity = inbox.response
        return told

    def send_end(
        self,
        inbox: Inbox,
        producer: tuple[int, int],
        *,
        commit: bool = True,
        version: int = NEW,
        transactional_id: str = ID,
    ) -> None:
        end = End(transactional_id, *producer, commit, version)
        self.run(self.shard.handle_end(end, inbox, self.now_ms))

    def expire(self) -> list[str]:
        """Abort timed-out transactions, as the broker does every ten seconds."""
        overdue = self.shard.overdue(self.now_ms)
        for transactional_id in overdue:
            self.run(self.shard.expire(transactional_id, self.now_ms))
        return overdue

    def forget(self) -> list[str]:
        """Expire unused transactional ids, as the broker does every hour."""
        tombstones = [each for some in self.shard.forgettable(self.now_ms) for each in some]
        if self.append_error is None:
            self.append(tombstones)
        return [each.transactional_id for each in tombstones]

    # For tests

    @property
    def known(self) -> Transaction:
        found = self.shard.find(ID)
        assert found is not None
        return found

    def begin(self, epoch: int | None = None) -> tuple[int, int]:
        """A new producer; with the given epoch, by putting a record there."""
        told = self.initialise()
        assert told.error is ErrorCode.NONE
        if epoch is None:
            return told.producer_id, told.producer_epoch
        self.put(producer_epoch=epoch)
        return told.producer_id, epoch

    def put(self, **fields: Any) -> None:
        """Replace fields of what is known."""
        self.append([TransactionRecord(ID, replace(self.known, **fields))])


def _answer(answers: list[CommittedAnswer], code: ErrorCode) -> None:
    for reply, response, refuse in answers:
        reply.complete(response if code is ErrorCode.NONE else refuse(code))
