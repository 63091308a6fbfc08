"""State of the idempotent and transactional producers that wrote to a partition.

Per producer id: its epoch, and the last five batches. A batch that repeats one of those five is
answered with the offset it got the first time; any other must continue from the last one. An
unknown producer (expired, or its records are deleted) may start at any sequence number (KIP-360).
Sequence numbers wrap from 2^31 - 1 to 0.

With transactions (KIP-98): the first offset of each open transaction, and of each that is complete
but whose marker is not below the high watermark yet, because read_committed consumers must not
read past either.

Sources: KIP-98, KIP-360; `ProducerStateManager` and `ProducerAppendInfo` in Apache Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import SEQUENCE_SPACE, TRANSACTIONAL_BIT
from storage.append.append_source import AppendOrigin
from storage.producer.nothing_yet import NOTHING_YET
from storage.producer.producer import NO_EPOCH, NONE, ProducedBatch, Producer, produced_batch
from storage.producer.verification_guards import VerificationGuards
from storage.segment.aborted_index import AbortedTransaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from protocol.records.batch import BatchHeader
    from storage.append.append_source import AppendSource
    from storage.producer.producer import Marker
    from storage.producer.producer_snapshot import SnapshotEntry

BUMPS_EPOCH_SINCE: Final = 2
"""The transaction version from which on a producer's epoch rises with each transaction."""
EXPIRED_AT_ONCE: Final = 500
"""Producers that are looked at without giving way to others."""

NO_MARKERS: Final[list[tuple[int, int]]] = []
"""Of all partitions without transactions; nothing may be added."""


