"""The state of one transactional id, and the steps of a transaction.

A `Transaction` never changes: each step returns the next one, which becomes a record. Steps check
nothing but the state machine; whether a request may take one is decided in `initialisation`,
`endings` and `shard`.

Epochs (KIP-360, KIP-890): a producer is identified by id and epoch, and only the one with the
newest epoch may write. Every initialisation raises the epoch, and from transaction version 2 on
every end of a transaction does too, so that late requests can be distinguished from those of the
next transaction. The last epoch a producer may have is 32766; one more is kept in reserve to fence
that one with. After it the producer gets a new id, with epoch 0:

    (7, 32766) --end of transaction--> markers with (7, 32767), the producer goes on as (8, 0)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from coordinator.transactions.states import TRANSITIONS, TransactionEvent, TransactionState

TopicPartition = tuple[str, int]

NONE: Final = -1
"""No producer id, epoch, or time."""
LAST_EPOCH: Final = 32767
EXHAUSTED_EPOCH: Final = LAST_EPOCH - 1
UNLIMITED_TIMEOUT: Final = 2**31 - 1
"""Of a transaction that an outside coordinator ends (KIP-939): it never times out."""
EPOCH_PER_TRANSACTION: Final = 2
"""First transaction version that raises the epoch with each transaction (KIP-890)."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transactional id: its producer, and its latest transaction."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    producer_epoch: int = NONE
    last_epoch: int = NONE
    """The epoch before, to recognise repeated requests; lost when the shard is reloaded."""
    previous_producer_id: int = NONE
    """Producer id before the last step."""
    next_producer_id: int = NONE
    """Next producer id, set while a transaction ends whose producer has used up its epochs."""
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NONE
    updated_ms: int = NONE
    client_version: int = 0
    """The transaction version that its producer follows."""

    @property
    def is_epoch_exhausted(self) -> bool:
        """True if its producer must not get a higher epoch."""
        return self.producer_epoch >= EXHAUSTED_EPOCH

    @property
    def following_identity(self) -> tuple[int, int]:
        """Producer id and epoch once the transaction, which is decided, is complete."""
        if self.client_version >= EPOCH_PER_TRANSACTION and self.next_producer_id != NONE:
            return self.next_producer_id, 0
        return self.producer_id, self.producer_epoch

    def is_overdue(self, now_ms: int) -> bool:
        """Return whether it has been open for longer than its timeout."""
        return (
            self.state is TransactionState.ONGOING
            and self.timeout_ms != UNLIMITED_TIMEOUT
            and self.started_ms + self.timeout_ms < now_ms
        )

    # Steps

    def raise_epoch(self, timeout_ms: int, last_epoch: int, now_ms: int) -> Transaction:
        """Give an initialising producer the next epoch."""
        return self._initialised(
            self.producer_id, self.producer_epoch + 1, last_epoch, timeout_ms, now_ms
        )

    def repeat_epoch(self, timeout_ms: int, now_ms: int) -> Transaction:
        """Repeat the answer with the new epoch, for a producer that did not receive it."""
        return self._initialised(
            self.producer_id, self.producer_epoch, self.last_epoch, timeout_ms, now_ms
        )

    def rotate(
        self, producer_id: int, timeout_ms: int, last_epoch: int, now_ms: int
    ) -> Transaction:
        """Give a new id to an initialising producer that has used up its epochs."""
        return self._initialised(producer_id, 0, last_epoch, timeout_ms, now_ms)

    def add(
        self, partitions: frozenset[TopicPartition], client_version: int, now_ms: int
    ) -> Transaction:
        """Add partitions that the producer will write to; the first ones begin the transaction."""
        is_open = self.state is TransactionState.ONGOING
        return replace(
            self,
            previous_producer_id=self.producer_id,
            state=self._after(TransactionEvent.PARTITIONS_ADDED),
            partitions=self.partitions | partitions,
            started_ms=self.started_ms if is_open else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def fence(self) -> Transaction:
        """Take the open transaction away from its producer; `decide` must follow."""
        return replace(self, state=self._after(TransactionEvent.FENCED))

    def decide(
        self, event: TransactionEvent, client_version: int, next_producer_id: int, now_ms: int
    ) -> Transaction:
        """COMMITTED or ABORTED: how it ends. Its markers carry the epoch that is in the result."""
        raises_epoch = client_version >= EPOCH_PER_TRANSACTION
        is_fenced = self.state is TransactionState.PREPARE_EPOCH_FENCE
        is_open = is_fenced or self.state is TransactionState.ONGOING
        epoch, last_epoch = self.producer_epoch, self.last_epoch
        if raises_epoch:
            epoch, last_epoch = min(epoch + 1, LAST_EPOCH), epoch
        elif is_fenced:
            epoch, last_epoch = min(epoch + 1, LAST_EPOCH), NONE
        return replace(
            self,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            producer_epoch=epoch,
            last_epoch=last_epoch,
            state=self._after(event),
            started_ms=self.started_ms if is_open else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def complete(self, now_ms: int) -> Transaction:
        """Complete the transaction: all markers are written."""
        producer_id, epoch = self.following_identity
        return replace(
            self,
            previous_producer_id=self.producer_id,
            next_producer_id=NONE,
            producer_id=producer_id,
            producer_epoch=epoch,
            state=self._after(TransactionEvent.MARKED),
            partitions=frozenset(),
            updated_ms=now_ms,
        )

    def _initialised(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> Transaction:
        return replace(
            self,
            previous_producer_id=self.producer_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_epoch=last_epoch,
            timeout_ms=timeout_ms,
            state=self._after(TransactionEvent.INITIALISED),
            partitions=frozenset(),
            started_ms=NONE,
            updated_ms=now_ms,
        )

    def _after(self, event: TransactionEvent) -> TransactionState:
        return TRANSITIONS[self.state, event]
