"""Committed batches of the metadata log, decoded and handed to the image in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controller.image.metadata_image import Provenance
from protocol.metadata_log.batches import (
    UnreadableMetadataError,
    control_messages,
    metadata_records,
)
from protocol.metadata_log.snapshots import QuorumInForce, SnapshotContent
from protocol.records.batch import parse_header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.runtime.slices import Slices
    from controller.image.loader import MetadataLoader
    from protocol.metadata_log.snapshots import SnapshotId
    from protocol.records.batch import BatchHeader
    from protocol.schema import MetadataRecord
    from storage.metadata_log.metadata_log import MetadataLog

RECORDS_PER_STEP: Final = 100
RECORDS_TOGETHER: Final = 4000
"""Records of whole batches that become one image at most: publishers hear of fewer changes."""


class MetadataFeed:
    """The only caller of its loader. Raises UnreadableMetadataError, and has to stop then."""

    def __init__(
        self, log: MetadataLog, loader: MetadataLoader, slices: Callable[[], Slices]
    ) -> None:
        self.loader = loader
        self._log = log
        self._slices = slices
        self.next_offset = 0
        """Everything before it was handed over."""
        self.quorum = QuorumInForce()
        """At that offset."""
        self.bytes_since_snapshot = 0
        """Size of the batches handed over since the last snapshot, loaded or begun."""
        self.has_seen_record = False
        """True once a record other than a control record has come."""

    @property
    def is_at_image(self) -> bool:
        """True if the image has all batches so far: no transaction is open."""
        return self.loader.image.provenance.offset == self.next_offset - 1

    async def load_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Replace the image by that of a snapshot on the disk, all of which is read first."""
        content = SnapshotContent(self._log.snapshots.read(snapshot_id))
        try:
            async for _ in self._slices().each(content.read()):
                pass
        except UnreadableMetadataError as error:
            path = self._log.snapshots.path(snapshot_id)
            raise UnreadableMetadataError(f"{path}: {error}") from error
        self.has_seen_record = self.has_seen_record or bool(content.records)
        provenance = Provenance(
            snapshot_id.end_offset - 1, snapshot_id.epoch, content.last_contained_timestamp_ms
        )
        steps = self.loader.load_snapshot_in_steps(_taken_from(content.records), provenance)
        async for _ in self._slices().each(steps):
            pass
        self.next_offset = snapshot_id.end_offset
        self.quorum = content.quorum
        self.bytes_since_snapshot = 0

    async def advance(self, to_offset: int) -> None:
        """Hand over whole batches up to an offset, which all are committed before."""
        if self.next_offset < to_offset:
            async for _ in self._slices().each(self.steps(to_offset)):
                pass

    def steps(self, to_offset: int) -> Iterator[None]:
        """Do what `advance` does, in steps."""
        together: list[MetadataRecord] = []
        last: BatchHeader | None = None
        for batch in self._log.log.read_batches(self.next_offset, to_offset):
            header = parse_header(batch)
            if header.next_offset > to_offset:
                break
            if last is not None and (header.is_control or len(together) >= RECORDS_TOGETHER):
                yield from self._load(together, last)
                together, last = [], None
            if header.is_control:
                yield from self._take_control(batch, header)
                continue
            for number, record in enumerate(metadata_records(batch), 1):
                together.append(record)
                if number % RECORDS_PER_STEP == 0:
                    yield
            self._count(header)
            last = header
            yield
        if last is not None:
            yield from self._load(together, last)

    def _take_control(self, batch: memoryview, header: BatchHeader) -> Iterator[None]:
        for message in control_messages(batch):
            self.quorum = self.quorum.after(message)
        self._count(header)
        yield from self._load([], header)

    def _count(self, header: BatchHeader) -> None:
        self.bytes_since_snapshot += header.size_in_bytes

    def _load(self, records: list[MetadataRecord], last: BatchHeader) -> Iterator[None]:
        provenance = Provenance(last.last_offset, last.partition_leader_epoch, last.max_timestamp)
        yield from self.loader.load_batch_in_steps(records, provenance)
        self.next_offset = last.next_offset
        self.has_seen_record = self.has_seen_record or bool(records)


def _taken_from(records: list[MetadataRecord]) -> Iterator[MetadataRecord]:
    """Records that are let go of one by one: to free 100,000 at once takes long."""
    records.reverse()
    while records:
        yield records.pop()
