"""Batches with their records laid open: checked, without compression, and as columns.

Many batches are opened together, since what numpy does costs a microsecond however little it is:

    batches    |head|records     |head|records (lz4)|head|records     |
    octets     |records     |records                     |records     |0 0 0 ...
    starts      ^   ^   ^    ^   ^   ^   ^   ^   ^   ^    ^  ^  ^  ^
    bounds     |0           |3                           |10          |14

Only the starts are found batch by batch, since each depends on the length of the record before.
Where records are alike in size they are one stride apart, which is seen by comparing the bytes of
their lengths in C; elsewhere they are followed one by one.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

import numpy as np

from protocol.errors import ApiError
from protocol.records.batch import CODEC_MASK, HEADER_BYTES, compute_crc
from protocol.records.record import MIN_RECORD_BYTES, invalid, record_bytes
from protocol.records.varints import read_varint
from storage.compaction.columns.key_hashes import PADDING_BYTES
from storage.compaction.columns.record_columns import FIELDS_BYTES, read_columns, timestamp_deltas
from storage.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from protocol.records.batch import BatchHeader
    from protocol.wire import Buffer

MOST_BYTES: Final = 4 << 20
MOST_RECORDS: Final = 8192
"""Maximum number of records opened together, unless one batch has more: each takes a dozen numbers
of eight bytes in memory, which should stay in the processor's cache.
"""
SHORT_RUN: Final = 8
"""A run of records below this was not worth its slices; the walk goes on one by one for a while."""
FIRST_PATIENCE: Final = 16
"""Records followed one by one after a short run; doubled after each further one."""

LEAST_BYTES: Final = MIN_RECORD_BYTES + 1
"""Of a record, its length among them."""

_PADDING: Final = bytes(FIELDS_BYTES + PADDING_BYTES)
_HIGH_BIT: Final = 0x80
_LOW_BITS: Final = 0x7F


class OpenedBatches:
    """Some batches in a row, and the columns of all their records."""

    def __init__(self, batches: Sequence[tuple[BatchHeader, Buffer]], bodies: _Bodies) -> None:
        """`bodies` are those of `batches`."""
        self.headers = [header for header, _ in batches]
        self.errors = bodies.errors
        """Errors of damaged batches, by batch index. The columns of such a batch are void."""
        self.octets = b"".join([*bodies.contents, _PADDING])
        starts = array("q", bytes(8 * bodies.most_records))
        places = np.frombuffer(starts, np.int64)
        self.bounds = [0]
        """Of each batch, where its records begin in the columns; and where the last ones end."""
        ends = []
        position = count = 0
        for index, content in enumerate(bodies.contents):
            end = position + len(content)
            if index not in self.errors:
                header = self.headers[index]
                start = position if header.attributes & CODEC_MASK else position + HEADER_BYTES
                try:
                    walk = (start, end, header.record_count)
                    count = _find_starts(self.octets, walk, starts, places, count)
                except ApiError as error:
                    self.errors[index] = error
                else:
                    ends.append((count - 1, end))
            self.bounds.append(count)
            position = end
        self.columns = read_columns(
            np.frombuffer(self.octets, np.uint8), places[:count], _ends(places[:count], ends)
        )
        self._timestamp_deltas: NDArray[np.int64] | None = None
        if self.columns.is_bad is not None:
            self._note_bad(self.columns.is_bad)

    @property
    def timestamp_deltas(self) -> NDArray[np.int64]:
        """A column more, which is not always wanted."""
        if self._timestamp_deltas is None:
            self._timestamp_deltas = timestamp_deltas(self.columns)
        return self._timestamp_deltas

    def base_offsets(self) -> NDArray[np.int64]:
        """A column of the base offset of each record's batch."""
        return self.of_each_record([header.base_offset for header in self.headers])

    def of_each_record(self, values: Sequence[int]) -> NDArray[np.int64]:
        """A column with the one of `values` that is that of the record's batch."""
        return np.repeat(np.array(values, np.int64), np.diff(self.bounds))

    def count(self, chosen: NDArray[np.bool_]) -> list[int]:
        """Number of records of each batch that a mask selects."""
        sums = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(chosen, out=sums[1:])
        counts: list[int] = np.diff(sums[self.bounds]).tolist()
        return counts

    def _note_bad(self, is_bad: NDArray[np.bool_]) -> None:
        places = np.flatnonzero(is_bad)
        batches = np.searchsorted(np.array(self.bounds), places, side="right") - 1
        for index in set(batches.tolist()):
            base_offset = self.headers[index].base_offset
            self.errors[index] = invalid(
                f"a record of the batch at offset {base_offset} has an impossible length or offset"
            )


