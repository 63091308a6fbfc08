"""Reading by offset and by time, over segment borders and gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from config.topic import TopicConfig
from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import parse_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from storage.segment.segment_reader import NO_TIMESTAMP
from storage.segment.timestamp_offset import TimestampOffset
from tests.storage.produced import (
    NOW_MS,
    all_offsets,
    append,
    batch,
    new_log,
    offsets_in,
    reopen_clean,
)

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Twenty batches of five records: offsets 0 to 99 in several segments."""
    log = new_log(tmp_path)
    for index in range(20):
        append(log, batch(5, NOW_MS + index * 10, value=b"x" * 30))
    assert len(log.segments) > 2
    return log


def test_every_offset_is_found_in_the_whole_batch_that_holds_it(log: Log) -> None:
    for offset in range(100):
        found = log.read(offset, 1, 100)
        assert found.first_offset == offset // 5 * 5
        assert offset in offsets_in(found.tobytes())
        assert len(found) == found.first_batch_size


def test_region_is_cut_at_max_bytes_even_within_a_batch(log: Log) -> None:
    size = log.read(0, 1, 100).first_batch_size

    found = log.read(0, size + 10, 100)

    assert len(found) == size + 10
    assert offsets_in(found.tobytes()) == [0, 1, 2, 3, 4]


def test_too_small_limit_gives_nothing_unless_one_batch_is_wanted(log: Log) -> None:
    found = log.read(7, 10, 100, minimum_one_batch=False)

    assert (len(found), found.tobytes()) == (0, b"")
    assert found.first_batch_size > 10


def test_nothing_at_or_after_the_upper_offset_is_read(log: Log) -> None:
    for upper in range(0, 100, 5):
        offsets = offsets_in(log.read(0, 100_000, upper).tobytes()) if upper else []
        assert all(offset < upper for offset in offsets)
    assert offsets_in(log.read(95, 100_000, 100).tobytes()) == [95, 96, 97, 98, 99]
    assert len(log.read(50, 100_000, 50)) == 0


def test_log_end_is_empty_and_beyond_is_out_of_range(log: Log) -> None:
    assert len(log.read(100, 1000, 100)) == 0
    for offset in (-1, 101):
        with pytest.raises(ApiError) as refusal:
            log.read(offset, 1000, 100)
        assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_reading_before_the_log_start_is_out_of_range(log: Log) -> None:
    assert log.advance_log_start_offset(42)

    with pytest.raises(ApiError):
        log.read(41, 1000, 100)
    assert log.read(42, 1, 100).first_offset == 40


def test_region_stays_readable_when_its_segment_is_deleted(log: Log) -> None:
    found = log.read(0, 200, 100)
    before = found.tobytes()

    log.truncate_fully_and_start_at(500)

    assert found.tobytes() == before


def test_replay_gives_whole_batches_of_a_range(log: Log) -> None:
    bases = [parse_header(data).base_offset for data in log.read_batches(12, 31)]

    assert bases == [10, 15, 20, 25, 30]
    assert list(log.read_batches(31, 31)) == []
    assert sum(1 for _ in log.read_batches(0, 10**9)) == 20


def test_replay_reads_batches_larger_than_its_pieces(tmp_path: Path) -> None:
    log = new_log(tmp_path, TopicConfig(max_message_bytes=1 << 23))
    sizes = [10, 3 << 20, 10, 1 << 20, 1 << 20, 10]
    for size in sizes:
        append(log, batch(1, value=b"x" * size))

    lengths = [len(data) for data in log.read_batches(0, 10)]

    assert len(lengths) == 6
    assert all(length > size for length, size in zip(lengths, sizes, strict=True))


