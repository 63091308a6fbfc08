"""Search of records by timestamp within one segment, from a position given by the indexes.

A search is a generator, since it may have to look at a whole segment: the time index does not help
if the record with the greatest timestamp lies before the first eligible one. It yields

    None          where other work may run
    a function    to be called on any thread, whose result, or error, it is handed back

and returns its result. `finished` runs one without pauses. The log may change in between: a search
keeps the file in which it began.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from time import sleep
from typing import TYPE_CHECKING, Any, Final, TypeVar

from protocol.records.batch import CODEC_MASK
from protocol.records.record import iterate_records
from storage.segment.timestamp_offset import TimestampOffset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.records.batch import BatchHeader
    from storage.filesystem import File
    from storage.segment.segment_reader import SegmentReading

T = TypeVar("T")

Found = TimestampOffset | None
Search = Generator[Callable[[], Found] | None, Any, T]
"""Receives the results of the functions that it yields; None otherwise."""

HEADERS_PER_STEP: Final = 16
"""Batch headers read per step: some 50 microseconds."""
TURN_RECORDS: Final = 1000
"""Records of a batch, of which a client may have made millions, before others have a turn."""
SMALL_BYTES: Final = 4096
"""Largest uncompressed batch that is searched faster here than on a thread."""


def finished(search: Search[T]) -> T:
    """Result of a search, run to its end at once."""
    handed: Found = None
    while True:
        try:
            work = search.send(handed)
        except StopIteration as end:
            found: T = end.value
            return found
        try:
            handed = None if work is None else work()
        except Exception as error:
            search.throw(error)
            raise


def first_not_earlier(
    segment: SegmentReading, position: int, timestamp: int, from_offset: int
) -> Search[Found]:
    """First record from byte `position` and `from_offset` on that is not before `timestamp`.

    Batches that hold none of `timestamp` or later are not read. A compacted batch may hold none at
    all.
    """
    file = segment.file
    for count, (at, header) in enumerate(segment.walk(position, segment.size), 1):
        if count % HEADERS_PER_STEP == 0:
            yield None
        if header.max_timestamp < timestamp or header.last_offset < from_offset:
            continue
        look = partial(_first_in_batch, file, at, header, (timestamp, from_offset))
        is_small = header.size_in_bytes <= SMALL_BYTES and not header.attributes & CODEC_MASK
        found = look() if is_small else (yield look)
        if found is not None:
            return found
    return None


def latest_from(segment: SegmentReading, from_offset: int) -> Search[Found]:
    """First record with the greatest timestamp at or after `from_offset`.

    The batch with the greatest in its header is read; if that record lies before `from_offset`, or
    was compacted away, the batch with the next, in another pass over the headers.
    """
    file = segment.file
    latest: Found = None
    tried: tuple[int, int] | None = None
    while True:
        best = yield from _best_claim(segment, from_offset, tried)
        if best is None or (latest is not None and best.max_timestamp <= latest.timestamp):
            return latest
        position = best.position
        found = yield partial(_latest_in_batch, file, position, best.header, from_offset)
        if found is not None and (latest is None or found.timestamp > latest.timestamp):
            latest = found
        tried = best.rank


class _Claim:
    """A batch, and the greatest timestamp that its header says it has."""

    __slots__ = ("header", "max_timestamp", "position", "rank")

    def __init__(self, position: int, header: BatchHeader) -> None:
        self.position = position
        self.header = header
        self.max_timestamp = header.max_timestamp
        self.rank = (-header.max_timestamp, position)


def _best_claim(
    segment: SegmentReading, from_offset: int, tried: tuple[int, int] | None
) -> Search[_Claim | None]:
    """The batch that comes next after `tried`, by falling timestamps, then as they lie."""
    best: _Claim | None = None
    for count, (at, header) in enumerate(segment.walk(0, segment.size), 1):
        if count % HEADERS_PER_STEP == 0:
            yield None
        if header.last_offset < from_offset:
            continue
        rank = (-header.max_timestamp, at)
        if (tried is None or rank > tried) and (best is None or rank < best.rank):
            best = _Claim(at, header)
    return best


def _first_in_batch(file: File, at: int, header: BatchHeader, wanted: tuple[int, int]) -> Found:
    timestamp, from_offset = wanted
    found = _records(file, at, header, from_offset)
    return next((record for record in found if record.timestamp >= timestamp), None)


def _latest_in_batch(file: File, at: int, header: BatchHeader, from_offset: int) -> Found:
    found = _records(file, at, header, from_offset)
    return max(found, key=lambda one: (one.timestamp, -one.offset), default=None)


def _records(
    file: File, at: int, header: BatchHeader, from_offset: int
) -> Iterator[TimestampOffset]:
    """Timestamps of the records at or after `from_offset`; decompresses the batch."""
    epoch = header.partition_leader_epoch
    for count, record in enumerate(iterate_records(file.read_at(at, header.size_in_bytes)), 1):
        if count % TURN_RECORDS == 0:
            sleep(0)  # compiled code keeps Python's lock, for which the event loop waits
        if record.offset >= from_offset:
            yield TimestampOffset(record.timestamp, record.offset, epoch)
