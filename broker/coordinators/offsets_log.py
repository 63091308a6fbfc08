"""Records of a group shard as the batches that lie in `__consumer_offsets`, and back."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from coordinator import records
from protocol.errors import ApiError
from protocol.records.batch import parse_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.record import iterate_records
from protocol.wire import DecodeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coordinator.records import OffsetsRecord
    from protocol.wire import Buffer

logger = logging.getLogger(__name__)


def to_batch(changes: Sequence[OffsetsRecord], now_ms: int) -> bytearray:
    """One uncompressed batch, ready to be appended."""
    return build_batch(
        [
            NewRecord(now_ms, records.encode_key(change), records.encode_value(change))
            for change in changes
        ]
    )


def from_batch(batch: Buffer, name: str) -> Iterator[OffsetsRecord]:
    """The records of a batch that concern classic groups.

    A damaged record is left out with a warning that names it, as are kinds of record that belong to
    protocols this broker does not speak (without one): the other groups must come up.
    """
    if parse_header(batch).is_control:
        return
    try:
        for record in iterate_records(batch):
            if record.key is None:
                continue
            try:
                change = records.decode(record.key, record.value)
            except DecodeError as error:
                logger.warning("%s: record at offset %d skipped: %s", name, record.offset, error)
                continue
            if change is not None:
                yield change
    except ApiError as error:
        offset = parse_header(batch).base_offset
        logger.warning("%s: rest of the batch at offset %d skipped: %s", name, offset, error)
