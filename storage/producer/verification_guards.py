"""Proofs that a transaction's coordinator knows that a partition is part of it (KIP-890).

The first batch of a transaction must come with one. Without it, a batch that was delayed until
after its transaction's marker would open a transaction that never ends, and the last stable offset
would stop for good.

The appender obtains a guard, asks the coordinator, and passes the guard to the append along with
the batch. A marker appended in between voids the guard, so that an answer from before the marker
cannot open a transaction after it (the ABA problem):

    obtain guard 1 -> ask -> "yes" -> marker: guard 1 is void -> append with guard 1: refused

Sources: KIP-890; `VerificationGuard`, `VerificationStateEntry` and `UnifiedLog.updateProducers` in
Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ApiError, ErrorCode
from storage.producer.nothing_yet import NOTHING_YET

if TYPE_CHECKING:
    from protocol.records.batch import BatchHeader


class VerificationGuard:
    """One question to a coordinator; it has nothing but its identity."""

    __slots__ = ()


class VerificationStateEntry:
    """A producer's guard, and which batches wait for the answer to it."""

    __slots__ = ("bumps_epoch", "created_ms", "epoch", "guard", "lowest_sequence")

    def __init__(self, epoch: int, sequence: int, *, bumps_epoch: bool, now_ms: int) -> None:
        self.guard = VerificationGuard()
        self.epoch = epoch
        self.lowest_sequence = sequence
        """Of the batches that wait for the answer; none above it may be the first."""
        self.bumps_epoch = bumps_epoch
        """The producer's epoch rises with each transaction (transaction version 2)."""
        self.created_ms = now_ms

    def lower_to(self, epoch: int, sequence: int) -> None:
        """Note another batch that waits for the same answer."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


class VerificationGuards:
    """The guards of one partition, by producer id."""

    __slots__ = ("_entries", "is_required")

    def __init__(self) -> None:
        self._entries: dict[int, VerificationStateEntry] = NOTHING_YET
        self.is_required = False
        """True if a transaction may only begin with a guard."""

    def obtain(
        self, producer_id: int, epoch: int, sequence: int, *, bumps_epoch: bool, now_ms: int
    ) -> VerificationGuard:
        """The guard under which a batch with `sequence` waits for the coordinator's answer."""
        entry = self._entries.get(producer_id)
        if entry is None:
            if self._entries is NOTHING_YET:
                self._entries = {}
            entry = VerificationStateEntry(epoch, sequence, bumps_epoch=bumps_epoch, now_ms=now_ms)
            self._entries[producer_id] = entry
        else:
            entry.lower_to(epoch, sequence)
        return entry.guard

    def check(self, producer_id: int, guard: VerificationGuard | None) -> None:
        """Let the first batch of a transaction pass if `guard` is the producer's, and still valid.

        Raises ApiError INVALID_TXN_STATE if it is not, unless guards are not required.
        """
        if not self.is_required:
            return
        entry = self._entries.get(producer_id)
        if entry is None or entry.guard is not guard:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction"
            )

    def check_sequence(self, header: BatchHeader, *, is_known: bool) -> None:
        """Refuse to begin with a batch that others come before: OUT_OF_ORDER_SEQUENCE_NUMBER."""
        entry = self._entries.get(header.producer_id)
        if entry is None:
            return
        expected = 0 if entry.bumps_epoch and not is_known else entry.lowest_sequence
        if header.base_sequence > expected:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} begins with sequence {header.base_sequence}, "
                f"but {expected} comes first",
            )

    def settle(self, producer_id: int) -> None:
        """Note that the transaction has begun: from now on the log shows it."""
        if self._entries:
            self._entries.pop(producer_id, None)

    def settle_marker(self, producer_id: int, epoch: int) -> None:
        """A transaction has ended; a guard for it is void, one for the next is not."""
        entry = self._entries.get(producer_id)
        if entry is not None and not (entry.bumps_epoch and entry.epoch == epoch):
            del self._entries[producer_id]

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget questions that were never answered."""
        expired = [
            producer_id
            for producer_id, entry in self._entries.items()
            if now_ms - entry.created_ms >= expiration_ms
        ]
        for producer_id in expired:
            del self._entries[producer_id]
