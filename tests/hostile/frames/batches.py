"""Record batches as producers should not send them, beside some that they may."""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Final

from protocol.records.batch import CRC_POSITION, HEADER_BYTES, TRANSACTIONAL_BIT, compute_crc
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from tests.protocol.records import damage

if TYPE_CHECKING:
    from tests.hostile.frames.draw import Draw

ATTRIBUTES_POSITION: Final = 21
PRODUCER_POSITION: Final = 43
SMALL_BYTES = 4096
LARGE_BYTES = 300_000
EXTREMES = (-(2**31), -1, 0, 1, 7, 2**31 - 1)
INT32_POSITIONS = (8, 12, 23, 53, 57)
INT64_POSITIONS = (0, 27, 35, 43)

_PRODUCER = struct.Struct(">qhi")


def draw_batch(draw: Draw) -> bytes | None:
    """The bytes that stand in a Produce request where records belong."""
    if draw.happens(0.03):
        return draw.pick((None, b"", b"\0" * 100))
    batch = draw.pick(_sound()) if draw.happens(0.6) else draw.pick(_refused())
    if draw.happens(0.05):
        batch = draw.pick(_large())
    if draw.happens(0.4) and len(batch) > HEADER_BYTES:
        batch = _with_producer(draw, batch)
    if draw.happens(0.2) and len(batch) > HEADER_BYTES:
        batch = _damaged(draw, batch)
    if draw.happens(0.05):
        batch += draw.pick(_sound())
    return batch


def _with_producer(draw: Draw, batch: bytes) -> bytes:
    """The batch of an idempotent or transactional producer, its checksum true again."""
    is_transactional = draw.happens(0.5)
    producer_id, epoch = draw.producer(draw.transaction if is_transactional else "")
    if draw.happens(0.1):
        producer_id, epoch = draw.below(50), draw.below(3)
    copy = bytearray(batch)
    _PRODUCER.pack_into(copy, PRODUCER_POSITION, producer_id, epoch, draw.pick((0, 0, 3, 6, 1000)))
    if is_transactional:
        copy[ATTRIBUTES_POSITION + 1] |= TRANSACTIONAL_BIT
    return _signed(copy)


def _damaged(draw: Draw, batch: bytes) -> bytes:
    """One field of the header, or some bytes anywhere, are others; the checksum may not tell."""
    copy = bytearray(batch)
    if draw.happens(0.5):
        value = draw.pick(EXTREMES)
        if draw.happens(0.5):
            struct.pack_into(">i", copy, draw.pick(INT32_POSITIONS), value)
        else:
            struct.pack_into(">q", copy, draw.pick(INT64_POSITIONS), value << 31)
    else:
        for _ in range(1 + draw.below(4)):
            copy[draw.below(len(copy))] = draw.below(256)
    return _signed(copy) if draw.happens(0.7) else bytes(copy)


def _signed(batch: bytearray) -> bytes:
    struct.pack_into(">I", batch, CRC_POSITION, compute_crc(batch, 0, len(batch)))
    return bytes(batch)


def _records(count: int, size: int) -> list[NewRecord]:
    headers = (("name", b"value"), ("null", None))
    return [
        NewRecord(damage.NOW + number, b"key-%d" % number, bytes([number & 0xFF]) * size, headers)
        for number in range(count)
    ]


@cache
def _sound() -> list[bytes]:
    sizes = ((1, 10), (3, 100), (20, 50), (2, 2000))
    return [
        bytes(build_batch(_records(*size), codec=codec)) for codec in Codec for size in sizes
    ] + [damage.GOOD]


@cache
def _refused() -> list[bytes]:
    cases = [batch for _, batch, _ in [*damage.KAFKAS, *damage.OURS]]
    return [batch for batch in cases if len(batch) <= SMALL_BYTES]


@cache
def _large() -> list[bytes]:
    """Large ones, and small ones that are large once they are decompressed."""
    made = [bytes(build_batch(_records(1, LARGE_BYTES), codec=codec)) for codec in Codec]
    made += [bytes(build_batch(_records(3000, 20), codec=codec)) for codec in Codec]
    bombs = [bytes(build_batch(_records(1, 8_000_000), codec=codec)) for codec in (Codec.ZSTD,)]
    return made + bombs


def bulky_batch() -> bytes:
    """A batch close to the largest that a topic takes by default."""
    return bytes(build_batch(_records(9, 100_000)))
