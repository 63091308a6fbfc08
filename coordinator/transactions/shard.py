"""One partition of `__transaction_state` as a state machine: the entry point of all requests.

`handle_*` decide, `replay` changes. The broker appends the records of a `TransactionEffects`,
replays them here, gives the answers when they are committed, and then has the markers of `to_mark`
written; after a restart it replays the log and calls `on_loaded`, which gives it the transactions
whose markers a predecessor may not have written. Nothing here waits and nothing is parked: while a
transaction is decided but not complete, its producer gets CONCURRENT_TRANSACTIONS and retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.storage_errors import storage_error
from coordinator.transactions import endings, initialisation, listing
from coordinator.transactions.effects import TransactionEffects
from coordinator.transactions.ports import Identity
from coordinator.transactions.records import TransactionRecord
from coordinator.transactions.states import EXPIRABLE, TransactionState
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from coordinator.ports import Reply
    from coordinator.transactions.listing import Description, Filters
    from coordinator.transactions.ports import End, Initialisation, ProducerIdBlocks
    from coordinator.transactions.settings import TransactionSettings
    from coordinator.transactions.transaction import TopicPartition, Transaction
    from protocol.messages.producers import ListTransactionsResponse

IDS_AT_ONCE = 250
"""Ids checked for expiry before others are served."""


class TransactionShard:
    """The transactional ids that hash to one partition."""

    def __init__(self, settings: TransactionSettings, new_id: ProducerIdBlocks) -> None:
        self._settings = settings
        self._new_id = new_id
        self._transactions: dict[str, Transaction] = {}
        self._open: set[str] = set()
        """Ids that are ONGOING, which alone can be overdue."""

    @property
    def transactional_ids(self) -> Collection[str]:
        """All that are known."""
        return self._transactions.keys()

    def find(self, transactional_id: str) -> Transaction | None:
        """One transactional id."""
        return self._transactions.get(transactional_id)

    # Replay

    def replay(self, record: TransactionRecord) -> None:
        """Apply one record of the log, freshly appended or read back."""
        transactional_id, transaction = record
        if transaction is None:
            self._transactions.pop(transactional_id, None)
        else:
            self._transactions[transactional_id] = transaction
        if transaction is not None and transaction.state is TransactionState.ONGOING:
            self._open.add(transactional_id)
        else:
            self._open.discard(transactional_id)

    def on_loaded(self) -> TransactionEffects:
        """Complete the decided transactions, once the log is replayed."""
        effects = TransactionEffects()
        effects.to_mark += (each for each in self._transactions.values() if each.state.is_decided)
        return effects

    # Requests of producers

    def handle_initialise(
        self, request: Initialisation, reply: Reply[Identity], now_ms: int
    ) -> TransactionEffects:
        """InitProducerId, after `initialisation.check`.

        An open transaction is aborted first, and the producer has to retry.
        """
        effects = TransactionEffects()
        try:
            known = self._transactions.get(request.transactional_id)
            following = initialisation.decide(known, request, self._new_id, now_ms)
            if following.state is TransactionState.ONGOING:
                self._fence(following, effects, now_ms)
                told = Identity(ErrorCode.CONCURRENT_TRANSACTIONS)
            else:
                effects.record(following)
                told = Identity(ErrorCode.NONE, following.producer_id, following.producer_epoch)
        except ApiError as error:
            effects.answer(reply, Identity(error.code))
            return effects
        effects.answer_when_committed(reply, told, _unidentified)
        return effects

    def handle_add_partitions(
        self,
        producer: tuple[str, int, int],
        partitions: frozenset[TopicPartition],
        client_version: int,
        reply: Reply[ErrorCode],
        now_ms: int,
    ) -> TransactionEffects:
        """The producer (transactional id, producer id, epoch) is about to write to `partitions`."""
        effects = TransactionEffects()
        try:
            known = self._check_producer(producer, is_adding=True)
        except ApiError as error:
            effects.answer(reply, error.code)
            return effects
        if known.state is not TransactionState.ONGOING or not partitions <= known.partitions:
            effects.record(known.add(partitions, client_version, now_ms))
        effects.answer_when_committed(reply, ErrorCode.NONE, storage_error)
        return effects

    def handle_verify(
        self,
        producer: tuple[str, int, int],
        partitions: Collection[TopicPartition],
        reply: Reply[dict[TopicPartition, ErrorCode]],
    ) -> TransactionEffects:
        """Verify which of `partitions` belong to the producer's transaction (KIP-890)."""
        effects = TransactionEffects()
        try:
            known = self._check_producer(producer, is_adding=False)
        except ApiError as error:
            effects.answer(reply, dict.fromkeys(partitions, error.code))
            return effects
        found = {
            each: ErrorCode.NONE if each in known.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for each in partitions
        }
        effects.answer_when_committed(
            reply, found, lambda code: dict.fromkeys(partitions, storage_error(code))
        )
        return effects

    def handle_end(self, request: End, reply: Reply[Identity], now_ms: int) -> TransactionEffects:
        """EndTxn. Answered once the decision is committed; the markers follow."""
        effects = TransactionEffects()
        known = self._transactions.get(request.transactional_id)
        try:
            decided = endings.decide(known, request, self._new_id, now_ms)
        except ApiError as error:
            effects.answer(reply, Identity(error.code))
            return effects
        if decided is None:
            assert known is not None
            told = Identity(ErrorCode.NONE, known.producer_id, known.producer_epoch)
        else:
            effects.record(decided)
            effects.to_mark.append(decided)
            told = Identity(ErrorCode.NONE, *decided.following_identity)
        effects.answer_when_committed(reply, told, _unidentified)
        return effects

    # What the coordinator does by itself

    def handle_markers_written(self, transaction: Transaction, now_ms: int) -> TransactionEffects:
        """Complete a transaction from `to_mark`: all its partitions have their markers."""
        effects = TransactionEffects()
        known = self._transactions.get(transaction.transactional_id)
        if known == transaction:
            effects.record(transaction.complete(now_ms))
        return effects

    def overdue(self, now_ms: int) -> list[str]:
        """Return the ids whose transaction has exceeded its timeout."""
        return [each for each in self._open if self._transactions[each].is_overdue(now_ms)]

    def expire(self, transactional_id: str, now_ms: int) -> TransactionEffects:
        """Abort an overdue transaction; its producer is fenced. One that is not is left alone."""
        effects = TransactionEffects()
        known = self._transactions.get(transactional_id)
        if known is not None and known.is_overdue(now_ms):
            try:
                self._fence(known, effects, now_ms)
            except ApiError:
                return effects
        return effects

    def forgettable(self, now_ms: int) -> Iterator[list[TransactionRecord]]:
        """Tombstones of the expired ids; some hundred ids at each step.

        To be appended before the next step.
        """
        latest_ms = now_ms - self._settings.id_expiration_ms
        known = list(self._transactions)
        for start in range(0, len(known), IDS_AT_ONCE):
            yield [
                TransactionRecord(transactional_id, None)
                for transactional_id in known[start : start + IDS_AT_ONCE]
                if (transaction := self._transactions.get(transactional_id)) is not None
                and transaction.state in EXPIRABLE
                and transaction.updated_ms <= latest_ms
            ]

    # Transactions as tools see them

    def handle_list(
        self, filters: Filters, now_ms: int
    ) -> Iterator[ListTransactionsResponse.TransactionState | None]:
        """The transactions that the filters admit, of those known when this is called.

        None for each other one: checking it took time as well.
        """
        return listing.listed(list(self._transactions.values()), filters, now_ms)

    def handle_describe(self, transactional_id: str) -> Description:
        """One transaction, or TRANSACTIONAL_ID_NOT_FOUND."""
        known = self._transactions.get(transactional_id)
        if known is None:
            return listing.not_described(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return listing.described(known)

    def _check_producer(self, producer: tuple[str, int, int], *, is_adding: bool) -> Transaction:
        """The transaction of a producer that may write. Raises ApiError."""
        transactional_id, producer_id, epoch = producer
        if not transactional_id:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        known = self._transactions.get(transactional_id)
        if known is None:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if is_adding and known.state.is_decided:
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if known.producer_id != producer_id:
            raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if known.producer_epoch != epoch:
            raise ApiError(ErrorCode.PRODUCER_FENCED)
        if known.state.is_decided:
            raise ApiError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return known

    def _fence(self, known: Transaction, effects: TransactionEffects, now_ms: int) -> None:
        fenced = endings.fence(known, self._settings.version, self._new_id, now_ms)
        effects.record(fenced)
        effects.to_mark.append(fenced)


def _unidentified(code: ErrorCode) -> Identity:
    return Identity(storage_error(code))
