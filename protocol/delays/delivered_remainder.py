"""Remainder of a delivered batch after compaction, with its delivery point kept.

The point stands in a header of the batch's first record, and its due time is the latest timestamp
of the batch (`delivered_batch`). Either record may be superseded by another with its key:

    first record gone      the header goes to the first record that is left
    last record gone       the batch keeps its latest timestamp
    all gone               a control batch, which clients skip, replaces it; its one record has

        key      version 0 and type, two int16
        value    the three numbers of the point, separated by commas
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from protocol.delays.delivered_batch import point_text
from protocol.delays.header_names import POINT
from protocol.records.batch import (
    CONTROL_BIT,
    DELAY_BIT,
    POINT_BIT,
    BatchHeader,
    parse_header,
    replace_records,
)
from protocol.records.builder import NewRecord, encode_record
from protocol.records.compression import compress
from protocol.records.record import parse_record, record_bytes

if TYPE_CHECKING:
    from protocol.wire import Buffer

POINTED: Final = 0x4447
_KEY: Final = struct.Struct(">hh")
_KEY_VERSION: Final = 0


def delivered_remainder(batch: Buffer, rest: Buffer | None) -> bytearray:
    """Rebuild the delivered `batch` with only the records in `rest`; None: with no records.

    ApiError(INVALID_RECORD) if `batch` is not a delivered batch.
    """
    header, point = parse_header(batch), point_text(batch)
    if rest is None:
        return _without_records(header, point)
    left = parse_header(rest)
    body = record_bytes(rest, left)
    (timestamp_delta, offset_delta, key, value, headers), end = parse_record(body, 0)
    if offset_delta != _first_offset_delta(batch, header):
        timestamp = left.base_timestamp + timestamp_delta
        first = NewRecord(timestamp, key, value, (*headers, (POINT, point)))
        body = encode_record(first, offset_delta, left.base_timestamp) + body[end:]
    kept = left._replace(max_timestamp=header.max_timestamp)
    codec = left.codec
    return replace_records(kept, compress(codec, body) if codec else body)


def _without_records(header: BatchHeader, point: bytes) -> bytearray:
    due_ms = header.max_timestamp
    record = NewRecord(due_ms, _KEY.pack(_KEY_VERSION, POINTED), point)
    attributes = CONTROL_BIT | DELAY_BIT | POINT_BIT
    outer = header._replace(attributes=attributes, base_timestamp=due_ms, record_count=1)
    return replace_records(outer, encode_record(record, 0, due_ms))


def _first_offset_delta(batch: Buffer, header: BatchHeader) -> int:
    (_, offset_delta, _, _, _), _ = parse_record(record_bytes(batch, header), 0)
    return offset_delta
