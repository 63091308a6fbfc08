"""Batches that a client should not send, each with the code that answers it.

`KAFKAS` are answered as Apache Kafka 4.3.1 answered them when it was asked; `OURS` differ from it
on purpose (docs/decisions/0009-record-validation.md says why).
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final

import cramjam

from protocol.errors import ErrorCode
from protocol.records.batch import CRC_POSITION, HEADER_BYTES, compute_crc
from protocol.records.builder import NewRecord, build_batch, encode_record
from protocol.records.compression import Codec, compress

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW: Final = 1_700_000_000_000

Case = tuple[str, bytes, ErrorCode]


def records(count: int = 3, key: bytes | None = None, size: int = 10) -> list[NewRecord]:
    """Ordinary records, a millisecond apart."""
    return [NewRecord(NOW + i, key, b"v" * size) for i in range(count)]


GOOD: Final = bytes(build_batch(records()))
CHAIN: Final = GOOD[HEADER_BYTES:]


def signed(batch: bytes | bytearray) -> bytes:
    """The batch with the checksum that fits it."""
    batch = bytearray(batch)
    struct.pack_into(">I", batch, CRC_POSITION, compute_crc(batch, 0, len(batch)))
    return bytes(batch)


def patched(format_: str, position: int, value: int, *, batch: bytes = GOOD) -> bytes:
    """A good batch with one field changed, and its checksum true again."""
    copy = bytearray(batch)
    struct.pack_into(format_, copy, position, value)
    return signed(copy)


def holding(body: bytes, count: int, codec: int = 0) -> bytes:
    """A batch that says of itself that `body` is `count` records."""
    batch = bytearray(GOOD[:HEADER_BYTES]) + body
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">h", batch, 21, codec)
    struct.pack_into(">i", batch, 23, count - 1)
    struct.pack_into(">i", batch, 57, count)
    return signed(batch)


def counted(count: int, last_offset_delta: int) -> bytes:
    """A good batch of three records with other counts in its header."""
    return patched(">i", 23, last_offset_delta, batch=patched(">i", 57, count))


def old_message(magic: int) -> bytes:
    """A message of format 0 or 1."""
    time = struct.pack(">q", NOW) if magic else b""
    content = struct.pack(">bb", magic, 0) + time + struct.pack(">i", -1) + struct.pack(">i", 0)
    content = struct.pack(">I", zlib.crc32(content)) + content
    return struct.pack(">qi", 0, len(content)) + content


def unsigned(format_: str, position: int, value: int) -> bytes:
    """A good batch with one field changed outside or against its checksum."""
    copy = bytearray(GOOD)
    struct.pack_into(format_, copy, position, value)
    return bytes(copy)


def _kafkas() -> Iterator[Case]:
    invalid, corrupt = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE
    first = encode_record(records()[0], 0, NOW)
    yield "nothing", b"", invalid
    yield from ((f"cut to {n} bytes", GOOD[:n], invalid) for n in (1, 10, 16, 17, 30, 60))
    yield "last byte missing", GOOD[:-1], invalid
    yield from ((f"length {n}", unsigned(">i", 8, n), corrupt) for n in (-(2**31), -1, 0, 10, 48))
    yield "length of the header only", unsigned(">i", 8, 49), corrupt
    yield "wrong checksum", GOOD[:-1] + b"\x01", corrupt
    yield "two batches", GOOD + GOOD, invalid
    yield from ((f"format {n}", old_message(n), invalid) for n in (0, 1))
    yield from ((f"format {n}", patched(">b", 16, n), corrupt) for n in (3, -1))
    yield "base offset", patched(">q", 0, 77), invalid
    yield "last offset delta + 1", patched(">i", 23, 3), invalid
    yield "last offset delta -1", patched(">i", 23, -1), invalid
    yield "no records", counted(0, -1), invalid
    yield "count 0", counted(0, 2), invalid
    yield "count -1", counted(-1, 2), invalid
    yield "one record more than counted", counted(2, 1), invalid
    yield "one record less than counted", counted(4, 3), invalid
    yield "two thousand million records", counted(2**31 - 1, 2**31 - 2), invalid
    yield "control batch", bytes(build_batch(records(1), is_control=True)), invalid
    for sequence in (-1, -5):
        batch = build_batch(records(), producer_id=5, producer_epoch=0, base_sequence=sequence)
        yield f"sequence {sequence}", bytes(batch), invalid
    yield "bytes after the records", holding(CHAIN + b"\0\0", 3), invalid
    yield "records cut", holding(CHAIN[:-2], 3), invalid
    yield "record of length -1", holding(b"\x01" + CHAIN[1:], 3), invalid
    yield "record of length 0", holding(b"\0" + CHAIN, 4), invalid
    yield "fields longer than the record", holding(b"\x12" + first[1:10], 1), invalid
    yield "key longer than the record", holding(first[:4] + b"\x7e" + first[5:], 1), invalid
    yield "header count -1", holding(first[:-1] + b"\x01", 1), invalid
    yield "header count 5", holding(first[:-1] + b"\x0a", 1), invalid
    yield (
        "larger than allowed",
        bytes(build_batch(records(1, size=1_100_000))),
        (ErrorCode.MESSAGE_TOO_LARGE),
    )
    for codec in Codec:
        if codec is not Codec.NONE:
            yield from _kafkas_compressed(codec)
    halves = compress(Codec.LZ4, CHAIN[:20]) + compress(Codec.LZ4, CHAIN[20:])
    yield "lz4 in two frames", holding(halves, 3, Codec.LZ4), invalid


def _kafkas_compressed(codec: Codec) -> Iterator[Case]:
    invalid = ErrorCode.INVALID_RECORD
    whole = compress(codec, CHAIN)
    yield f"{codec.name}: more than counted", holding(whole, 2, codec), invalid
    yield f"{codec.name}: less than counted", holding(whole, 4, codec), invalid
    yield f"{codec.name}: cut", holding(compress(codec, CHAIN[:-2]), 3, codec), invalid
    yield f"{codec.name}: more", holding(compress(codec, CHAIN + b"\0\0"), 3, codec), invalid


def _ours() -> Iterator[Case]:
    invalid = ErrorCode.INVALID_RECORD
    unsupported = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    first = encode_record(records()[0], 1, NOW)
    yield from ((f"{n} bytes more", GOOD + bytes(n), invalid) for n in (1, 3, 30))
    yield "a second batch, cut off", GOOD + GOOD[:40], invalid
    yield from ((f"codec {n}", patched(">h", 21, n), unsupported) for n in (5, 6, 7))
    yield "log append time", patched(">h", 21, 8), ErrorCode.INVALID_TIMESTAMP
    yield "delete horizon", patched(">h", 21, 0x40), invalid
    yield "length that does not end", holding(b"\xff" * 12 + CHAIN, 3), invalid
    yield "offset delta 1 first", holding(first, 1), invalid
    yield "offset deltas 1, 0", holding(first + encode_record(records()[0], 0, NOW), 2), invalid
    for codec in Codec:
        if codec is Codec.NONE:
            continue
        whole = compress(codec, CHAIN)
        yield f"{codec.name}: stream cut", holding(whole[:-4], 3, codec), invalid
        yield f"{codec.name}: no stream", holding(b"\x55" * 50, 3, codec), invalid
        yield f"{codec.name}: empty", holding(b"", 3, codec), invalid
        yield f"{codec.name}: bytes after it", holding(whole + b"junk!", 3, codec), invalid
        negative = compress(codec, b"\x01" + CHAIN[1:])
        yield f"{codec.name}: length -1", holding(negative, 3, codec), invalid
    linked = bytes(cramjam.lz4.compress(CHAIN))
    yield "lz4 with linked blocks", holding(linked, 3, Codec.LZ4), invalid
    for codec in (Codec.GZIP, Codec.LZ4):
        whole = compress(codec, CHAIN) + compress(codec, b"")
        yield f"{codec.name}: an empty one after it", holding(whole, 3, codec), invalid
    framed = bytes(cramjam.snappy.compress(CHAIN))
    yield "snappy as framed by others", holding(framed, 3, Codec.SNAPPY), invalid
    zeros = encode_record(NewRecord(NOW, None, bytes(70_000_000)), 0, NOW)
    bomb = holding(compress(Codec.ZSTD, zeros), 1, Codec.ZSTD)
    yield "more than it may decompress to", bomb, ErrorCode.MESSAGE_TOO_LARGE


KAFKAS: Final = list(_kafkas())
OURS: Final = list(_ours())
