"""Proofs that a transaction's coordinator knows that a partition is part of it (KIP-890).

The first batch of a transaction must come with one. Without it, a batch that was delayed until
after its transaction's marker would open a transaction that nobody ever ends, and the last stable
offset would stand still for good.

Whoever is about to append takes a guard, asks the coordinator, and presents the guard along with
the batch. A marker that is appended in between ends the guard's life, so that an answer to a
question of before the marker opens nothing after it (the ABA problem):

    obtain guard 1 -> ask -> "yes" -> marker: guard 1 is void -> append with guard 1: refused

Sources: KIP-890; `VerificationStateEntry` and `UnifiedLog.updateProducers` in Apache Kafka.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.records.batch import BatchHeader


class Guard:
    """One question to a coordinator; it is its identity that counts."""

    __slots__ = ("bumps_epoch", "created_ms", "epoch", "lowest_sequence")

    def __init__(self, epoch: int, sequence: int, *, bumps_epoch: bool, now_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        """Of the batches that wait for the answer; none above it may be the first."""
        self.bumps_epoch = bumps_epoch
        """The producer's epoch rises with each transaction (transaction version 2)."""
        self.created_ms = now_ms

    def lower_to(self, epoch: int, sequence: int) -> None:
        """Another batch waits for the same answer."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


class Voucher(NamedTuple):
    """What is known of an append beside its bytes."""

    guard: Guard | None = None
    transaction_version: int = 0
    """Of a marker: from 2 on its epoch is one above that of the transaction's records."""


NO_VOUCHER: Final = Voucher()


class VerificationGuards:
    """The guards of one partition, by producer id, and what comes with the present append."""

    __slots__ = ("_guards", "is_required", "voucher")

    def __init__(self) -> None:
        self._guards: dict[int, Guard] = {}
        self.is_required = False
        """Whether a transaction may only begin with a guard."""
        self.voucher = NO_VOUCHER

    @contextmanager
    def presenting(self, voucher: Voucher) -> Iterator[None]:
        """Let what is appended meanwhile count as vouched for."""
        self.voucher = voucher
        try:
            yield
        finally:
            self.voucher = NO_VOUCHER

    def obtain(
        self, producer_id: int, epoch: int, sequence: int, *, bumps_epoch: bool, now_ms: int
    ) -> Guard:
        """The guard under which a batch with `sequence` waits for the coordinator's answer."""
        guard = self._guards.get(producer_id)
        if guard is None:
            guard = Guard(epoch, sequence, bumps_epoch=bumps_epoch, now_ms=now_ms)
            self._guards[producer_id] = guard
        else:
            guard.lower_to(epoch, sequence)
        return guard

    def check_presented(self, producer_id: int) -> None:
        """Refuse the first batch of a transaction that nobody vouches for: INVALID_TXN_STATE."""
        if not self.is_required:
            return
        guard = self._guards.get(producer_id)
        if guard is None or guard is not self.voucher.guard:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction"
            )

    def check_sequence(self, header: BatchHeader, *, is_known: bool) -> None:
        """Refuse to begin with a batch that others come before: OUT_OF_ORDER_SEQUENCE_NUMBER."""
        guard = self._guards.get(header.producer_id)
        if guard is None:
            return
        expected = 0 if guard.bumps_epoch and not is_known else guard.lowest_sequence
        if header.base_sequence > expected:
            raise ApiError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} begins with sequence {header.base_sequence}, "
                f"but {expected} comes first",
            )

    def settle(self, producer_id: int) -> None:
        """The transaction has begun: from now on what is in the log speaks for itself."""
        if self._guards:
            self._guards.pop(producer_id, None)

    def settle_marker(self, producer_id: int, epoch: int) -> None:
        """A transaction has ended; a guard for it is void, one for the next is not."""
        guard = self._guards.get(producer_id)
        if guard is not None and not (guard.bumps_epoch and guard.epoch == epoch):
            del self._guards[producer_id]

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget questions that were never answered."""
        expired = [
            producer_id
            for producer_id, guard in self._guards.items()
            if now_ms - guard.created_ms >= expiration_ms
        ]
        for producer_id in expired:
            del self._guards[producer_id]
