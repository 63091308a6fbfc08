"""One producer of a partition: its epoch, its last batches, its open transaction."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.records.batch import SEQUENCE_SPACE
from storage.producer.producer_snapshot import SnapshotEntry

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.records.batch import BatchHeader

REMEMBERED_BATCHES: Final = 5
"""Fixed as in Apache Kafka: an idempotent producer has at most five requests in flight."""
NO_EPOCH: Final = -1
NONE: Final = -1
LAST_SEQUENCE: Final = SEQUENCE_SPACE - 1


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


produced_batch: Callable[[tuple[int, ...]], ProducedBatch] = partial(tuple.__new__, ProducedBatch)
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
        "is_from_snapshot",
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
        """Expected base sequence of the next batch of this epoch."""
        self.batches: list[ProducedBatch] = []
        """Oldest first, five at most; `remember` adds to it."""
        self.is_from_snapshot = False
        """True if the log may have more of its batches than are remembered (`producer_history`)."""

    @property
    def last_sequence(self) -> int:
        """Sequence number of its last record in this epoch; -1 when there is none."""
        return self.batches[-1].last_sequence if self.batches else NONE

    @property
    def last_offset(self) -> int:
        """Offset of its last record in this epoch; -1 when there is none. Safe on any thread."""
        batches = self.batches  # once, as a new epoch puts an empty list in its place
        return batches[-1].last_offset if batches else NONE

    def begin_epoch(self, epoch: int) -> None:
        """Sequence numbers start over with each epoch."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches = []
            self.next_sequence = 0
            self.is_from_snapshot = False

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
        """Entry for a snapshot: of the batches, the last one only."""
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
