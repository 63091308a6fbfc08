"""What a partition knows of the idempotent and transactional producers that wrote to it.

Per producer id: its epoch, and the last five batches. A batch that repeats one of those five is
answered with the offset it got the first time; any other must carry on where the last one ended.
A producer that is not known (expired, or its records are deleted) may start at any sequence number
(KIP-360). Sequence numbers go from 2^31 - 1 to 0.

With transactions (KIP-98): the first offset of each open transaction, and of each that is complete
but whose marker is not below the high watermark yet, because read_committed consumers must not
read past either.

Sources: KIP-98, KIP-360; `ProducerStateManager` and `ProducerAppendInfo` in Apache Kafka.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import CONTROL_BIT, SEQUENCE_SPACE, TRANSACTIONAL_BIT
from storage.aborted_index import AbortedTransaction
from storage.producer_snapshot import SnapshotEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from protocol.records.batch import BatchHeader

REMEMBERED_BATCHES: Final = 5
NO_EPOCH: Final = -1
NONE: Final = -1
LAST_SEQUENCE: Final = SEQUENCE_SPACE - 1


class AppendOrigin(Enum):
    """Who appends, which decides what is checked."""

    CLIENT = "client"
    """A producer: everything is checked."""
    CHECKED = "checked"
    """A producer as well; the batch as such has been checked before, and then recompressed."""
    REPLICATION = "replication"
    """The leader of the partition, which has checked it: nothing is refused."""
    COORDINATOR = "coordinator"
    """This broker: group and transaction records, and transaction markers."""


class ProducedBatch(NamedTuple):
    """One of the last batches of a producer."""

    base_sequence: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        """Offset of its first record."""
        return self.last_offset - self.offset_delta


_produced_batch: Callable[[tuple[int, ...]], ProducedBatch] = partial(tuple.__new__, ProducedBatch)
"""As the constructor, without a Python function in between: one is made for each append."""


class Marker(NamedTuple):
    """The end of a transaction, as its control batch says it."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_commit: bool
    offset: int
    timestamp: int


class Producer:
    """State of one producer id."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "next_sequence",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = NO_EPOCH
        self.coordinator_epoch = NONE
        self.last_timestamp = NONE
        self.transaction_first_offset = NONE
        self.next_sequence = 0
        """What the next batch of this epoch must begin with."""
        self.batches: list[ProducedBatch] = []
        """Oldest first, five at most; `remember` adds to it."""

    @property
    def last_sequence(self) -> int:
        """Sequence number of its last record in this epoch; -1 when there is none."""
        return self.batches[-1].last_sequence if self.batches else NONE

    def begin_epoch(self, epoch: int) -> None:
        """Sequence numbers start over with each epoch."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches = []
            self.next_sequence = 0

    def remember(self, batch: ProducedBatch) -> None:
        """Note its newest batch."""
        batches = self.batches
        batches.append(batch)
        if len(batches) > REMEMBERED_BATCHES:
            del batches[0]
        last_sequence = batch[1]
        self.next_sequence = 0 if last_sequence == LAST_SEQUENCE else last_sequence + 1

    def find(self, header: BatchHeader) -> ProducedBatch | None:
        """Return the remembered batch that `header` repeats."""
        if header.producer_epoch == self.epoch:
            first, last = header.base_sequence, header.last_sequence
            for batch in self.batches:
                if batch.base_sequence == first and batch.last_sequence == last:
                    return batch
        return None

    def snapshot(self) -> SnapshotEntry:
        """Return what is kept in a snapshot: of the batches, the last one only."""
        last = self.batches[-1] if self.batches else ProducedBatch(NONE, NONE, NONE, 0, NONE)
        return SnapshotEntry(
            self.producer_id,
            self.epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            self.last_timestamp,
            self.coordinator_epoch,
            self.transaction_first_offset,
        )


