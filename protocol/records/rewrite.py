"""Rewrite a batch with only some of its records, as compaction does.

Offsets, sequence numbers, producer and codec stay, so that offsets keep their gaps and producer
state can be rebuilt from what is left. The bytes are those that Apache Kafka's cleaner writes: the
base timestamp becomes that of the first record that is left, or, in a batch with tombstones or
markers that may be removed later, the delete horizon (KIP-534). Records are copied as they stand if
the base timestamp does not change, which is the rule; otherwise their timestamp deltas are
rewritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from protocol.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    BatchHeader,
    replace_records,
)
from protocol.records.compression import compress
from protocol.records.varints import HIGH_BIT, encode_varint

if TYPE_CHECKING:
    from collections.abc import Iterable


class PlacedRecords(NamedTuple):
    """Some records of a batch, in order: where they begin and end, and their timestamp deltas."""

    starts: list[int]
    ends: list[int]
    timestamp_deltas: list[int]


def rewrite_batch(
    header: BatchHeader,
    octets: bytes,
    records: PlacedRecords,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """The batch of `header` with only those of its records that are given, at least one.

    `octets` are where they stand, not compressed. With `delete_horizon_ms` the batch is marked with
    the time from which tombstones and markers may go; a mark that it has already stays.
    """
    deltas = records.timestamp_deltas
    base, latest = header.base_timestamp, header.max_timestamp
    first = base + deltas[0]
    if header.is_log_append_time:
        first, deltas = latest, [latest - base] * len(deltas)
    attributes = header.attributes
    new_base = first
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
        new_base = delete_horizon_ms
    elif header.has_delete_horizon:
        new_base = base
    places = zip(records.starts, records.ends, strict=True)
    if new_base == base and not header.is_log_append_time:
        contents = [octets[start:end] for start, end in places]
    else:
        contents = _stamped(octets, places, [base - new_base + delta for delta in deltas])
    rewritten = header._replace(
        attributes=attributes,
        base_timestamp=new_base,
        max_timestamp=base + max(deltas),
        record_count=len(deltas),
    )
    codec = header.codec
    content = b"".join(contents)
    return replace_records(rewritten, compress(codec, content) if codec else content)


def empty_batch(header: BatchHeader) -> bytearray:
    """Return the batch of `header` without records, for its offsets and sequence numbers."""
    emptied = header._replace(
        attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT),
        base_timestamp=NO_TIMESTAMP,
        record_count=0,
    )
    return replace_records(emptied, b"")


def _stamped(
    octets: bytes, places: Iterable[tuple[int, int]], timestamp_deltas: Iterable[int]
) -> list[bytes]:
    """The records at `places`, in pieces, with other timestamp deltas."""
    pieces: list[bytes] = []
    for (start, end), delta in zip(places, timestamp_deltas, strict=True):
        at = _after_varint(octets, start)
        rest = _after_varint(octets, at + 1)
        stamp = encode_varint(delta)
        size = encode_varint(1 + len(stamp) + end - rest)
        pieces += (size, octets[at : at + 1], stamp, octets[rest:end])
    return pieces


def _after_varint(octets: bytes, position: int) -> int:
    while octets[position] >= HIGH_BIT:
        position += 1
    return position + 1
