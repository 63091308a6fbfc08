"""Records that are due, made of what a client would see of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.delays.stored_record import DueRecord, stored_record
from protocol.records.builder import NewRecord, encode_record

if TYPE_CHECKING:
    from protocol.records.record import Record


def due_record(due_ms: int, record: Record) -> DueRecord:
    """The record as it stands in its waiting batch, due at `due_ms`."""
    new = NewRecord(record.timestamp, record.key, record.value, record.headers)
    stored = stored_record(encode_record(new, 0, 0), 0, 0, record.offset)
    return DueRecord(due_ms, stored)
