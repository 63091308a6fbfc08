"""The records of many batches as columns of numpy, one element for each record.

Where a record begins is all that has to be known of it (`opened_batches` finds that out); its
fields are then read for all records at once, byte by byte of their varints:

    octets   |24 00 02 00 06 k k k ..|24 00 02 02 06 k k k ..|B0 01 00 04 04 84 01 k k ..
    starts    ^                       ^                       ^
    lengths  |18      |18      |88
    deltas   |0       |1       |2            to the base offset of each one's own batch
    keys     |3       |3       |66           their sizes; -1 is null

A varint of most records has one byte. Further bytes cost a round each, over all records, in which
those that have ended do not change. A record takes some 50 ns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from protocol.records.record import MIN_RECORD_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIELDS_BYTES: Final = 32
"""Maximum number of bytes before a key; also the padding after the last record."""

_HIGH_BIT: Final = 0x80
_LOW_BITS: Final = 0x7F
_MOST_BYTES: Final = {np.uint32: 5, np.uint64: 10}
"""A longer varint is refused, as in Apache Kafka."""
_NULL: Final = 1
"""The varint of length -1."""


class RecordColumns(NamedTuple):
    """Columns of equal length; positions are those in `octets`."""

    octets: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    timestamps: NDArray[np.int64]
    """Position of the timestamp delta."""
    offset_deltas: NDArray[np.int64]
    keys: NDArray[np.int64]
    """Position of the key."""
    key_sizes: NDArray[np.int64]
    """Size of the key in bytes; -1 for a null key."""
    is_null: NDArray[np.bool_]
    """True if the value is null: a tombstone, if the record has a key."""
    is_bad: NDArray[np.bool_] | None
    """Mask of the records with an impossible length or offset, if any: the rest of them is void."""


def read_columns(
    octets: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> RecordColumns:
    """The records at `starts`, each of which must lie in `octets`, and should end at `ends`.

    Values and headers are not looked at.
    """
    lengths, at, is_bad = _read(octets, starts, np.uint32)
    is_bad |= (lengths < MIN_RECORD_BYTES) | (at + lengths != ends)
    timestamps = at + 1
    at, is_endless = _skip(octets, timestamps)
    is_bad |= is_endless
    deltas, at, is_endless = _read(octets, at, np.uint32)
    is_bad |= is_endless | (deltas < 0)
    key_sizes, keys, is_endless = _read(octets, at, np.uint32)
    np.maximum(key_sizes, -1, out=key_sizes)
    key_ends = keys + np.maximum(key_sizes, 0)
    is_bad |= is_endless | (key_ends >= ends)
    has_bad = bool(is_bad.any())
    if has_bad:
        key_sizes[is_bad] = -1
        key_ends[is_bad] = 0
    return RecordColumns(
        octets,
        starts,
        ends,
        timestamps,
        deltas,
        keys,
        key_sizes,
        octets.take(key_ends) == _NULL,
        is_bad if has_bad else None,
    )


def timestamp_deltas(columns: RecordColumns) -> NDArray[np.int64]:
    """The timestamp delta of each record."""
    return _read(columns.octets, columns.timestamps, np.uint64)[0]


def _skip(
    octets: NDArray[np.uint8], at: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Ends of int64 varints, and a mask of those that do not end."""
    goes_on = octets.take(at) >= _HIGH_BIT
    at = at + 1
    taken = 1
    while taken < _MOST_BYTES[np.uint64] and goes_on.any():
        at += goes_on
        goes_on &= octets.take(at - 1) >= _HIGH_BIT
        taken += 1
    return at, goes_on


def _read(
    octets: NDArray[np.uint8], at: NDArray[np.int64], kind: type[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Varints of an int of as many bits as `kind`: their values, where they end, and which do not.

    Bits past the width of the type are dropped, as the Java reader's shifts drop them.
    """
    octet = octets.take(at)
    goes_on = octet >= _HIGH_BIT
    at = at + 1
    if not goes_on.any():
        return _SINGLE.take(octet), at, goes_on
    raw: NDArray[Any] = (octet & _LOW_BITS).astype(kind)
    taken = 1
    while taken < _MOST_BYTES[kind] and goes_on.any():
        octet = octets.take(at)
        at += goes_on
        low = octet & _LOW_BITS
        low *= goes_on
        raw |= low.astype(kind) << kind(7 * taken)
        goes_on &= octet >= _HIGH_BIT
        taken += 1
    return _decoded(raw).astype(np.int64), at, goes_on


def _decoded(raw: NDArray[Any]) -> NDArray[Any]:
    """Zig-zag numbers with their signs."""
    one = raw.dtype.type(1)
    values: NDArray[Any] = (raw >> one) ^ -(raw & one)
    return values.view(np.int32 if raw.dtype == np.uint32 else np.int64)


_SINGLE: Final = _decoded(np.arange(256, dtype=np.uint64))
"""Decoded value of each varint of one byte."""
