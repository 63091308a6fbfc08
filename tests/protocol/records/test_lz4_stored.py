"""Frames of stored blocks are taken apart as the library does it; all others are left to it."""

from __future__ import annotations

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ApiError
from protocol.records.compression import Codec, compress, decompress
from protocol.records.lz4_stored import (
    LARGEST_BLOCKS,
    MOST_BLOCKS,
    STORED_BIT,
    stored_blocks,
)

HEADERS = st.sampled_from(list(LARGEST_BLOCKS))
JAVAS_HEADER = next(iter(LARGEST_BLOCKS))


def frame(header: bytes, blocks: list[bytes]) -> bytes:
    parts = [(len(block) | STORED_BIT).to_bytes(4, "little") + block for block in blocks]
    return header + b"".join(parts) + bytes(4)


@given(header=HEADERS, blocks=st.lists(st.binary(min_size=1, max_size=300), max_size=4))
def test_stored_blocks_are_read_as_the_library_reads_them(
    header: bytes, blocks: list[bytes]
) -> None:
    whole = frame(header, blocks)
    assert stored_blocks(memoryview(whole)) == b"".join(blocks)
    assert bytes(cramjam.lz4.decompress(whole)) == b"".join(blocks)


@given(blocks=st.lists(st.binary(min_size=1, max_size=30), max_size=3), data=st.data())
def test_damaged_blocks_are_read_as_the_library_does_or_left_to_it(
    blocks: list[bytes], data: st.DataObject
) -> None:
    whole = bytearray(frame(JAVAS_HEADER, blocks))
    whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    del whole[data.draw(st.integers(0, len(whole))) :]
    found = stored_blocks(memoryview(whole))
    if found is not None:
        assert bytes(cramjam.lz4.decompress(bytes(whole))) == found


def test_block_larger_than_its_frame_allows_is_left_to_the_library() -> None:
    assert stored_blocks(memoryview(frame(JAVAS_HEADER, [bytes(64 << 10)]))) == bytes(64 << 10)
    assert stored_blocks(memoryview(frame(JAVAS_HEADER, [bytes((64 << 10) + 1)]))) is None


def test_compressed_blocks_are_left_to_the_library() -> None:
    assert stored_blocks(memoryview(compress(Codec.LZ4, bytes(1000)))) is None


def test_stored_blocks_respect_the_size_limit() -> None:
    whole = frame(JAVAS_HEADER, [bytes(1000)])
    assert decompress(Codec.LZ4, whole, 1000) == bytes(1000)
    with pytest.raises(ApiError, match="more than 999 bytes"):
        decompress(Codec.LZ4, whole, 999)


def test_many_blocks_are_left_to_the_library() -> None:
    few, many = ([b"x"] * count for count in (MOST_BLOCKS, MOST_BLOCKS + 1))
    assert stored_blocks(memoryview(frame(JAVAS_HEADER, few))) == b"x" * MOST_BLOCKS
    whole = frame(JAVAS_HEADER, many)
    assert stored_blocks(memoryview(whole)) is None
    assert decompress(Codec.LZ4, whole, 1000) == b"x" * (MOST_BLOCKS + 1)
