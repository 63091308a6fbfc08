"""Compressed streams of all codecs, drawn: each deviates from an ordinary one in some respects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from protocol.records.builder import NewRecord, encode_record
from protocol.records.compression import Codec
from tests.protocol.records.damage import holding, signed
from tests.support.compressed_streams import gzip_members, lz4_frames, snappy_streams, zstd_frames

if TYPE_CHECKING:
    import random

KINDS: Final[dict[Codec, type[Any]]] = {
    Codec.GZIP: gzip_members.GzipMember,
    Codec.SNAPPY: snappy_streams.SnappyStream,
    Codec.LZ4: lz4_frames.Lz4Frame,
    Codec.ZSTD: zstd_frames.ZstdFrame,
}
VARIANTS: Final = {
    Codec.GZIP: gzip_members.VARIANTS,
    Codec.SNAPPY: snappy_streams.VARIANTS,
    Codec.LZ4: lz4_frames.VARIANTS,
    Codec.ZSTD: zstd_frames.VARIANTS,
}
MOST_DEVIATIONS: Final = 3
MOST_RECORDS: Final = 40


class DrawnBatch(NamedTuple):
    """A batch, and what a consumer should see of it."""

    name: str
    """The codec and all deviations."""
    octets: bytes
    values: list[bytes]


def draw_batch(draw: random.Random, codec: Codec, names: list[str], now_ms: int) -> DrawnBatch:
    """Values that repeat themselves or do not, in a stream with the deviations of these names."""
    fields: dict[str, Any] = {}
    for name in names:
        fields |= VARIANTS[codec][name]
    count, size = draw.randint(1, MOST_RECORDS), draw.choice((1, 50, 1000, 5000))
    values = [
        draw.randbytes(size) if draw.random() < 0.3 else draw.randbytes(2) * (size // 2 + 1)
        for _ in range(count)
    ]
    body = b"".join(
        encode_record(NewRecord(now_ms, None, value), index, now_ms)
        for index, value in enumerate(values)
    )
    batch = bytearray(holding(KINDS[codec](**fields).wrap(body), count, codec))
    for position in (27, 35):  # the first and the latest timestamp
        batch[position : position + 8] = now_ms.to_bytes(8, "big")
    return DrawnBatch(f"{codec.name}: {', '.join(names)}", signed(batch), values)


def draw_batches(draw: random.Random, now_ms: int) -> list[DrawnBatch]:
    """Draw a batch for each deviation alone, and as many with several at once."""
    batches = []
    for codec, variants in VARIANTS.items():
        for name in variants:
            batches.append(draw_batch(draw, codec, [name], now_ms))
            several = draw.sample(list(variants), draw.randint(2, MOST_DEVIATIONS))
            batches.append(draw_batch(draw, codec, several, now_ms))
    draw.shuffle(batches)
    return batches
