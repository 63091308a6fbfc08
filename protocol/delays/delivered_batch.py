"""Delivered batches: records that have waited, as consumers see them.

They are ordinary batches, without a producer id, and have the delay bit. Each record has the
timestamp from which it was to be visible, the key, value and headers of the original, and three
more headers:

    delivery-source       its offset while it waited
    delivery-created-at   the timestamp that its producer gave it
    delivery-point        in the first record of a batch: the delivery point (below), as three
                          numbers separated by commas

Records are delivered in the order of (due, source offset), so that the last one marks how far
delivery has come: the `DeliveryPoint`. It stands in the batch itself, and can neither be there
without the records nor be missing where they are. Its due time is the latest timestamp of the
batch, even in topics with LogAppendTime. A compacted batch keeps it (`delivered_remainder`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.delays.header_names import CREATED_AT, POINT, SOURCE
from protocol.delays.retry_headers import given_back
from protocol.delays.stored_record import DueRecord, encode_due, encode_headers
from protocol.records.batch import (
    DELAY_BIT,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchHeader,
    parse_header,
    replace_records,
)
from protocol.records.builder import TimestampType
from protocol.records.compression import compress
from protocol.records.record import invalid, parse_headers, parse_record, record_bytes
from protocol.records.varints import encode_varint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.records.compression import Codec
    from protocol.wire import Buffer

_SOURCE: Final = encode_varint(len(SOURCE)) + SOURCE.encode()
_CREATED_AT: Final = encode_varint(len(CREATED_AT)) + CREATED_AT.encode()
"""The names of headers, after their lengths."""
_POINT = re.compile(rb"(-?[0-9]{1,19}),([0-9]{1,19}),([0-9]{1,19})")


class DeliveryPoint(NamedTuple):
    """Progress of delivery."""

    due_ms: int
    offset: int
    """Offset at which the last delivered record waited."""
    waiting_from: int
    """Nothing that waits, or belongs to an open transaction, has a lower offset."""


NOTHING_DELIVERED: Final = DeliveryPoint(-1, -1, 0)


def build_delivered(
    due: Sequence[DueRecord],
    waiting_from: int,
    codec: Codec,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    *,
    is_retry: bool = False,
) -> bytearray:
    """The batch that delivers `due`, at least one, in their order; `is_retry` counts attempts."""
    last, base_timestamp = due[-1], due[0].due_ms
    point = b"%d,%d,%d" % (last.due_ms, last.record.offset, waiting_from)
    encoded = []
    for offset_delta, one in enumerate(due):
        added = _SOURCE + _number(one.record.offset) + _CREATED_AT + _number(one.record.timestamp)
        count = 2
        if offset_delta == 0:
            added += encode_headers(((POINT, point),))
            count = 3
        given = _given_back(one) if is_retry else one
        encoded.append(encode_due(given, (offset_delta, base_timestamp), count, added))
    body = b"".join(encoded)
    is_stamped = timestamp_type is TimestampType.LOG_APPEND_TIME
    header = BatchHeader(
        base_offset=0,
        batch_length=0,
        partition_leader_epoch=NO_LEADER_EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=codec | DELAY_BIT | (LOG_APPEND_TIME_BIT if is_stamped else 0),
        last_offset_delta=len(due) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max(one.due_ms for one in due),
        producer_id=NO_PRODUCER_ID,
        producer_epoch=-1,
        base_sequence=NO_SEQUENCE,
        record_count=len(due),
    )
    return replace_records(header, compress(codec, body) if codec else body)


def parse_point(batch: Buffer) -> DeliveryPoint:
    """Parse the delivery point of a delivered batch; ApiError(INVALID_RECORD) for any other."""
    due_ms, offset, waiting_from = map(int, point_text(batch).split(b","))
    return DeliveryPoint(due_ms, offset, waiting_from)


def point_text(batch: Buffer) -> bytes:
    """Return the encoded point of a delivered batch, or of its remainder after compaction."""
    header = parse_header(batch)
    (_, _, _, value, headers), _ = parse_record(record_bytes(batch, header), 0)
    point = value if header.is_control else dict(headers).get(POINT)
    if point is None or _POINT.fullmatch(point) is None:
        raise invalid("a delivered batch does not say how far delivery has come")
    return point


def _given_back(one: DueRecord) -> DueRecord:
    """As it is given back in a retry topic."""
    record = one.record
    headers = parse_headers(record.headers, record.header_count)
    given = given_back(headers, record.timestamp)
    stored = record._replace(header_count=len(given), headers=encode_headers(given))
    return DueRecord(one.due_ms, stored)


def _number(number: int) -> bytes:
    """The value of a header, after its length."""
    text = b"%d" % number
    return encode_varint(len(text)) + text
