"""The content of a snapshot: batches with offsets of their own, from 0 (KIP-630).

    control batch    SnapshotHeaderRecord; KRaftVersionRecord and VotersRecord, with KIP-853
    data batches     the records of the image
    control batch    SnapshotFooterRecord

Without the footer a snapshot is incomplete. Reading checks all of it before anything is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.errors import ApiError
from protocol.metadata_log.batches import (
    UnreadableMetadataError,
    check_batch,
    control_messages,
    control_record,
    metadata_records,
)
from protocol.metadata_log.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from protocol.metadata_log.frames import encode_metadata_record
from protocol.records.batch import iterate_headers
from protocol.records.builder import NewRecord, build_batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from protocol.schema import Message, MetadataRecord
    from protocol.wire import Buffer

RECORDS_PER_STEP: Final = 100
"""Records decoded between two pauses: under a millisecond."""


class SnapshotId(NamedTuple):
    """End offset, exclusive, and the epoch of the last record before it."""

    end_offset: int
    epoch: int


class QuorumInForce(NamedTuple):
    """Version of the Raft protocol, and the voters, at some offset."""

    kraft_version: int = 0
    voters: VotersRecord | None = None
    """None in a quorum whose voters are configured."""

    def after(self, message: Message) -> QuorumInForce:
        """The same, or what a control record made of it."""
        if isinstance(message, KRaftVersionRecord):
            return self._replace(kraft_version=message.kraft_version)
        if isinstance(message, VotersRecord):
            return self._replace(voters=message)
        return self


class SnapshotBatches:
    """Makes the batches of one snapshot, in order."""

    __slots__ = ("_epoch", "_next_offset", "_now_ms")

    def __init__(self, epoch: int, now_ms: int) -> None:
        self._epoch = epoch
        self._now_ms = now_ms
        self._next_offset = 0

    def header(self, last_contained_timestamp_ms: int, quorum: QuorumInForce) -> bytearray:
        """The first batch."""
        messages: list[Message] = [
            SnapshotHeaderRecord(
                version=0, last_contained_log_timestamp=last_contained_timestamp_ms
            )
        ]
        if quorum.kraft_version > 0:
            messages.append(KRaftVersionRecord(version=0, kraft_version=quorum.kraft_version))
            if quorum.voters is not None:
                messages.append(quorum.voters)
        return self._control(messages)

    def data(self, records: Sequence[tuple[MetadataRecord, int]]) -> bytearray:
        """A batch of records, at least one, each in a version."""
        return self._batch(
            [NewRecord(self._now_ms, None, encode_metadata_record(*one)) for one in records]
        )

    def footer(self) -> bytearray:
        """The last batch."""
        return self._control([SnapshotFooterRecord(version=0)])

    def _control(self, messages: Sequence[Message]) -> bytearray:
        records = [control_record(one, self._now_ms) for one in messages]
        return self._batch(records, is_control=True)

    def _batch(self, records: Sequence[NewRecord], *, is_control: bool = False) -> bytearray:
        batch = build_batch(
            records,
            base_offset=self._next_offset,
            leader_epoch=self._epoch,
            is_control=is_control,
        )
        self._next_offset += len(records)
        return batch


class SnapshotContent:
    """A snapshot that is read in steps; nothing of it is to be used before the last one."""

    def __init__(self, data: Buffer) -> None:
        self._data = memoryview(data)
        self._header: SnapshotHeaderRecord | None = None
        self._is_complete = False
        self.records: list[MetadataRecord] = []
        self.quorum = QuorumInForce()

    @property
    def last_contained_timestamp_ms(self) -> int:
        """Time at which the last record in it was appended to the log."""
        assert self._header is not None, "the snapshot has not been read"
        return self._header.last_contained_log_timestamp

    def read(self) -> Iterator[None]:
        """Read all of it, and pause often; raises UnreadableMetadataError."""
        for batch, is_control in self._batches():
            if self._is_complete:
                raise UnreadableMetadataError("records follow the footer")
            if is_control:
                self._take_control(batch)
                yield
            elif self._header is None:
                raise UnreadableMetadataError("the snapshot has no header")
            else:
                yield from self._take_records(batch)
        if not self._is_complete:
            raise UnreadableMetadataError("the snapshot has no footer: it is incomplete")

    def read_header(self) -> None:
        """Read the first batch only."""
        for batch, _ in self._batches():
            self._take_control(batch)
            return
        raise UnreadableMetadataError("the snapshot has no header")

    def _batches(self) -> Iterator[tuple[memoryview, bool]]:
        end = expected = 0
        try:
            for position, header in iterate_headers(self._data):
                end = position + header.size_in_bytes
                batch = self._data[position:end]
                if header.base_offset != expected:
                    raise UnreadableMetadataError(
                        f"offset {header.base_offset} follows, where {expected} should"
                    )
                check_batch(batch)
                yield batch, header.is_control
                expected = header.next_offset
        except ApiError as error:
            raise UnreadableMetadataError(error.message) from error
        if end != len(self._data):
            raise UnreadableMetadataError(f"the snapshot is cut off in the batch at byte {end}")

    def _take_records(self, batch: memoryview) -> Iterator[None]:
        for number, record in enumerate(metadata_records(batch), 1):
            self.records.append(record)
            if number % RECORDS_PER_STEP == 0:
                yield
        yield

    def _take_control(self, batch: memoryview) -> None:
        for message in control_messages(batch):
            is_header = isinstance(message, SnapshotHeaderRecord)
            if self._is_complete or is_header != (self._header is None):
                raise UnreadableMetadataError(f"{type(message).__name__} is out of place")
            if isinstance(message, SnapshotHeaderRecord):
                self._header = message
            self._is_complete = isinstance(message, SnapshotFooterRecord)
            self.quorum = self.quorum.after(message)
