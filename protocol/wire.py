r"""Primitives of the wire format that compiled codecs call, and their errors.

Varints are those of Protocol Buffers. In flexible versions a length is an unsigned varint of the
length plus one, and zero means null. Compiled decoders read the first byte of a length themselves,
and call here only when it is not all of it, which is rare.

**Text** is UTF-8 from clients that keep to it. A client may send any bytes as its id or as the name
of a group, and Apache Kafka answers: Java reads invalid UTF-8 as U+FFFD, one for each sequence that
is cut short or cannot be. Python replaces the same sequences but for surrogates, one sequence to
Java and two or three to Python:

    sent          ED A0 80      ED A0      ED A0 41      F0 9F 98      C0 80
    Java          U+FFFD        U+FFFD     U+FFFD A      U+FFFD        U+FFFD U+FFFD
    Python        3 x U+FFFD    2 x        2 x and A     U+FFFD        U+FFFD U+FFFD

The other way, half a surrogate pair has no bytes in UTF-8, and Java writes a question mark. No
client can send one, but a JSON document in ZooKeeper and a property file can hold it.

Sources: the Kafka protocol guide, KIP-482 (flexible versions, tagged fields).
"""

from __future__ import annotations

import re
import struct as structs
from collections.abc import Callable
from typing import Any, Final, Protocol
from uuid import UUID

from protocol.uuids import ZERO_UUID

CONTINUES = 0x80
"""Set in each byte of a varint but the last."""

MAX_UVARINT_SHIFT = 28
MAX_UVARINT = 0xFFFFFFFF
MAX_STRING_BYTES = 0x7FFF
INTERNED_UUIDS_LIMIT = 100_000
"""Limit of topic ids cached as UUID objects; when exceeded, the cache is emptied."""

MAX_TAGS = 1000
"""Limit of one section. No message has more than ten (unique and ascending by KIP-482)."""

MANY_LIMIT = 100
"""Lengths of arrays of numbers for which a function is kept."""

_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""The bytes of half a surrogate pair, or the first two; 0xED only ever begins a sequence."""
_NEVER_UTF_8: Final = b"\xff"

KNOWN_UUIDS: dict[bytes, UUID] = {ZERO_UUID.bytes: ZERO_UUID}
"""Cache of `intern_uuid`; decoders look here first."""

SHORT = tuple(structs.Struct(f"{size}s").unpack_from for size in range(CONTINUES - 1))
"""`SHORT[n](buffer, position)` reads n bytes, faster than slicing a memoryview; n < 127."""

ONE_BYTE = tuple(bytes([value]) for value in range(CONTINUES))
"""Varints that take one byte."""


class Unpackers(dict[int, Callable[[Any, int], tuple[Any, ...]]]):
    """Functions that read n numbers of one `struct` code: `Unpackers("i")[n](buffer, position)`.

    Kept for the n up to MANY_LIMIT, so that a peer cannot make us keep one for each n.
    """

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    def __missing__(self, count: int) -> Callable[[Any, int], tuple[Any, ...]]:
        function = structs.Struct(f">{count}{self._code}").unpack_from
        if count <= MANY_LIMIT:
            self[count] = function
        return function


class Packers(dict[int, Callable[..., bytes]]):
    """Functions that write n numbers of one `struct` code: `Packers("i")[n](*numbers)`."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    def __missing__(self, count: int) -> Callable[..., bytes]:
        function = structs.Struct(f">{count}{self._code}").pack
        if count <= MANY_LIMIT:
            self[count] = function
        return function


class DecodeError(ValueError):
    """Bytes that are not a valid message; the text names message, version and fault."""


class EncodeError(ValueError):
    """A message that has no bytes: a value is too large for its field."""


class SizedRegion(Protocol):
    """Bytes that stand elsewhere (a region of a file) and are sent where records go."""

    def __len__(self) -> int: ...


Buffer = bytes | bytearray | memoryview