class ProducerState:
    """All producers of one partition."""

    __slots__ = ("_open", "_unreplicated", "producers")

    def __init__(self) -> None:
        self.producers: dict[int, Producer] = {}
        self._open: dict[int, int] = {}
        """First offset of the open transaction, by producer id."""
        self._unreplicated: list[tuple[int, int]] = []
        """First offset and marker offset of what is complete above the high watermark."""

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset that read_committed consumers must not read; None when there is none."""
        if not self._open and not self._unreplicated:
            return None
        starts = [*self._open.values(), *(first for first, _ in self._unreplicated)]
        return min(starts)

    @property
    def has_open_transactions(self) -> bool:
        """Some transaction has neither been committed nor aborted."""
        return bool(self._open)

    def check(self, header: BatchHeader, origin: AppendOrigin) -> ProducedBatch | None:
        """Refuse a batch that must not be appended, or return the one that it repeats.

        Raises ApiError INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or INVALID_TXN_STATE.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None or (
            # The next batch of the same epoch, as nearly all are, breaks no rule and repeats none.
            header.base_sequence == producer.next_sequence
            and header.producer_epoch == producer.epoch
            and producer.transaction_first_offset == NONE
        ):
            return None
        if origin is AppendOrigin.CLIENT:
            duplicate = producer.find(header)
            if duplicate is not None:
                return duplicate
        _check_epoch(producer, header.producer_epoch)
        if header.attributes & CONTROL_BIT:
            return None
        if origin is AppendOrigin.CLIENT:
            _check_sequence(producer, header)
        is_transactional = header.attributes & TRANSACTIONAL_BIT
        if producer.transaction_first_offset != NONE and not is_transactional:
            raise ApiError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has an open transaction on this partition "
                "and must not write outside it",
            )
        return None

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """Note a data batch that was appended at `base_offset`."""
        _, _, _, _, _, attributes, delta, _, timestamp, producer_id, epoch, first, _ = header
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self.producers[producer_id] = Producer(producer_id)
        if epoch != producer.epoch:
            producer.begin_epoch(epoch)
        last = (first + delta) % SEQUENCE_SPACE if first != NONE else NONE
        producer.remember(_produced_batch((first, last, base_offset + delta, delta, timestamp)))
        producer.last_timestamp = timestamp
        if attributes & TRANSACTIONAL_BIT and producer.transaction_first_offset == NONE:
            producer.transaction_first_offset = base_offset
            self._open[producer_id] = base_offset

    def check_marker(self, marker: Marker) -> None:
        """Refuse a marker of an old producer or coordinator epoch."""
        producer = self.producers.get(marker.producer_id)
        if producer is None:
            return
        _check_epoch(producer, marker.producer_epoch)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise ApiError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {marker.coordinator_epoch} is older than "
                f"{producer.coordinator_epoch}, the last seen for producer {marker.producer_id}",
            )

    def end_transaction(self, marker: Marker) -> AbortedTransaction | None:
        """Note an appended marker; returns what the aborted index must get, if anything."""
        producer_id = marker.producer_id
        producer = self.producers.setdefault(producer_id, Producer(producer_id))
        producer.begin_epoch(marker.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = marker.timestamp
        first_offset = producer.transaction_first_offset
        if first_offset == NONE:
            return None
        producer.transaction_first_offset = NONE
        self._open.pop(producer_id, None)
        self._unreplicated.append((first_offset, marker.offset))
        if marker.is_commit:
            return None
        stable = min(self._open.values(), default=marker.offset + 1)
        return AbortedTransaction(producer_id, first_offset, marker.offset, stable)

    def note_high_watermark(self, high_watermark: int) -> None:
        """Forget completed transactions whose marker is replicated."""
        if self._unreplicated:
            self._unreplicated = [
                (first, last) for first, last in self._unreplicated if last >= high_watermark
            ]

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that wrote nothing for `expiration_ms`; how many is returned."""
        expired = [
            producer.producer_id
            for producer in self.producers.values()
            if producer.transaction_first_offset == NONE
            and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.producers[producer_id]
        return len(expired)

    def clear(self) -> None:
        """Forget everything."""
        self.producers.clear()
        self._open.clear()
        self._unreplicated.clear()

    def snapshot(self) -> list[SnapshotEntry]:
        """Return what a snapshot file keeps."""
        return [producer.snapshot() for producer in self.producers.values()]

    def restore(self, entries: Iterable[SnapshotEntry]) -> None:
        """Start from the content of a snapshot file."""
        self.clear()
        for entry in entries:
            producer = Producer(entry.producer_id)
            producer.epoch = entry.epoch
            producer.coordinator_epoch = entry.coordinator_epoch
            producer.last_timestamp = entry.timestamp
            producer.transaction_first_offset = entry.transaction_first_offset
            if entry.last_offset >= 0:
                base_sequence = (entry.last_sequence - entry.offset_delta) % SEQUENCE_SPACE
                producer.remember(ProducedBatch(base_sequence, *entry[2:6]))
            self.producers[entry.producer_id] = producer
            if entry.transaction_first_offset != NONE:
                self._open[entry.producer_id] = entry.transaction_first_offset


def _check_epoch(producer: Producer, epoch: int) -> None:
    if epoch < producer.epoch:
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
