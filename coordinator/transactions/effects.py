"""The effects of a decision about transactions, which the broker carries out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coordinator.effects import ShardEffects
from coordinator.transactions.records import TransactionRecord

if TYPE_CHECKING:
    from coordinator.transactions.transaction import Transaction


@dataclass(slots=True)
class TransactionEffects(ShardEffects[TransactionRecord]):
    """The outcome of one request or one timer of transactions."""

    to_mark: list[Transaction] = field(default_factory=list)
    """Once the log is committed up to here: markers to be written, until every partition has its
    own. Not if the append fails.
    """

    def record(self, transaction: Transaction) -> None:
        """Append a transaction's next step."""
        self.records.append(TransactionRecord(transaction.transactional_id, transaction))