def uvarint_tail(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Finish an unsigned varint whose `first` byte (at `position - 1`) had its high bit set.

    Returns the value and the position after it. At most five bytes, value below 2^32.
    """
    value = first & 0x7F
    shift = 7
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < CONTINUES:
            if value > MAX_UVARINT:
                raise DecodeError("varint does not fit in 32 bits")
            return value, position
        shift += 7
        if shift > MAX_UVARINT_SHIFT:
            raise DecodeError("varint is longer than 5 bytes")


def encode_uvarint(value: int) -> bytes:
    """Unsigned varint of `value` >= 0. Up to three bytes, which hold 2 MB, are written out."""
    if value < CONTINUES:
        return ONE_BYTE[value]
    if value < 1 << 14:
        return bytes((value & 0x7F | CONTINUES, value >> 7))
    if value < 1 << 21:
        return bytes((value & 0x7F | CONTINUES, value >> 7 & 0x7F | CONTINUES, value >> 14))
    out = bytearray()
    while value >= CONTINUES:
        out.append((value & 0x7F) | CONTINUES)
        value >>= 7
    out.append(value)
    return bytes(out)


def string_length(length: int) -> int:
    """Return the flexible length of a string; raises EncodeError if it is too long.

    A varint could hold more, but no client reads it: Apache's generated classes refuse it as well.
    """
    if length - 1 > MAX_STRING_BYTES:
        raise EncodeError(f"a string has {length - 1} bytes, of {MAX_STRING_BYTES} at most")
    return length


def long_length(buffer: Buffer, position: int, length: int) -> tuple[int, int]:
    """Finish a flexible length of which only the first byte was read, less one."""
    value, position = uvarint_tail(buffer, position, length + 1)
    return value - 1, position


def long_string(buffer: Buffer, position: int, size: int, name: str) -> tuple[str, int]:
    """The string `name` of `size` bytes at `position`; refuses sizes that are none."""
    stop = checked_stop(buffer, position, size, name)
    if size > MAX_STRING_BYTES:
        raise DecodeError(f"{name} has {size} bytes; a string has {MAX_STRING_BYTES} at most")
    return text_of_string(bytes(buffer[position:stop]), name), stop


def long_compact_string(buffer: Buffer, position: int, size: int, name: str) -> tuple[str, int]:
    """Like `long_string`, with a size of which only the first byte was read, less one."""
    if size >= 0:
        size, position = long_length(buffer, position, size)
    return long_string(buffer, position, size, name)


def checked_stop(buffer: Buffer, position: int, size: int, name: str) -> int:
    """Return the position at which `size` bytes at `position` end.

    Refuses negative sizes and those past the end.
    """
    if size < 0:
        raise DecodeError(f"{name} may not be null" if size == -1 else f"{name} has size {size}")
    stop = position + size
    if stop > len(buffer):
        raise DecodeError(f"{name} is longer than the message: {size} bytes")
    return stop


def refuse_count(count: int, name: str) -> DecodeError:
    """Return the error for an array `name` with this number of elements."""
    if count == -1:
        return DecodeError(f"{name} may not be null")
    return DecodeError(f"{name} cannot have {count} elements in a message of this size")


def read_tag(buffer: Buffer, position: int) -> tuple[int, int, int]:
    """Front of a tagged field: its tag, where its value begins and where it ends."""
    tag, position = uvarint(buffer, position)
    size, position = uvarint(buffer, position)
    return tag, position, checked_stop(buffer, position, size, "tagged field")


def skip_tags(buffer: Buffer, position: int, count: int) -> int:
    """Position after `count` tagged fields, none of which we know.

    `count` is the first byte of that number.
    """
    if count >= CONTINUES:
        count, position = many_tags(buffer, position, count)
    while count:
        count -= 1
        _tag, _start, position = read_tag(buffer, position)
    return position


def many_tags(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Finish the number of tagged fields, of which only the `first` byte was read."""
    count, position = uvarint_tail(buffer, position, first)
    if count > MAX_TAGS:
        raise DecodeError(f"{count} tagged fields; {MAX_TAGS} at most are read")
    return count, position


def uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """An unsigned varint and the position after it."""
    first = buffer[position]
    position += 1
    return (first, position) if first < CONTINUES else uvarint_tail(buffer, position, first)


def intern_uuid(raw: bytes) -> UUID:
    """UUID of 16 raw bytes: the same object for the same bytes, as making one takes a while."""
    found = KNOWN_UUIDS.get(raw)
    if found is None:
        if len(KNOWN_UUIDS) >= INTERNED_UUIDS_LIMIT:
            KNOWN_UUIDS.clear()
        found = KNOWN_UUIDS[raw] = UUID(bytes=raw)
    return found


def text_of_string(content: bytes, name: str) -> str:
    """Text of the string `name`, which a string of a response can hold as well.

    Raises DecodeError for bytes that are not UTF-8 if the U+FFFD in their place, of three bytes
    each, would exceed the limit of strings.
    """
    text = text_of(content)
    if len(text) * 3 > MAX_STRING_BYTES and (size := len(text.encode())) > MAX_STRING_BYTES:
        raise DecodeError(f"{name} is not UTF-8 and grows to {size} bytes as it is read")
    return text


def text_of(content: bytes) -> str:
    """Text of bytes that should be UTF-8; never fails."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return replaced(content)


def replaced(content: bytes) -> str:
    """Text of bytes that are not UTF-8, in time linear to their number."""
    return _SURROGATE.sub(_NEVER_UTF_8, content).decode(errors="replace")


def joined_pairs(text: str) -> str:
    """The same text with pairs of surrogates as the characters that they stand for."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def unpaired_replaced(text: str) -> bytes:
    """Bytes of text with surrogates in it: a question mark for each that is not in a pair."""
    return joined_pairs(text).encode(errors="replace")
