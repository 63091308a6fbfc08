"""Batches brought into the codec of their topic: the same records, in another form."""

from __future__ import annotations

import dataclasses

import pytest

from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import compute_crc, parse_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec, compress, decompress
from protocol.records.recompression import recompress
from protocol.records.record import iterate_records
from protocol.records.validation import OtherCodecError, ProduceRules, check_produced

NOW_MS = 1_795_229_963_000
RECORDS = [
    NewRecord(NOW_MS + (index * 7) % 5, b"key%d" % index, b"again and " * 9, (("h", b"v"),))
    for index in range(40)
]


def produced(codec: Codec) -> bytearray:
    return build_batch(
        RECORDS, codec=codec, producer_id=9, producer_epoch=2, base_sequence=77, leader_epoch=3
    )


@pytest.mark.parametrize("source", Codec)
@pytest.mark.parametrize("target", Codec)
def test_recompression_keeps_the_records(source: Codec, target: Codec) -> None:
    batch = produced(source)

    result = recompress(batch, ProduceRules(target_codec=target), NOW_MS)

    assert list(iterate_records(result)) == list(iterate_records(batch))
    before, after = parse_header(batch), parse_header(result)
    assert after.codec is target
    assert after.crc == compute_crc(result, 0, len(result))
    assert after.size_in_bytes == len(result)
    changed = {"batch_length": 0, "crc": 0, "attributes": 0}
    assert after._replace(**changed) == before._replace(**changed)
    check_produced(result, ProduceRules(target_codec=target), NOW_MS)


@pytest.mark.parametrize("source", Codec)
@pytest.mark.parametrize("target", Codec)
def test_only_batches_in_another_codec_are_asked_for(source: Codec, target: Codec) -> None:
    rules = ProduceRules(target_codec=target)

    if source is target:
        assert check_produced(produced(source), rules, NOW_MS).codec is target
    else:
        with pytest.raises(OtherCodecError):
            check_produced(produced(source), rules, NOW_MS)


def test_unsound_batch_is_refused_as_without_recompression() -> None:
    batch = produced(Codec.NONE)
    batch[-1] ^= 1
    rules = ProduceRules(target_codec=Codec.ZSTD)

    with pytest.raises(ApiError) as refused:
        recompress(batch, rules, NOW_MS)
    with pytest.raises(ApiError) as late:
        recompress(produced(Codec.NONE), rules, NOW_MS + 10**12 - 10**13)

    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    assert late.value.code is ErrorCode.INVALID_TIMESTAMP


def test_size_limit_holds_before_and_after() -> None:
    packed, plain = produced(Codec.GZIP), produced(Codec.NONE)
    assert len(packed) < 1000 < len(plain)
    rules = ProduceRules(max_message_bytes=1000, target_codec=Codec.NONE)

    for batch, wanted in ((packed, Codec.NONE), (plain, Codec.GZIP)):
        with pytest.raises(ApiError) as refused:
            recompress(batch, dataclasses.replace(rules, target_codec=wanted), NOW_MS)
        assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (Codec.GZIP, (1, 6, 9)),
        (Codec.LZ4, (1, 9, 12, 17)),
        (Codec.ZSTD, (-131_072, -5, 1, 3, 22)),
        (Codec.SNAPPY, (None,)),
    ],
)
def test_each_compression_level_round_trips(codec: Codec, levels: tuple[int | None, ...]) -> None:
    data = b"".join(b"%d %s " % (number, b"flights"[: number % 7]) for number in range(20_000))

    sizes = {level: len(compress(codec, data, level)) for level in levels}

    for level in levels:
        assert decompress(codec, compress(codec, data, level)) == data
    assert len(set(sizes.values())) > 1 or len(levels) == 1
