"""Codecs: round trips, what Java's codecs accept, and output that never passes its limit."""

from __future__ import annotations

import random
import tracemalloc

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ApiError, ErrorCode
from protocol.records.compression import LARGE_BYTES, Codec, compress, decompress

COMPRESSING = [codec for codec in Codec if codec is not Codec.NONE]
XERIAL = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"

REFUSALS_OR_FITS = {ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.NONE}


def _outcome(codec: Codec, data: bytes | bytearray, limit: int) -> ErrorCode | None:
    """NONE when `data` decompresses to at most `limit` bytes, None when it does to more."""
    try:
        return ErrorCode.NONE if len(decompress(codec, data, limit)) <= limit else None
    except ApiError as error:
        return error.code


@pytest.mark.parametrize("codec", Codec)
@given(data=st.binary(max_size=3000), repeat=st.integers(0, 100))
def test_compressed_bytes_are_decompressed_unchanged(
    codec: Codec, data: bytes, repeat: int
) -> None:
    data *= repeat
    assert decompress(codec, memoryview(compress(codec, data)), len(data)) == data


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("size", [LARGE_BYTES - 1, LARGE_BYTES, 5 * LARGE_BYTES + 7])
def test_large_contents_are_decompressed_unchanged(codec: Codec, size: int) -> None:
    data = random.Random(size).randbytes(1000) * (size // 1000 + 1)
    assert decompress(codec, compress(codec, data[:size])) == data[:size]


@pytest.mark.parametrize("codec", COMPRESSING)
def test_the_limit_is_exact(codec: Codec) -> None:
    compressed = compress(codec, bytes(500_000))
    assert len(decompress(codec, compressed, 500_000)) == 500_000
    with pytest.raises(ApiError, match="more than 499999 bytes") as caught:
        decompress(codec, compressed, 499_999)
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_bomb_takes_no_more_memory_than_the_limit(codec: Codec) -> None:
    bomb = compress(codec, bytes(50_000_000))
    limit = 1_000_000
    tracemalloc.start()
    try:
        with pytest.raises(ApiError) as caught:
            decompress(codec, bomb, limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
    # Buffers of two tries may be alive at once; snappy adds up blocks that it copies once.
    assert peak < 3 * limit


@pytest.mark.parametrize("codec", COMPRESSING)
@given(data=st.binary(max_size=300), prefix=st.sampled_from([b"", XERIAL, b"\x1f\x8b\x08"]))
def test_random_bytes_are_refused_or_decompressed(codec: Codec, data: bytes, prefix: bytes) -> None:
    assert _outcome(codec, prefix + data, 10_000) in REFUSALS_OR_FITS


@pytest.mark.parametrize("codec", COMPRESSING)
@given(position=st.integers(0, 10_000), flip=st.integers(1, 255), cut=st.integers(0, 50))
def test_damage_is_refused_or_unnoticed(codec: Codec, position: int, flip: int, cut: int) -> None:
    compressed = bytearray(compress(codec, bytes(range(256)) * 8))
    compressed[position % len(compressed)] ^= flip
    assert _outcome(codec, compressed[: len(compressed) - cut], 100_000) in REFUSALS_OR_FITS


def test_gzip_with_a_wrong_size_is_refused() -> None:
    compressed = bytearray(compress(Codec.GZIP, bytes(300_000)))
    compressed[-4:] = (5).to_bytes(4, "little")
    with pytest.raises(ApiError, match="GZIP"):
        decompress(Codec.GZIP, compressed)
    compressed[-4:] = b"\xff" * 4
    with pytest.raises(ApiError, match="GZIP"):
        decompress(Codec.GZIP, compressed, 1_000_000)


def test_snappy_is_framed_as_java_frames_it() -> None:
    data = bytes(range(256)) * 300
    compressed = compress(Codec.SNAPPY, data)
    assert compressed.startswith(XERIAL)
    length = int.from_bytes(compressed[16:20], "big")
    assert bytes(cramjam.snappy.decompress_raw(compressed[20 : 20 + length])) == data[: 32 * 1024]


def test_raw_snappy_and_joined_streams_are_read() -> None:
    raw = bytes(cramjam.snappy.compress_raw(b"hello" * 100))
    assert decompress(Codec.SNAPPY, raw) == b"hello" * 100
    joined = compress(Codec.SNAPPY, b"one ") + compress(Codec.SNAPPY, b"two")
    assert decompress(Codec.SNAPPY, joined) == b"one two"


@pytest.mark.parametrize(
    "blocks", [b"\0", b"\0\0\0\x09abc", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0"]
)
def test_damaged_snappy_blocks_are_refused(blocks: bytes) -> None:
    with pytest.raises(ApiError, match="SNAPPY"):
        decompress(Codec.SNAPPY, XERIAL + blocks)


def test_snappy_block_that_claims_gigabytes_allocates_nothing() -> None:
    with pytest.raises(ApiError, match="more than 1000 bytes"):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(20), 1000)


def test_lz4_is_written_in_independent_blocks() -> None:
    assert compress(Codec.LZ4, b"x" * 200_000)[4] & 0x20


def test_concatenated_members_and_frames_are_one_stream() -> None:
    for codec in (Codec.GZIP, Codec.LZ4, Codec.ZSTD):
        assert decompress(codec, compress(codec, b"one ") + compress(codec, b"two")) == b"one two"
