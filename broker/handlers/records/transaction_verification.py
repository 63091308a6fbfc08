"""Asks transaction coordinators whether partitions belong to the transactions that write to them.

The first batch of a transaction on a partition waits for the answer (KIP-890); later ones do not,
since the log then knows that the transaction is open. A producer of version 2 of the protocol adds
no partitions itself: for it the inquiry adds them.

The error that a producer gets depends on the version of its request:

    the coordinator says          Produce              TxnOffsetCommit
    TRANSACTION_ABORTABLE         the same; INVALID_TXN_STATE to clients that do not know it
    PRODUCER_FENCED               INVALID_PRODUCER_EPOCH
    not now (loading, moved...)   NOT_ENOUGH_REPLICAS  as any error of a coordinator
    CONCURRENT_TRANSACTIONS       the same with version 2, else as "not now"

Sources: KIP-890; `AddPartitionsToTxnManager` and `ReplicaManager` in Apache Kafka.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from broker.runtime.deferred import Deferred
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.partitions.partition import Partition
    from broker.requests.services import BrokerServices
    from storage.producer.verification_guards import VerificationGuard

Key = tuple[str, int]
"""Topic and partition."""


class Support(enum.IntEnum):
    """Abilities of a client's request version."""

    BASIC = 0
    ABORTABLE = 1
    """TRANSACTION_ABORTABLE as an error."""
    ADDS_PARTITIONS = 2
    """Transaction version 2: writing to a partition adds it, and each transaction has its own
    epoch."""


class Transaction(NamedTuple):
    """The producer, and its transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class Verified(NamedTuple):
    """The outcome, for those partitions that had to be verified."""

    guards: dict[Key, VerificationGuard]
    """The guards to append the batches with."""
    errors: dict[Key, ErrorCode]
    """The errors of partitions that the coordinator has not verified."""


class Verification:
    """One inquiry."""

    def __init__(
        self,
        broker: BrokerServices,
        transaction: Transaction,
        batches: Mapping[Key, tuple[Partition, int]],
        support: Support,
    ) -> None:
        """`batches` has the partition and first sequence number of each batch."""
        self._broker = broker
        self._transaction = transaction
        self._batches = batches
        self._support = support

    def ask(self) -> Deferred[Verified]:
        """Ask about the partitions on which the transaction is not open yet.

        The outcome is complete at once if there are none, or the coordinator is here.
        """
        outcome: Deferred[Verified] = Deferred()
        config = self._broker.config
        if not (
            config.transaction_partition_verification_enable
            or self._support is Support.ADDS_PARTITIONS
        ):
            outcome.complete(Verified({}, {}))
            return outcome
        guards = self._guards()
        if not guards:
            outcome.complete(Verified({}, {}))
            return outcome

        def answered(results: dict[Key, ErrorCode]) -> None:
            errors = {key: self._told(code) for key, code in results.items() if code}
            outcome.complete(Verified(guards, errors))

        transactional_id, producer_id, epoch = self._transaction
        self._broker.transactions.verify_or_add_partitions(
            transactional_id,
            producer_id,
            epoch,
            guards.keys(),
            verify_only=self._support is not Support.ADDS_PARTITIONS,
            callback=outcome.guard(answered),
        )
        return outcome

    def _guards(self) -> dict[Key, VerificationGuard]:
        """A guard for each partition on which the transaction is not open yet."""
        _, producer_id, epoch = self._transaction
        guards = {}
        for key, (partition, sequence) in self._batches.items():
            producers = partition.log.producers
            if not producers.has_open_transaction(producer_id, epoch):
                guards[key] = producers.guards.obtain(
                    producer_id,
                    epoch,
                    sequence,
                    bumps_epoch=self._support is Support.ADDS_PARTITIONS,
                    now_ms=self._broker.clock.now_ms(),
                )
        return guards

    def _told(self, code: ErrorCode) -> ErrorCode:
        if code is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if code is ErrorCode.TRANSACTION_ABORTABLE and self._support is Support.BASIC:
            return ErrorCode.INVALID_TXN_STATE
        return code