class _Bodies:
    """Records before compression, of one batch after the other."""

    def __init__(self) -> None:
        self.contents: list[Buffer] = []
        """Of a batch without compression all of it, or one more copy would have to be made."""
        self.errors: dict[int, ApiError] = {}
        self.size = 0
        self.most_records = 0

    def add(self, header: BatchHeader, batch: Buffer) -> None:
        content: Buffer = b""
        try:
            check_batch(header, batch)
            content = record_bytes(batch, header) if header.attributes & CODEC_MASK else batch
            if not 0 < header.record_count * LEAST_BYTES <= len(content):
                raise invalid(f"{header.record_count} records are not in {len(content)} bytes")
            self.most_records += header.record_count
        except ApiError as error:
            self.errors[len(self.contents)] = error
        self.contents.append(content)
        self.size += len(content)


def open_batches(batches: Sequence[tuple[BatchHeader, Buffer]]) -> Iterator[OpenedBatches]:
    """Open non-empty `batches`, some at a time, in order.

    An error in a batch is recorded, and raised only when that batch is needed.
    """
    first, bodies = 0, _Bodies()
    for index, (header, batch) in enumerate(batches):
        bodies.add(header, batch)
        if bodies.size >= MOST_BYTES or bodies.most_records >= MOST_RECORDS:
            yield OpenedBatches(batches[first : index + 1], bodies)
            first, bodies = index + 1, _Bodies()
    if bodies.contents:
        yield OpenedBatches(batches[first:], bodies)


def check_batch(header: BatchHeader, batch: Buffer) -> None:
    """Raise DamagedFileError for a batch with a wrong checksum.

    Rewriting it would give the damage a checksum that is right.
    """
    if header.crc != compute_crc(batch, 0, header.size_in_bytes):
        raise DamagedFileError(f"the checksum of the batch at offset {header.base_offset} is wrong")


def _ends(starts: NDArray[np.int64], last: list[tuple[int, int]]) -> NDArray[np.int64]:
    """End of each record: the start of the next one, or the end of its batch."""
    ends = np.empty_like(starts)
    ends[:-1] = starts[1:]
    if last:
        indexes, positions = zip(*last, strict=True)
        ends[list(indexes)] = positions
    return ends


def _find_starts(
    octets: bytes,
    walk: tuple[int, int, int],
    starts: array[int],
    places: NDArray[np.int64],
    count: int,
) -> int:
    """Put into `starts`, from `count` on, where each record begins; returns how many there are now.

    `walk` is where the first begins, where the last should end, and the number of them; `places`
    is `starts` to numpy. Raises ApiError(INVALID_RECORD) unless they end there.
    """
    position, end, records = walk
    stop = count + records
    patience = FIRST_PATIENCE
    try:
        while count < stop:
            stride, run = _run(octets, position, end, stop - count)
            if run >= SHORT_RUN:
                past = position + run * stride
                places[count : count + run] = np.arange(position, past, stride)
                position = past
                count += run
            else:
                taken = min(stop - count, patience)
                position = _follow(octets, position, starts, count, taken)
                count += taken
                patience *= 2
    except IndexError:
        raise invalid(f"one of {records} records is cut off") from None
    if position != end:
        raise invalid(f"{records} records end at byte {position}, not at {end}")
    return count


def _run(octets: bytes, position: int, end: int, most: int) -> tuple[int, int]:
    """Length of the record at `position`, and number of records of that length, at most `most`."""
    if most < SHORT_RUN:
        return 0, 0
    length, after = read_varint(octets, position)
    stride = after - position + length
    if length < MIN_RECORD_BYTES:
        return 0, 0  # `read_columns` reports the error
    run = min(most, (end - position) // stride)
    for at in range(position, after):
        column = octets[at : at + run * stride : stride]
        run = len(column) - len(column.lstrip(column[:1]))
    return stride, run


def _follow(octets: bytes, position: int, starts: array[int], first: int, count: int) -> int:
    """Follow `count` records; returns where the last ends, which `read_columns` will check."""
    for index in range(first, first + count):
        starts[index] = position
        octet = octets[position]
        if octet < _HIGH_BIT:
            position += 1 + (octet >> 1)
        elif (second := octets[position + 1]) < _HIGH_BIT:
            position += 2 + ((octet & _LOW_BITS | second << 7) >> 1)
        else:
            length, position = read_varint(octets, position)
            position += length
    return position
