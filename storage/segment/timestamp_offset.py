"""A record found by its timestamp: what ListOffsets answers with."""

from __future__ import annotations

from typing import NamedTuple


class TimestampOffset(NamedTuple):
    """Timestamp, offset and leader epoch of a record."""

    timestamp: int
    offset: int
    leader_epoch: int
    """Of the batch that holds it."""
