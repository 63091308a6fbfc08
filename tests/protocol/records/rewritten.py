"""A batch as compaction leaves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.records.batch import parse_header
from protocol.records.record import record_bytes
from protocol.records.rewrite import PlacedRecords, empty_batch, rewrite_batch
from protocol.records.spans import record_spans
from protocol.records.varints import read_varint, read_varlong

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.records.batch import BatchHeader
    from protocol.wire import Buffer


def rewritten(
    batch: Buffer, kept: Sequence[int], delete_horizon_ms: int | None = None
) -> bytearray:
    """The batch with those of its records whose indexes are `kept`, possibly none."""
    header = parse_header(batch)
    if not kept:
        return empty_batch(header)
    body = bytes(record_bytes(batch, header))
    return rewrite_batch(header, body, placed_records(body, header, kept), delete_horizon_ms)


def placed_records(body: bytes, header: BatchHeader, kept: Sequence[int]) -> PlacedRecords:
    """Return the places in a body of the records whose indexes are `kept`."""
    spans = record_spans(body, header)
    starts = [spans.starts[index] for index in kept]
    ends = [spans.ends[index] for index in kept]
    deltas = [read_varlong(body, read_varint(body, start)[1] + 1)[0] for start in starts]
    return PlacedRecords(starts, ends, deltas)
