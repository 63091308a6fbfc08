"""One partition of `__transaction_state` led by this broker: transactions with a log."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker.coordinators.shard_runtime import ShardRuntime, ShardServices, Stage
from coordinator.transactions.effects import TransactionEffects
from coordinator.transactions.records import TransactionFormat, TransactionRecord
from coordinator.transactions.shard import TransactionShard
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.coordinators.marker_sender import MarkerSender
    from broker.partitions.partition import Partition
    from coordinator.effects import ShardEffects
    from coordinator.transactions.ports import ProducerIdBlocks
    from coordinator.transactions.settings import TransactionSettings
    from coordinator.transactions.transaction import Transaction
    from storage.producer.verification_guards import VerificationGuard

COMMITTED = (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
COMMIT_RETRY_MS = 1_000
"""Pause before the commit of decided transactions is waited for again."""


class TransactionShardRuntime(ShardRuntime[TransactionRecord]):
    """Runs a `TransactionShard`; the sender of markers completes its decided transactions."""

    def __init__(
        self,
        partition: Partition,
        surroundings: ShardServices,
        settings: TransactionSettings,
        new_id: ProducerIdBlocks,
        sender: MarkerSender,
    ) -> None:
        self.transactions = TransactionShard(settings, new_id)
        self._sender = sender
        record_format = TransactionFormat(settings.finalised)
        super().__init__(partition, surroundings, record_format, self.transactions.replay)

    def loaded(self, now_ms: int) -> TransactionEffects:  # noqa: ARG002  (no timers here)
        """Complete the transactions that an earlier leader decided."""
        return self.transactions.on_loaded()

    def unloaded(self) -> TransactionEffects:
        """No request is parked here; the sender forgets markers in flight."""
        return TransactionEffects()

    @property
    def content(self) -> str:
        """The number of transactional ids, in words."""
        return f"{len(self.transactions.transactional_ids)} transactional ids"

    def run(
        self, effects: ShardEffects[TransactionRecord], guard: VerificationGuard | None = None
    ) -> bool:
        """Append, replay, answer, and send markers once all of it is committed."""
        is_stored = super().run(effects, guard)
        if is_stored and isinstance(effects, TransactionEffects) and effects.to_mark:
            self._mark_when_committed(effects.to_mark)
        return is_stored

    def _mark_when_committed(self, decided: Sequence[Transaction]) -> None:
        if self.stage is Stage.ACTIVE:
            mark = partial(self._mark, decided)
            self.partition.when_committed(self._appended_to, mark)

    def _mark(self, decided: Sequence[Transaction], code: ErrorCode) -> None:
        """Send the markers, or wait again after a transient flush failure.

        If leadership is lost, which shows here before the shard is unloaded, the next leader sends
        them.
        """
        if code not in COMMITTED:
            self._timers.schedule(COMMIT_RETRY_MS, partial(self._mark_when_committed, decided))
        elif self.stage is Stage.ACTIVE:
            for transaction in decided:
                self._sender.send(self, transaction)
