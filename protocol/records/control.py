"""Control batches: the marker that ends a transaction, one record in a batch of its own.

The key is version and type, two int16. The value of an end-transaction marker is its version
(int16) and the epoch of the transaction coordinator that wrote it (int32), which fences older ones.
"""

from __future__ import annotations

import enum
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.records.builder import NewRecord, build_batch
from protocol.records.record import invalid, iterate_records

if TYPE_CHECKING:
    from protocol.wire import Buffer

_KEY: Final = struct.Struct(">hh")
_END_TRANSACTION: Final = struct.Struct(">hi")
_VERSION: Final = 0


class ControlType(enum.IntEnum):
    """Type of a control record; Apache's metadata log has more, which partitions never see."""

    ABORT = 0
    COMMIT = 1


class EndTransactionMarker(NamedTuple):
    """The end of a transaction of one producer on one partition."""

    type: ControlType
    coordinator_epoch: int


def build_marker(
    marker: EndTransactionMarker, *, producer_id: int, producer_epoch: int, now_ms: int
) -> bytearray:
    """The control batch that a partition leader appends when a transaction ends."""
    record = NewRecord(
        now_ms,
        _KEY.pack(_VERSION, marker.type),
        _END_TRANSACTION.pack(_VERSION, marker.coordinator_epoch),
    )
    return build_batch(
        [record],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def parse_marker(batch: Buffer) -> EndTransactionMarker | None:
    """The marker in a control batch; None when its type is one we do not know.

    None too when compaction left no record in it. Raises ApiError(INVALID_RECORD) when it cannot be
    read as a control batch.
    """
    for record in iterate_records(batch):
        if record.key is None or len(record.key) < _KEY.size:
            raise invalid("a control record has no version and type in its key")
        _, number = _KEY.unpack_from(record.key)
        if number not in (ControlType.ABORT, ControlType.COMMIT):
            return None
        if record.value is None or len(record.value) < _END_TRANSACTION.size:
            raise invalid("an end-transaction marker has no coordinator epoch")
        _, coordinator_epoch = _END_TRANSACTION.unpack_from(record.value)
        return EndTransactionMarker(ControlType(number), coordinator_epoch)
    return None
