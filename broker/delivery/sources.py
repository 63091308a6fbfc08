"""The records that are due, read from the waiting batches in which they are stored."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.delays.delayed_batch import LARGE_BYTES, LARGE_COMPRESSED_BYTES
from protocol.delays.stored_record import StoredRecord, stored_record
from protocol.delays.waiting_batch import parse_waiting
from protocol.records.batch import parse_header
from protocol.records.compression import Codec
from protocol.records.record import Record, parse_record, record_bytes
from protocol.records.varints import read_varint

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BATCHES: Final = 64
MOST_BYTES: Final = 4 << 20
"""Bytes kept decompressed of one partition; one batch, if that is more."""


class OpenedBatch(NamedTuple):
    """The records of one waiting batch, ready to be read."""

    base_offset: int
    starts: list[int]
    """Start of each record in `body`."""
    body: bytes | bytearray
    base_timestamp: int
    codec: Codec

    def record(self, offset: int) -> Record:
        """The record that waits at `offset`, with the timestamp of its producer."""
        start = self.starts[offset - self.base_offset]
        (timestamp_delta, _, key, value, headers), _ = parse_record(self.body, start)
        return Record(offset, self.base_timestamp + timestamp_delta, key, value, headers)

    def stored(self, offset: int) -> StoredRecord:
        """The record that waits at `offset`, for delivery."""
        start = self.starts[offset - self.base_offset]
        return stored_record(self.body, start, self.base_timestamp, offset)

    def offsets_from(self, first: int) -> range:
        """Offsets of its records, but for those before `first`."""
        return range(max(first, self.base_offset), self.base_offset + len(self.starts))


def is_large(batch: memoryview) -> bool:
    """Return whether opening a waiting batch takes too long for the event loop."""
    if len(batch) > LARGE_BYTES:
        return True
    return len(batch) > LARGE_COMPRESSED_BYTES and (
        parse_header(parse_waiting(batch).inner).codec is not Codec.NONE
    )


def open_batch(batch: memoryview) -> OpenedBatch:
    """Open a waiting batch; safe on any thread."""
    inner = parse_waiting(batch).inner
    header = parse_header(inner)
    body = record_bytes(inner, header)
    starts = []
    position = 0
    for _ in range(header.record_count):
        starts.append(position)
        length, start = read_varint(body, position)
        position = start + length
    base_offset = parse_header(batch).base_offset
    return OpenedBatch(base_offset, starts, body, header.base_timestamp, header.codec)


class Sources:
    """Recently opened batches of one partition."""

    def __init__(self, read: Callable[[int], memoryview | None]) -> None:
        """`read` returns the batch of the log that holds an offset."""
        self._read = read
        self._opened: list[OpenedBatch] = []
        """By offset."""
        self._bytes = 0
        self._latest: OpenedBatch | None = None
        """The one that was found last: the next record is mostly in it, too."""

    def find(self, offset: int) -> OpenedBatch | memoryview | None:
        """The opened batch that holds `offset`; a large one unopened, for `add`.

        None if the log no longer holds it.
        """
        latest = self._latest
        if latest is not None and 0 <= offset - latest.base_offset < len(latest.starts):
            return latest
        at = bisect_right(self._opened, offset, key=_base_offset) - 1
        if at >= 0 and offset - self._opened[at].base_offset < len(self._opened[at].starts):
            self._latest = self._opened[at]
            return self._latest
        batch = self._read(offset)
        if batch is None or is_large(batch):
            return batch
        return self.add(open_batch(batch))

    def add(self, opened: OpenedBatch) -> OpenedBatch:
        """Keep a batch for the following records; drop others if need be."""
        if self._bytes + len(opened.body) > MOST_BYTES or len(self._opened) >= MOST_BATCHES:
            self._opened.clear()
            self._bytes = 0
        at = bisect_right(self._opened, opened.base_offset, key=_base_offset)
        self._opened.insert(at, opened)
        self._bytes += len(opened.body)
        self._latest = opened
        return opened


def _base_offset(opened: OpenedBatch) -> int:
    return opened.base_offset
