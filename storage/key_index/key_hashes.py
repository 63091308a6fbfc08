"""Indexed parts of a record, and their hashes.

Both hashes are CRC-32: it takes less than 0.1 us, and is the same in every process. Keys chosen to
collide cost a look-up some reading, and never give a wrong result. The hash of an id starts from
another value, so that a key is not taken for an id of the same bytes.

If all records of a batch have the same layout, as they do if values have one size, keys are cut out
at equal distances; otherwise records are followed one by one. If one of them has headers, ids are
found by the name of their header, anywhere in the batch: a match within a value, or at the end of
another name, is a superfluous entry, which is detected when the record is read.
"""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING, Final
from zlib import crc32

from protocol.records.record import invalid
from protocol.records.varints import read_varint

if TYPE_CHECKING:
    from collections.abc import Iterable

ID_HEADER: Final = "message-id"
_ID_NAME: Final = ID_HEADER.encode()
_ID_SEED: Final = 0x9E3779B9
_FEW_RECORDS: Final = 4
"""Number of records from which it pays to check whether their layout is the same."""
_HIGH_BIT: Final = 0x80
_LOW_BITS: Final = 0x7F
_ODD_BYTES: Final = bytes(range(1, 256, 2))
_HIGH_BYTES: Final = bytes(range(_HIGH_BIT, 256))


def key_hash(key: bytes) -> int:
    """32 bits of a record's key."""
    return crc32(key)


def id_hash(message_id: bytes) -> int:
    """32-bit hash of a record's header `message-id`."""
    return crc32(message_id, _ID_SEED)


class Collection:
    """Keys and ids of the records of a few batches."""

    __slots__ = ("_ids", "_keys", "is_ascending")

    def __init__(self) -> None:
        self._keys: list[bytes] = []
        self._ids: list[bytes] = []
        self.is_ascending = True
        """No record was older than the first of its batch."""

    def take_hashes(self) -> Iterable[int]:
        """Return all hashes, each once, and start over."""
        keys, ids = set(self._keys), set(self._ids)
        self._keys.clear()
        self._ids.clear()
        self.is_ascending = True
        return chain(map(crc32, keys), map(crc32, ids, repeat(_ID_SEED)))

    def add(self, body: bytes, start: int, end: int, count: int) -> None:
        """Add the `count` records that fill `body` from `start` to `end`.

        Raises ApiError(INVALID_RECORD) if they cannot.
        """
        try:
            has_headers = self._add_alike(body, start, end, count)
            if has_headers is None:
                has_headers = self._add_singly(body, start, end, count)
            if has_headers:
                self._add_ids(body, start, end)
        except IndexError:
            raise invalid(f"{count} records do not end at byte {end}") from None

    def _add_alike(self, body: bytes, start: int, end: int, count: int) -> bool | None:
        """Add the keys if all records have their fields in the same places; None if not.

        Returns whether there are headers. Lengths must be the same bytes; of the deltas, each byte
        must be the last of its number or not, as in the first record.
        """
        if count < _FEW_RECORDS or (end - start) % count:
            return None
        stride = (end - start) // count
        length, after_length = read_varint(body, start)
        timestamp = after_length + 1
        offset = _after_number(body, timestamp)
        key_size = _after_number(body, offset)
        size, key = read_varint(body, key_size)
        value_size = key + max(size, 0)
        value_length, value = read_varint(body, value_size)
        headers = value + max(value_length, 0)
        if not headers < after_length + length == start + stride:
            return None
        for at in (*range(start, after_length), *range(key_size, key), *range(value_size, value)):
            column = body[at:end:stride]
            if column.count(column[:1]) != count:
                return None
        for at in range(timestamp, key_size):
            column = body[at:end:stride]
            is_last = body[at] < _HIGH_BIT
            if not (column.isascii() if is_last else not column.translate(None, _HIGH_BYTES)):
                return None
        firsts = body[timestamp:end:stride]
        self.is_ascending = self.is_ascending and len(firsts.translate(None, _ODD_BYTES)) == count
        if size >= 0:
            self._keys += [body[at : at + size] for at in range(key, end, stride)]
        return body[headers:end:stride].count(0) != count

    def _add_singly(  # noqa: C901, PLR0915 - no call for each record, as there are so many
        self, body: bytes, at: int, end: int, count: int
    ) -> bool:
        """Follow the records; returns whether one has headers."""
        add_key = self._keys.append
        signs = header_counts = 0
        for _ in repeat(None, count):
            byte = body[at]
            if byte < _HIGH_BIT:
                following = at + 1 + (byte >> 1)
                at += 2  # the length, and the attributes
            elif (second := body[at + 1]) < _HIGH_BIT:
                following = at + 2 + ((byte & _LOW_BITS | second << 7) >> 1)
                at += 3
            else:
                length, at = read_varint(body, at)
                following = at + length
                at += 1
            byte = body[at]  # the timestamp delta, whose lowest bit is its sign
            signs |= byte
            while byte >= _HIGH_BIT:
                at += 1
                byte = body[at]
            at += 1
            while body[at] >= _HIGH_BIT:  # the offset delta
                at += 1
            size = body[at + 1]
            at += 2
            if size & 1 == 0 and size < _HIGH_BIT:
                start, at = at, at + (size >> 1)
                add_key(body[start:at])
            elif size != 1:
                size, start = read_varint(body, at - 1)
                at = start + max(size, 0)
                add_key(body[start:at])
            byte = body[at]
            if byte < _HIGH_BIT:
                at += 1 + (byte >> 1)
            elif (second := body[at + 1]) < _HIGH_BIT:
                at += 2 + ((byte & _LOW_BITS | second << 7) >> 1)
            else:
                size, at = read_varint(body, at)
                at += max(size, 0)
            header_counts |= body[at]
            at = following
        self.is_ascending = self.is_ascending and not signs & 1
        if at != end:
            raise invalid(f"{count} records end at byte {at}, not {end}")
        return header_counts != 0

    def _add_ids(self, body: bytes, at: int, end: int) -> None:
        while (found := body.find(_ID_NAME, at, end)) >= 0:
            at = found + len(_ID_NAME)
            if at < end:
                size, start = read_varint(body, at)
                if 0 <= size <= end - start:
                    self._ids.append(body[start : start + size])


def _after_number(body: bytes, position: int) -> int:
    while body[position] >= _HIGH_BIT:
        position += 1
    return position + 1
