"""A batch as compaction leaves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.records.batch import parse_header
from protocol.records.record import record_bytes
from protocol.records.rewrite import empty_batch, rewrite_batch
from protocol.records.spans import record_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protocol.wire import Buffer


def rewritten(
    batch: Buffer, kept: Sequence[int], delete_horizon_ms: int | None = None
) -> bytearray:
    """The batch with those of its records whose indexes are `kept`, possibly none."""
    header = parse_header(batch)
    if not kept:
        return empty_batch(header)
    body = bytes(record_bytes(batch, header))
    return rewrite_batch(header, body, record_spans(body, header), kept, delete_horizon_ms)
