"""Write a batch anew with only some of its records, as compaction does.

Offsets, sequence numbers, producer and codec stay, so that offsets keep their gaps and producer
state can be rebuilt from what is left. The bytes are those that Apache Kafka's cleaner writes: the
base timestamp becomes that of the first record that is left, or, in a batch with tombstones or
markers that may go some day, the delete horizon (KIP-534). Records are copied as they stand if the
base timestamp does not change, which is the rule; otherwise their timestamp deltas are rewritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    BatchHeader,
    replace_records,
)
from protocol.records.compression import compress
from protocol.records.varints import encode_varint, read_varint, read_varlong

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.records.spans import RecordSpans


def rewrite_batch(
    header: BatchHeader,
    body: bytes,
    spans: RecordSpans,
    kept: Sequence[int],
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """The batch of `header` with the records whose indexes are in `kept`, at least one, in order.

    `body` is its records before compression, `spans` where they stand in it. With
    `delete_horizon_ms` the batch is marked with the time from which tombstones and markers may go;
    a mark that it has already stays.
    """
    starts = [spans.starts[index] for index in kept]
    timestamps = _timestamps(header, body, starts)
    attributes = header.attributes
    base_timestamp = timestamps[0]
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
        base_timestamp = delete_horizon_ms
    elif header.has_delete_horizon:
        base_timestamp = header.base_timestamp
    if base_timestamp == header.base_timestamp and not header.is_log_append_time:
        records = [
            body[start : spans.ends[index]] for start, index in zip(starts, kept, strict=True)
        ]
    else:
        records = [
            _stamped(body, start, timestamp - base_timestamp)
            for start, timestamp in zip(starts, timestamps, strict=True)
        ]
    rewritten = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max(timestamps),
        record_count=len(kept),
    )
    codec = header.codec
    content = b"".join(records)
    return replace_records(rewritten, compress(codec, content) if codec else content)


def empty_batch(header: BatchHeader) -> bytearray:
    """The batch of `header` without records: what it still says is offsets and sequence numbers."""
    emptied = header._replace(
        attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT),
        base_timestamp=NO_TIMESTAMP,
        record_count=0,
    )
    return replace_records(emptied, b"")


def _timestamps(header: BatchHeader, body: bytes, starts: list[int]) -> list[int]:
    """Timestamps of the records that begin at `starts`."""
    if header.is_log_append_time:
        return [header.max_timestamp] * len(starts)
    base = header.base_timestamp
    return [base + read_varlong(body, read_varint(body, start)[1] + 1)[0] for start in starts]


def _stamped(body: bytes, start: int, timestamp_delta: int) -> bytes:
    """The record at `start` with another timestamp delta."""
    length, at = read_varint(body, start)
    end = at + length
    _, rest = read_varlong(body, at + 1)
    delta = encode_varint(timestamp_delta)
    content = b"".join((body[at : at + 1], delta, body[rest:end]))
    return encode_varint(len(content)) + content
