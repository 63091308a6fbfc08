"""Batches laid open: the same as a reader of whole records finds, and what is wrong with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import CRC_POSITION, HEADER_BYTES, compute_crc, parse_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from protocol.records.record import iterate_records
from storage.compaction.columns import opened_batches
from storage.compaction.columns.opened_batches import MOST_RECORDS, OpenedBatches, open_batches
from storage.errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Sequence

KEYS = st.none() | st.binary(max_size=3) | st.binary(min_size=60, max_size=70)
VALUES = st.none() | st.binary(max_size=3) | st.binary(min_size=60, max_size=70)
TIMESTAMPS = st.integers(0, 130) | st.integers(-1, 2**62)
RECORDS = st.lists(st.builds(NewRecord, TIMESTAMPS, KEYS, VALUES), min_size=1, max_size=12)
REPEATS = st.integers(1, 30)
BATCHES = st.lists(st.tuples(RECORDS, REPEATS, st.sampled_from(Codec)), min_size=1, max_size=4)


def built(batches: list[tuple[list[NewRecord], int, Codec]]) -> list[bytearray]:
    made = []
    offset = 7
    for records, repeats, codec in batches:
        alike = [record for record in records for _ in range(repeats)]
        made.append(build_batch(alike, codec=codec, base_offset=offset))
        offset += len(alike)
    return made


def opened(batches: Sequence[bytearray]) -> OpenedBatches:
    (found,) = open_batches([(parse_header(batch), batch) for batch in batches])
    return found


@given(batches=BATCHES)
def test_columns_say_what_a_reader_of_whole_records_finds(
    batches: list[tuple[list[NewRecord], int, Codec]],
) -> None:
    made = built(batches)

    found = opened(made)

    assert found.errors == {}
    columns = found.columns
    read = [record for batch in made for record in iterate_records(batch)]
    places = zip(columns.keys.tolist(), columns.key_sizes.tolist(), strict=True)
    keys = [found.octets[at : at + size] if size >= 0 else None for at, size in places]
    assert keys == [record.key for record in read]
    offsets = found.base_offsets() + columns.offset_deltas
    assert offsets.tolist() == [record.offset for record in read]
    assert columns.is_null.tolist() == [record.value is None for record in read]
    base = found.of_each_record([header.base_timestamp for header in found.headers])
    assert (base + found.timestamp_deltas).tolist() == [record.timestamp for record in read]
    assert found.count(columns.is_null) == [
        sum(record.value is None for record in iterate_records(batch)) for batch in made
    ]


@given(batches=BATCHES, data=st.data())
def test_damaged_records_are_reported_and_affect_no_other_batch(
    batches: list[tuple[list[NewRecord], int, Codec]], data: st.DataObject
) -> None:
    made = built(batches)
    hurt = data.draw(st.integers(0, len(made) - 1))
    at = data.draw(st.integers(HEADER_BYTES, len(made[hurt]) - 1))
    made[hurt][at] = data.draw(st.integers(0, 255))
    crc = compute_crc(made[hurt], 0, len(made[hurt]))
    made[hurt][CRC_POSITION : CRC_POSITION + 4] = crc.to_bytes(4, "big")

    found = opened(made)

    assert set(found.errors) <= {hurt}
    for index, batch in enumerate(made):
        if index not in found.errors:
            first, end = found.bounds[index : index + 2]
            assert end - first == parse_header(batch).record_count
            if index != hurt:
                starts = found.columns.starts[first:end].tolist()
                ends = found.columns.ends[first:end].tolist()
                assert starts[1:] == ends[:-1]


def test_a_batch_with_a_wrong_checksum_is_reported() -> None:
    made = built([([NewRecord(1, b"key", b"value")], 3, codec) for codec in Codec])
    for batch in made[1:]:
        batch[-1] ^= 1

    found = opened(made)

    assert sorted(found.errors) == [1, 2, 3, 4]
    assert all(isinstance(error, DamagedFileError) for error in found.errors.values())
    assert found.bounds == [0, 3, 3, 3, 3, 3]


@pytest.mark.parametrize("count", [-5, 0, 19, 21, 2**31 - 1])
def test_a_wrong_record_count_is_reported(count: int) -> None:
    batch = build_batch([NewRecord(1, b"key", b"value")] * 20)
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    crc = compute_crc(batch, 0, len(batch))
    batch[CRC_POSITION : CRC_POSITION + 4] = crc.to_bytes(4, "big")

    errors = opened([batch]).errors

    assert isinstance(errors[0], ApiError)
    assert errors[0].code is ErrorCode.INVALID_RECORD


@pytest.mark.interpreted
def test_batches_opened_together_are_bounded_by_records_and_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch = build_batch([NewRecord(1, b"key", b"value")] * (MOST_RECORDS // 2))
    header = parse_header(batch)

    by_records = [len(one.headers) for one in open_batches([(header, batch)] * 5)]
    monkeypatch.setattr(opened_batches, "MOST_BYTES", 2 * len(batch) + 1)
    monkeypatch.setattr(opened_batches, "MOST_RECORDS", 1 << 30)
    by_bytes = [len(one.headers) for one in open_batches([(header, batch)] * 5)]

    assert by_records == [2, 2, 1]
    assert by_bytes == [3, 2]