class ProducerState:
    """All producers of one partition."""

    __slots__ = ("_open", "guards", "producers", "unreplicated")

    def __init__(self) -> None:
        self.producers: dict[int, Producer] = NOTHING_YET
        self.guards = VerificationGuards()
        self._open: dict[int, int] = NOTHING_YET
        """First offset of the open transaction, by producer id."""
        self.unreplicated: list[tuple[int, int]] = NO_MARKERS
        """First offset and marker offset of complete transactions above the high watermark."""

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset that read_committed consumers must not read; None when there is none."""
        if not self._open and not self.unreplicated:
            return None
        starts = [*self._open.values(), *(first for first, _ in self.unreplicated)]
        return min(starts)

    @property
    def newest_offset(self) -> int:
        """The last that a producer wrote, or a transaction began at; -1 when there is none."""
        written = max((one.last_offset for one in self.producers.values()), default=NONE)
        return max(written, *self._open.values()) if self._open else written

    @property
    def has_open_transactions(self) -> bool:
        """Some transaction has neither been committed nor aborted."""
        return bool(self._open)

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """Return whether a producer of `epoch` has a transaction open here."""
        producer = self.producers.get(producer_id)
        return (
            producer is not None
            and producer.transaction_first_offset != NONE
            and producer.epoch == epoch
        )

    def check(self, header: BatchHeader, source: AppendSource) -> ProducedBatch | None:
        """Refuse a batch that must not be appended, or return the one that it repeats.

        A coordinator's batches have no sequence numbers that would be checked. Raises ApiError
        INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE.
        """
        _, _, _, _, _, attributes, _, _, _, producer_id, epoch, sequence, _ = header
        producer = self.producers.get(producer_id)
        if attributes & TRANSACTIONAL_BIT:
            return self._check_transactional(producer, header, source)
        if producer is None or (
            # The next batch of the same epoch, as nearly all are, breaks no rule and repeats none.
            sequence == producer.next_sequence
            and epoch == producer.epoch
            and producer.transaction_first_offset == NONE
        ):
            return None
        is_sequenced = source.origin is not AppendOrigin.COORDINATOR
        if is_sequenced:
            duplicate = producer.find(header)
            if duplicate is not None:
                return duplicate
        _check_epoch(producer, header.producer_epoch)
        if is_sequenced:
            _check_sequence(producer, header)
        if producer.transaction_first_offset != NONE:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has an open transaction on this partition "
                "and must not write outside it",
            )
        return None

    def _check_transactional(
        self, producer: Producer | None, header: BatchHeader, source: AppendSource
    ) -> ProducedBatch | None:
        is_sequenced = source.origin is not AppendOrigin.COORDINATOR
        is_open = (
            producer is not None
            and producer.transaction_first_offset != NONE
            and header.producer_epoch == producer.epoch
        )
        if is_sequenced and producer is not None:
            if is_open and header.base_sequence == producer.next_sequence:
                return None
            duplicate = producer.find(header)
            if duplicate is not None:
                return duplicate
        if not is_open:
            self.guards.check(header.producer_id, source.guard)
        if producer is not None:
            _check_epoch(producer, header.producer_epoch)
        if is_sequenced:
            is_known = producer is not None and bool(producer.batches)
            self.guards.check_sequence(header, is_known=is_known)
            if producer is not None:
                _check_sequence(producer, header)
        return None

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """Note a data batch that was appended at `base_offset`."""
        _, _, _, _, _, attributes, delta, _, timestamp, producer_id, epoch, first, _ = header
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self._add(producer_id)
        if epoch != producer.epoch:
            producer.begin_epoch(epoch)
        last = (first + delta) % SEQUENCE_SPACE if first != NONE else NONE
        producer.remember(produced_batch((first, last, base_offset + delta, delta, timestamp)))
        producer.last_timestamp = timestamp
        if attributes & TRANSACTIONAL_BIT:
            self.guards.settle(producer_id)
            if producer.transaction_first_offset == NONE:
                producer.transaction_first_offset = base_offset
                self._begin(producer_id, base_offset)

    def check_marker(self, marker: Marker, transaction_version: int = 0) -> None:
        """Refuse a marker of an old producer or coordinator epoch.

        From `transaction_version` 2 on a marker's epoch is above that of the records before it. One
        that has the epoch of now, while no transaction is open, is the last marker once more.
        """
        producer = self.producers.get(marker.producer_id)
        if producer is None:
            return
        is_open = producer.transaction_first_offset != NONE
        bumps_epoch = transaction_version >= BUMPS_EPOCH_SINCE
        _check_epoch(producer, marker.producer_epoch, is_above=bumps_epoch and is_open)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch} is older than "
                f"{producer.coordinator_epoch}, the last seen for producer {marker.producer_id}",
            )

    def end_transaction(self, marker: Marker) -> AbortedTransaction | None:
        """Note an appended marker; return its entry for the aborted index, if any."""
        producer_id = marker.producer_id
        self.guards.settle_marker(producer_id, marker.producer_epoch)
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self._add(producer_id)
        producer.begin_epoch(marker.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = marker.timestamp
        first_offset = producer.transaction_first_offset
        if first_offset == NONE:
            return None
        producer.transaction_first_offset = NONE
        self._open.pop(producer_id, None)
        if self.unreplicated is NO_MARKERS:
            self.unreplicated = []
        self.unreplicated.append((first_offset, marker.offset))
        if marker.is_commit:
            return None
        stable = min(self._open.values(), default=marker.offset + 1)
        return AbortedTransaction(producer_id, first_offset, marker.offset, stable)

    def note_high_watermark(self, high_watermark: int) -> None:
        """Forget completed transactions whose marker is replicated."""
        if self.unreplicated:
            self.unreplicated = [
                (first, last) for first, last in self.unreplicated if last >= high_watermark
            ]

    def expire(self, now_ms: int, expiration_ms: int) -> Iterator[int]:
        """Forget producers that wrote nothing for `expiration_ms`; yields how many by each step.

        A step looks at some hundred of them. Others may come and go between two steps.
        """
        known = list(self.producers)
        for start in range(0, max(1, len(known)), EXPIRED_AT_ONCE):
            expired = [
                producer_id
                for producer_id in known[start : start + EXPIRED_AT_ONCE]
                if (producer := self.producers.get(producer_id)) is not None
                and producer.transaction_first_offset == NONE
                and now_ms - producer.last_timestamp >= expiration_ms
            ]
            for producer_id in expired:
                del self.producers[producer_id]
            yield len(expired)
        self.guards.expire(now_ms, expiration_ms)

    def clear(self) -> None:
        """Forget everything."""
        self.producers = self._open = NOTHING_YET
        self.unreplicated = NO_MARKERS

    def become(self, other: ProducerState) -> None:
        """Take over the state of `other`, which must not be used any more; the guards stay."""
        self.producers = other.producers
        self._open = other._open
        self.unreplicated = other.unreplicated

    def snapshot(self) -> list[SnapshotEntry]:
        """Entries for a snapshot file."""
        return [producer.snapshot() for producer in self.producers.values()]

    def restore(self, entries: Iterable[SnapshotEntry]) -> None:
        """Start from the content of a snapshot file."""
        self.clear()
        for entry in entries:
            producer = self._add(entry.producer_id)
            producer.epoch = entry.epoch
            producer.coordinator_epoch = entry.coordinator_epoch
            producer.last_timestamp = entry.timestamp
            producer.transaction_first_offset = entry.transaction_first_offset
            if entry.last_offset >= 0:
                base_sequence = (entry.last_sequence - entry.offset_delta) % SEQUENCE_SPACE
                producer.remember(ProducedBatch(base_sequence, *entry[2:6]))
                producer.is_from_snapshot = True
            if entry.transaction_first_offset != NONE:
                self._begin(entry.producer_id, entry.transaction_first_offset)

    def _add(self, producer_id: int) -> Producer:
        if self.producers is NOTHING_YET:
            self.producers = {}
        producer = self.producers[producer_id] = Producer(producer_id)
        return producer

    def _begin(self, producer_id: int, first_offset: int) -> None:
        if self._open is NOTHING_YET:
            self._open = {}
        self._open[producer_id] = first_offset


def _check_epoch(producer: Producer, epoch: int, *, is_above: bool = False) -> None:
    if epoch < producer.epoch or (is_above and epoch == producer.epoch):
        raise ApiError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {producer.producer_id} uses epoch {epoch}, "
            f"but epoch {producer.epoch} has written here",
        )


def _check_sequence(producer: Producer, header: BatchHeader) -> None:
    expected = 0
    if header.producer_epoch == producer.epoch:
        expected = producer.next_sequence
    elif producer.epoch == NO_EPOCH:
        return
    if header.base_sequence != expected:
        raise ApiError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer.producer_id} epoch {header.producer_epoch} sent sequence "
            f"{header.base_sequence} where {expected} comes next",
        )
