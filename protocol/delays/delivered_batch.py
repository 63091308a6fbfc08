"""Batches of records that have waited and are delivered: what consumers are shown of delays.

They are ordinary batches, without a producer id, and have the delay bit. Each record has the
timestamp from which it was to be visible, the key, value and headers of the original, and three
more headers:

    delivery-source       its offset while it waited
    delivery-created-at   the timestamp that its producer gave it
    delivery-point        in the first record of a batch: how far delivery has come (below), as the
                          three numbers with commas between them

Records are delivered in the order of (due, source offset), so that what has been delivered is all
that does not lie beyond the last one: the `DeliveryPoint`. It stands in the batch itself, and can
neither be there without the records nor be missing where they are. Its due time is the latest
timestamp of the batch, also where the topic's timestamps are those of the append. What compaction
leaves of such a batch still says it (`delivered_remainder`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.delays.retry_headers import given_back
from protocol.records.batch import parse_header
from protocol.records.builder import NewRecord, TimestampType, build_batch
from protocol.records.record import invalid, parse_record, record_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.records.compression import Codec
    from protocol.records.record import Record
    from protocol.wire import Buffer

SOURCE: Final = "delivery-source"
CREATED_AT: Final = "delivery-created-at"
POINT: Final = "delivery-point"
_POINT = re.compile(rb"(-?[0-9]{1,19}),([0-9]{1,19}),([0-9]{1,19})")


class DeliveryPoint(NamedTuple):
    """How far delivery has come."""

    due_ms: int
    offset: int
    """Where the last delivered record waited."""
    waiting_from: int
    """Nothing that waits, or belongs to an open transaction, has a lower offset."""


NOTHING_DELIVERED: Final = DeliveryPoint(-1, -1, 0)


class DueRecord(NamedTuple):
    """A record to be delivered now."""

    due_ms: int
    record: Record
    """As it stands in its waiting batch, under the offset at which it waited."""


def build_delivered(
    due: Sequence[DueRecord],
    waiting_from: int,
    codec: Codec,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    *,
    is_retry: bool = False,
) -> bytearray:
    """The batch that delivers `due`, at least one, in their order; `is_retry` counts attempts."""
    last = due[-1]
    point = b"%d,%d,%d" % (last.due_ms, last.record.offset, waiting_from)
    records = [_delivered(one, is_retry=is_retry) for one in due]
    records[0] = records[0]._replace(headers=(*records[0].headers, (POINT, point)))
    return build_batch(records, codec=codec, is_of_delays=True, timestamp_type=timestamp_type)


def parse_point(batch: Buffer) -> DeliveryPoint:
    """How far delivery has come with a delivered batch. ApiError(INVALID_RECORD) if it is none."""
    due_ms, offset, waiting_from = map(int, point_text(batch).split(b","))
    return DeliveryPoint(due_ms, offset, waiting_from)


def point_text(batch: Buffer) -> bytes:
    """The point as it stands in a delivered batch, or in what compaction left of one."""
    header = parse_header(batch)
    (_, _, _, value, headers), _ = parse_record(record_bytes(batch, header), 0)
    point = value if header.is_control else dict(headers).get(POINT)
    if point is None or _POINT.fullmatch(point) is None:
        raise invalid("a delivered batch does not say how far delivery has come")
    return point


def _delivered(one: DueRecord, *, is_retry: bool) -> NewRecord:
    record = one.record
    kept = given_back(record.headers, record.timestamp) if is_retry else record.headers
    headers = (
        *kept,
        (SOURCE, b"%d" % record.offset),
        (CREATED_AT, b"%d" % record.timestamp),
    )
    return NewRecord(one.due_ms, record.key, record.value, headers)
