"""Records by their time within one segment, once the indexes have said where to begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.records.record import iterate_records
from storage.segment.timestamp_offset import TimestampOffset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.segment.segment_reader import SegmentReading


def first_not_earlier(
    segment: SegmentReading, position: int, timestamp: int, from_offset: int
) -> TimestampOffset | None:
    """First record from byte `position` and `from_offset` on that is not before `timestamp`."""
    found = records_from(segment, position, timestamp, from_offset)
    return next((record for record in found if record.timestamp >= timestamp), None)


def latest_from(segment: SegmentReading, from_offset: int) -> TimestampOffset | None:
    """First record with the greatest timestamp at or after `from_offset`; reads them all."""
    found = records_from(segment, 0, 0, from_offset)
    return max(found, key=lambda one: (one.timestamp, -one.offset), default=None)


def records_from(
    segment: SegmentReading, position: int, timestamp: int, from_offset: int
) -> Iterator[TimestampOffset]:
    """Records from `from_offset` on; batches that hold none of `timestamp` or later are not read.

    A compacted batch may hold none at all.
    """
    for at, header in segment.walk(position, segment.size):
        if header.max_timestamp < timestamp or header.last_offset < from_offset:
            continue
        epoch = header.partition_leader_epoch
        for record in iterate_records(segment.file.read_at(at, header.size_in_bytes)):
            if record.offset >= from_offset:
                yield TimestampOffset(record.timestamp, record.offset, epoch)
