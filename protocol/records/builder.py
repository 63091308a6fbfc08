"""Build record batches, for the coordinators' appends and for tests."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.records.batch import (
    CONTROL_BIT,
    DELAY_BIT,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    replace_records,
)
from protocol.records.compression import Codec, compress
from protocol.records.varints import encode_varint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.records.record import Header

_NULL: Final = encode_varint(-1)
_NO_ATTRIBUTES: Final = b"\x00"


class TimestampType(enum.IntEnum):
    """Source of record timestamps, the producer or the broker: bit 3 of a batch's attributes."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class NewRecord(NamedTuple):
    """One record to be put in a batch; its offset follows from its place."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def build_batch(  # noqa: PLR0913 - one keyword for each field of the format
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    is_of_delays: bool = False,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> bytearray:
    """One batch of `records`, at least one, with offsets that follow each other.

    With LOG_APPEND_TIME the latest timestamp among `records` is that of all.
    """
    assert records, "a batch holds at least one record"
    base_timestamp = records[0].timestamp
    body = b"".join(
        [
            encode_record(record, offset_delta, base_timestamp)
            for offset_delta, record in enumerate(records)
        ]
    )
    attributes = (
        codec
        | (LOG_APPEND_TIME_BIT if timestamp_type is TimestampType.LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_BIT if is_transactional else 0)
        | (CONTROL_BIT if is_control else 0)
        | (DELAY_BIT if is_of_delays else 0)
    )
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return replace_records(header, compress(codec, body) if codec else body)


def encode_record(record: NewRecord, offset_delta: int, base_timestamp: int) -> bytes:
    """One record, its length first."""
    timestamp, key, value, headers = record
    parts = [
        _NO_ATTRIBUTES,
        encode_varint(timestamp - base_timestamp),
        encode_varint(offset_delta),
        *((_NULL,) if key is None else (encode_varint(len(key)), key)),
        *((_NULL,) if value is None else (encode_varint(len(value)), value)),
        encode_varint(len(headers)),
    ]
    for name, header_value in headers:
        encoded = name.encode()
        parts += (encode_varint(len(encoded)), encoded)
        parts += (
            (_NULL,) if header_value is None else (encode_varint(len(header_value)), header_value)
        )
    content = b"".join(parts)
    return encode_varint(len(content)) + content
