"""Streams that some client cannot read are refused, and what all of them read is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from protocol.errors import ApiError, ErrorCode
from protocol.records.builder import NewRecord, encode_record
from protocol.records.client_streams import ManyPiecesError, decompress_readable
from protocol.records.compression import DEFAULT_LIMIT, PIECES_AT_ONCE, Codec, decompress
from tests.protocol.records.damage import NOW
from tests.support.compressed_streams.drawn_streams import KINDS, VARIANTS
from tests.support.compressed_streams.gzip_members import FEXTRA, GzipMember
from tests.support.compressed_streams.lz4_frames import Lz4Frame
from tests.support.compressed_streams.snappy_streams import SnappyStream
from tests.support.compressed_streams.zstd_frames import COMPRESSED, ZstdFrame, block

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = b"".join(
    encode_record(NewRecord(NOW, None, b"%d " % index * 200), index, NOW) for index in range(200)
)
"""More than the largest block of any format that limits it to 128 KB."""

EMPTY_BLOCK = block(COMPRESSED, 0)

REFUSED = {
    Codec.GZIP: """wrong FHCRC; reserved flag 5; reserved flag 6; reserved flag 7; method 7;
        another magic; a stored block's lengths differ; reserved block type; deflated data cut;
        byte after the deflated data; wrong CRC; wrong size; size too small; no trailer;
        half a trailer; trailer cut; two members; five members; empty member before;
        empty member after; a byte before; a zero after; eight zeros after; thirty zeros after;
        junk after; much junk after; magic after; half a member after""",
    Codec.SNAPPY: """another magic; length too large; length too small; byte after each chunk;
        chunk without a byte; header before each chunk; another stream after; a byte before;
        a byte after; three bytes after; four zeros after; length -1 after; a chunk cut off;
        half a header after; magic after; raw, length padded to six bytes; raw, length too large;
        raw, length too small; raw, a byte after; raw, an empty one after;
        raw, a xerial stream after""",
    Codec.LZ4: """block size code 3; block size code 0; reserved size bit 0; reserved size bit 7;
        another magic; version 0; version 2; linked blocks; wrong block checksums;
        content size too large; content size too small; wrong content checksum; reserved flag;
        dictionary 0; dictionary 7; wrong header checksum; header checksum over the magic;
        no end mark; half an end mark; empty stored block; block of no data;
        blocks larger than said; stored blocks larger than said; two frames; five frames;
        empty frame before; empty frame after; skippable frame before; skippable frame after;
        legacy frame before; legacy frame after; a byte after; four zeros after;
        seven bytes after; magic after""",
    Codec.ZSTD: """blocks larger than allowed; blocks larger than the window;
        window 128 MB and an eighth; window 256 MB; window 1 GB; window 2 GB; window 4 GB;
        window 2 TB; one segment, 1 byte of size; one segment said to be 1 TB;
        one segment said to be 200 MB; content size too large; content size too small;
        dictionary 7; wrong checksum; checksum cut; checksum missing; reserved bit; another magic;
        empty compressed block first; magic of version 0.7; magic of version 0.1; no last block;
        reserved block first; skippable frame cut; a byte after; four zeros after;
        twenty bytes after; magic after""",
}
"""By their names; all others are taken."""


def cases() -> Iterator[object]:
    for codec, variants in VARIANTS.items():
        refused = {" ".join(name.split()) for name in REFUSED[codec].split(";")}
        assert refused <= variants.keys(), refused - variants.keys()
        for name, fields in variants.items():
            stream = KINDS[codec](**fields)
            yield pytest.param(codec, stream, name in refused, id=f"{codec.name.lower()}: {name}")


@pytest.mark.parametrize(("codec", "stream", "is_refused"), list(cases()))
def test_streams_that_no_client_fails_on_are_taken(
    codec: Codec, stream: GzipMember, is_refused: bool
) -> None:
    assert fault(codec, stream.wrap(DATA)) is (ErrorCode.INVALID_RECORD if is_refused else None)


def fault(codec: Codec, data: bytes, *, is_hurried: bool = False) -> ErrorCode | None:
    try:
        body = decompress_readable(codec, memoryview(data), DEFAULT_LIMIT, is_hurried=is_hurried)
    except ApiError as error:
        return error.code
    assert body == DATA
    return None


@pytest.mark.parametrize(
    ("codec", "data", "message"),
    [
        (Codec.GZIP, GzipMember(members=2).wrap(b"ab"), "the last member holds 1 of 2 bytes"),
        (Codec.GZIP, GzipMember().wrap(b"") + GzipMember().wrap(b"a"), "an empty member comes"),
        (Codec.SNAPPY, SnappyStream().wrap(b"a") * 2, "another stream begins at byte 23"),
        (Codec.LZ4, Lz4Frame(frames=2).wrap(b"ab"), "16 bytes follow the first frame"),
        (Codec.ZSTD, ZstdFrame(blocks_before=EMPTY_BLOCK).wrap(b"a"), "block at byte 6 is"),
        (Codec.LZ4, Lz4Frame(dictionary=1).wrap(b"a"), "names a dictionary"),
        (Codec.LZ4, Lz4Frame(empty_block=b"\1\0\0\0\0").wrap(b"a"), "block at byte 12 is empty"),
    ],
)
def test_refusal_names_the_trailing_or_unexpected_bytes(
    codec: Codec, data: bytes, message: str
) -> None:
    with pytest.raises(ApiError, match=message):
        decompress_readable(codec, memoryview(data), DEFAULT_LIMIT, is_hurried=False)
    assert decompress(codec, data), "what is in a log already can still be read here"


def test_gzip_header_that_looks_like_another_member_is_taken() -> None:
    member = GzipMember(flags=FEXTRA, extra=b"AB\3\0\x1f\x8b\x08")
    assert fault(Codec.GZIP, member.wrap(DATA)) is None


@pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD])
def test_a_stream_in_many_blocks_is_not_checked_on_the_event_loop(codec: Codec) -> None:
    size = -(-len(DATA) // PIECES_AT_ONCE)
    few, many = (
        KINDS[codec](block_bytes=size // blocks, stored=True).wrap(DATA) for blocks in (1, 2)
    )

    assert fault(codec, few, is_hurried=True) is None
    assert fault(codec, many) is None
    with pytest.raises(ManyPiecesError):
        fault(codec, many, is_hurried=True)