@pytest.mark.parametrize("damage", [b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"])
def test_damage_under_a_running_log_is_an_error_and_no_endless_loop(
    log: Log, damage: bytes
) -> None:
    segment = log.segments[0]
    position = log.read(50, 1, 100).position if len(log.segments) == 1 else 0
    segment.file.write_at(position + 8, damage)

    with pytest.raises(ApiError) as replayed:
        list(log.read_batches(0, 100))
    assert replayed.value.code == ErrorCode.CORRUPT_MESSAGE
    if damage[0] != 0x7F:
        with pytest.raises(ApiError):
            log.read(1, 1000, 100)


def test_timestamp_finds_the_exact_record(log: Log) -> None:
    for index in range(20):
        for record in range(5):
            found = log.offset_for_timestamp(NOW_MS + index * 10 + record)
            assert found == TimestampOffset(
                NOW_MS + index * 10 + record, index * 5 + record, leader_epoch=0
            )
    assert log.offset_for_timestamp(0) == TimestampOffset(NOW_MS, 0, 0)
    assert log.offset_for_timestamp(NOW_MS + 5) == TimestampOffset(NOW_MS + 10, 5, 0)
    assert log.offset_for_timestamp(NOW_MS + 10_000) is None


def test_timestamp_lookup_begins_at_the_log_start(log: Log) -> None:
    log.advance_log_start_offset(42)

    found = log.offset_for_timestamp(0)

    assert found is not None
    assert found.offset == 42


def test_timestamps_that_go_back_are_found_by_the_first_that_is_late_enough(
    tmp_path: Path,
) -> None:
    log = new_log(tmp_path)
    times = [50, 10, 90, 20, 90, 70, 100, 5] * 10
    for time in times:
        append(log, batch(1, time, value=b"x" * 40))

    for target in range(1, 101):
        expected = next((offset for offset, time in enumerate(times) if time >= target), None)
        found = log.offset_for_timestamp(target)
        assert (found.offset if found else None) == expected, target


def test_max_timestamp_is_the_exact_record_inside_a_compressed_batch(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    records = [NewRecord(time, None, b"v") for time in (5, 30, 20)]
    append(log, batch(4, 1))
    append(log, memoryview(build_batch(records, codec=Codec.GZIP)), epoch=3)
    append(log, batch(4, 10), epoch=3)

    assert log.offset_of_max_timestamp() == TimestampOffset(30, 5, leader_epoch=3)


def test_empty_log_has_no_timestamps(tmp_path: Path) -> None:
    log = new_log(tmp_path)

    assert log.offset_of_max_timestamp() is None
    assert log.offset_for_timestamp(0) is None


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_first_of_records_without_timestamps_has_the_greatest(tmp_path: Path, codec: Codec) -> None:
    log = new_log(tmp_path)
    for count in (3, 2):
        records = [NewRecord(NO_TIMESTAMP, b"key", b"v")] * count
        append(log, memoryview(build_batch(records, codec=codec)))

    assert log.offset_of_max_timestamp() == TimestampOffset(NO_TIMESTAMP, 0, 0)
    assert log.offset_for_timestamp(0) is None

    log.advance_log_start_offset(2)
    assert log.offset_of_max_timestamp() == TimestampOffset(NO_TIMESTAMP, 2, 0)
    log.advance_log_start_offset(5)
    assert log.offset_of_max_timestamp() is None


def test_any_timestamp_is_greater_than_none(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for stamps in ([NO_TIMESTAMP] * 3, [NO_TIMESTAMP, 5], [NO_TIMESTAMP]):
        records = [NewRecord(one, b"key", b"v") for one in stamps]
        append(log, memoryview(build_batch(records)))

    assert log.offset_of_max_timestamp() == TimestampOffset(5, 4, 0)


def test_reads_find_their_way_with_indexes_on_disk(log: Log, tmp_path: Path) -> None:
    log.close()
    log = reopen_clean(tmp_path, log_start_offset=0, high_watermark=100)

    assert all_offsets(log) == list(range(100))
    assert log.offset_for_timestamp(NOW_MS + 93) == TimestampOffset(NOW_MS + 93, 48, 0)
    assert log.offset_of_max_timestamp() == TimestampOffset(NOW_MS + 194, 99, 0)
