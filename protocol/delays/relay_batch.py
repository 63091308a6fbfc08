"""Relay batches: the progress of a retry topic's partition in sending dead letters on, in its log.

A relay batch is a control batch of one record, which every client skips. Its leader appends one
before it sends dead letters on, and the next one after they have arrived:

    key      version 0 and type, two int16
    value    version (int16), producer id (int64), producer epoch (int16), sequence (int32),
             then two positions, arrived and sent, of two int64 each

The dead letters between the two positions are sent as one batch with this producer id and sequence.
A new leader that finds the relay batch sends the same batch again; if it had arrived already, it is
detected as a duplicate. So each dead letter arrives once, without a transaction.

The header has the delay bit and the relay bit, so that logs know the batch by it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.records.batch import HEADER_BYTES, RELAY_BIT, assign_attributes, parse_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.record import invalid, parse_record

if TYPE_CHECKING:
    from protocol.wire import Buffer

RELAYED: Final = 0x4446
_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hqhiqqqq")
_KEY_VERSION: Final = 0
_VERSION: Final = 1


class Position(NamedTuple):
    """Position of a dead letter; they are sent on in this order."""

    decided: int
    """Offset at which it was decided: its own or, in a transaction, that of the marker."""
    offset: int


NOTHING: Final = Position(-1, -1)
"""Position before all dead letters."""


class Relay(NamedTuple):
    """Contents of one relay batch."""

    producer_id: int
    producer_epoch: int
    sequence: int
    """Sequence of the first dead letter behind `arrived`."""
    arrived: Position
    sent: Position
    """The same as `arrived` when none are in flight."""


def build_relay(relay: Relay, now_ms: int) -> bytearray:
    """Build the relay batch of `relay`."""
    value = _VALUE.pack(_VERSION, *relay[:3], *relay.arrived, *relay.sent)
    record = NewRecord(now_ms, _KEY.pack(_KEY_VERSION, RELAYED), value)
    batch = build_batch([record], is_control=True, is_of_delays=True)
    assign_attributes(batch, 0, parse_header(batch).attributes | RELAY_BIT)
    return batch


def parse_relay(batch: Buffer) -> Relay:
    """Parse a relay batch. ApiError(INVALID_RECORD) for any other batch."""
    header = parse_header(batch)
    body = memoryview(batch)[HEADER_BYTES : header.size_in_bytes].tobytes()
    (_, _, key, value, _), _ = parse_record(body, 0)
    if key is None or len(key) != _KEY.size or _KEY.unpack(key)[1] != RELAYED:
        raise invalid("a relay batch has another key")
    if value is None or len(value) != _VALUE.size:
        raise invalid("a relay batch has a value of another size")
    version, producer_id, epoch, sequence, *places = _VALUE.unpack(value)
    if version != _VERSION:
        raise invalid(f"a relay batch of version {version}")
    return Relay(producer_id, epoch, sequence, Position(*places[:2]), Position(*places[2:]))
