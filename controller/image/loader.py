"""Batches of committed records, made into one image after another and published.

Records between BeginTransactionRecord and EndTransactionRecord count together or not at all
(KIP-868), and may fill many batches. Until the transaction ends, nothing of it is published, and
the image stays at the record before it:

    batch      records                      image after it
    1          A  Begin  B                  A
    2          C                            A
    3          D  End    E                  A B C D E
    3'         D  Abort  E                  A E
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from controller.image.delta import MetadataDelta
from controller.image.errors import ReplayError
from controller.image.metadata_image import EMPTY
from controller.image.publishers import Publishers
from protocol.metadata_log.log_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from controller.image.metadata_image import MetadataImage, Provenance
    from controller.image.publishers import Publisher
    from protocol.schema import MetadataRecord

logger = logging.getLogger(__name__)

RECORDS_PER_STEP: Final = 100
"""Records replayed between two pauses: about a millisecond."""


class MetadataLoader:
    """The newest image, and the records of an open transaction on top of it (`MetadataLoader`)."""

    __slots__ = ("_delta", "_in_transaction", "_publishers", "fault_count", "image")

    def __init__(self, image: MetadataImage = EMPTY) -> None:
        self.image = image
        self._publishers = Publishers()
        self._delta = MetadataDelta(image)
        self._in_transaction = False
        self.fault_count = 0
        """Records that could not be replayed; `metadata-load-error-count`."""

    @property
    def publish_fault_count(self) -> int:
        """Errors that publishers raised; `metadata-apply-error-count`."""
        return self._publishers.fault_count

    def install(self, publishers: Sequence[Publisher]) -> None:
        """Append publishers; each is handed the image as it is now, then every change of it."""
        for _ in self.install_in_steps(publishers):
            pass

    def install_in_steps(self, publishers: Sequence[Publisher]) -> Iterator[None]:
        """As `install`, pausing often. To be ended before anything else is loaded."""
        return self._publishers.install_in_steps(publishers, self.image)

    def load_batch(self, records: Sequence[MetadataRecord], provenance: Provenance) -> None:
        """Replay a batch, of which `provenance` describes the last record, and publish.

        A record that cannot be replayed is logged and counted, and the others still count, as in a
        broker of Apache's; a controller looks at `fault_count` and stops.
        """
        for _ in self.load_batch_in_steps(records, provenance):
            pass

    def load_batch_in_steps(
        self, records: Sequence[MetadataRecord], provenance: Provenance
    ) -> Iterator[None]:
        """As `load_batch`, pausing often. To be ended before anything else is loaded."""
        for number, (offset, record) in enumerate(
            enumerate(records, provenance.offset + 1 - len(records)), 1
        ):
            if isinstance(record, BeginTransactionRecord):
                self._begin(replace(provenance, offset=offset - 1))
            elif isinstance(record, EndTransactionRecord):
                self._end(offset)
            elif isinstance(record, AbortTransactionRecord):
                self._abort(offset)
            else:
                self._replay(record, offset)
            if number % RECORDS_PER_STEP == 0:
                yield
        if not self._in_transaction:
            yield from self._delta.prepare_in_steps()
            self._publish(provenance)

    def load_snapshot(self, records: Iterable[MetadataRecord], provenance: Provenance) -> None:
        """Replace the image by that of a snapshot, and publish; an open transaction is dropped."""
        for _ in self.load_snapshot_in_steps(records, provenance):
            pass

    def load_snapshot_in_steps(
        self, records: Iterable[MetadataRecord], provenance: Provenance
    ) -> Iterator[None]:
        """As `load_snapshot`, pausing often. To be ended before anything else is loaded."""
        self._delta = MetadataDelta(self.image, is_snapshot=True)
        self._in_transaction = False
        for number, record in enumerate(records, 1):
            self._replay(record, provenance.offset)
            if number % RECORDS_PER_STEP == 0:
                yield
        yield from self._delta.prepare_in_steps()
        self._publish(provenance)

    def _begin(self, before: Provenance) -> None:
        if self._in_transaction:
            self._report(before.offset + 1, "BeginTransactionRecord: a transaction is open")
            return
        if before.offset > self.image.provenance.offset:
            self._publish(before)
        self._in_transaction = True

    def _end(self, offset: int) -> None:
        if not self._in_transaction:
            self._report(offset, "EndTransactionRecord: no transaction is open")
        self._in_transaction = False

    def _abort(self, offset: int) -> None:
        if self._in_transaction:
            self._delta = MetadataDelta(self.image)
        else:
            self._report(offset, "AbortTransactionRecord: no transaction is open")
        self._in_transaction = False

    def _replay(self, record: MetadataRecord, offset: int) -> None:
        try:
            self._delta.replay(record)
        except ReplayError as error:
            self._report(offset, str(error))

    def _publish(self, provenance: Provenance) -> None:
        delta, self.image = self._delta, self._delta.apply(provenance)
        self._delta = MetadataDelta(self.image)
        self._publishers.publish(delta, self.image)

    def _report(self, offset: int, fault: str) -> None:
        self.fault_count += 1
        logger.error("metadata record at offset %d not replayed: %s", offset, fault)
