"""The moment at which a segment rolls."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from config.topic import TopicConfig
from storage.disk import Disk
from storage.filesystem import LocalFileSystem
from storage.log.log_loader import create_log
from storage.log.log_settings import LogSettings
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    all_offsets,
    append,
    batch,
    new_log,
    place,
    reopen,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from storage.log.log import Log

HOUR_MS = 3_600_000


def bases(log: Log) -> list[int]:
    return list(log.segments.base_offsets)


def test_segment_ends_before_the_batch_that_would_not_fit(tmp_path: Path) -> None:
    size = len(batch(2))
    log = new_log(tmp_path, TopicConfig(segment_bytes=3 * size))

    for _ in range(7):
        append(log, batch(2))

    assert bases(log) == [0, 6, 12]
    assert [segment.size for segment in log.segments] == [3 * size, 3 * size, size]


def test_segment_ends_when_record_time_has_passed(tmp_path: Path) -> None:
    log = new_log(tmp_path, TopicConfig(segment_ms=HOUR_MS))
    for timestamp in (0, HOUR_MS, HOUR_MS + 1, HOUR_MS + 2, 0):
        append(log, batch(1, timestamp))

    assert bases(log) == [0, 2]


def test_records_without_time_roll_by_the_clock(tmp_path: Path) -> None:
    log = new_log(tmp_path, TopicConfig(segment_ms=HOUR_MS))
    log.append_as_leader(batch(1, -1), 0, NOW_MS)
    log.append_as_leader(batch(1, -1), 0, NOW_MS + HOUR_MS)
    log.append_as_leader(batch(1, -1), 0, NOW_MS + HOUR_MS + 1)

    assert bases(log) == [0, 2]


def test_jitter_ends_a_segment_earlier(tmp_path: Path) -> None:
    config = TopicConfig(segment_ms=HOUR_MS, segment_jitter_ms=1000)
    settings = LogSettings(draw_below=lambda limit: limit - 1)
    log = create_log(place(tmp_path), config, settings, NOW_MS)

    append(log, batch(1, 0))
    append(log, batch(1, HOUR_MS - 999))
    append(log, batch(1, HOUR_MS - 998))

    assert bases(log) == [0, 2]


def test_segment_ends_when_an_index_is_full(tmp_path: Path) -> None:
    config = TopicConfig(segment_index_bytes=48, index_interval_bytes=0)
    log = new_log(tmp_path, config)

    for index in range(30):
        append(log, batch(1, NOW_MS + index))

    # The time index has four slots, one of which is kept for the entry of the roll.
    assert len(log.segments) > 5
    assert all(len(segment.time_index) <= 4 for segment in log.segments)
    assert all_offsets(log) == list(range(30))


def test_segment_ends_when_offsets_are_too_far_from_its_base(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.append_as_follower(bytes(batch(1, offset=5)), NOW_MS)
    log.append_as_follower(bytes(batch(1, offset=2**31 - 1)), NOW_MS)

    log.append_as_follower(bytes(batch(1, offset=2**31)), NOW_MS)
    log.append_as_follower(bytes(batch(1, offset=2**40)), NOW_MS)

    assert bases(log) == [0, 2**31, 2**40]
    log.advance_high_watermark(log.log_end_offset)
    assert all_offsets(log) == [5, 2**31 - 1, 2**31, 2**40]
    assert log.read(6, 1, log.log_end_offset).first_offset == 2**31 - 1


def test_empty_segment_too_far_behind_is_replaced(tmp_path: Path) -> None:
    log = new_log(tmp_path)

    log.append_as_follower(bytes(batch(1, offset=2**33)), NOW_MS)

    assert bases(log) == [2**33]
    assert not (tmp_path / "flights-0" / f"{0:020d}.log").exists()


def test_roll_cuts_indexes_writes_a_snapshot_and_offers_the_flush(tmp_path: Path) -> None:
    offered: list[Callable[[], None]] = []
    log = create_log(place(tmp_path), SMALL, LogSettings(run_later=offered.append), NOW_MS)
    append(log, batch(4))

    log.roll(NOW_MS)

    directory = tmp_path / "flights-0"
    assert (directory / f"{4:020d}.snapshot").stat().st_size == 10
    assert (directory / f"{0:020d}.index").stat().st_size == 0
    assert (directory / f"{0:020d}.timeindex").stat().st_size == 12
    assert (directory / f"{4:020d}.index").stat().st_size == 10_485_760
    assert (directory / f"{4:020d}.timeindex").stat().st_size == 10_485_756
    assert log.recovery_point == 0
    offered[0]()
    assert log.recovery_point == 4


def test_rolling_an_empty_segment_does_nothing(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.roll(NOW_MS)
    log.roll(NOW_MS)

    assert bases(log) == [0]


def test_roll_by_time_counts_on_after_a_restart(tmp_path: Path) -> None:
    config = dataclasses.replace(SMALL, segment_ms=HOUR_MS)
    append(new_log(tmp_path, config), batch(1, 1000))

    log, _ = reopen(tmp_path, config)
    append(log, batch(1, HOUR_MS + 1001))

    assert bases(log) == [0, 1]


def test_no_more_files_are_open_than_the_limit(tmp_path: Path) -> None:
    disk = Disk(LocalFileSystem())
    disk.files.limit = 3
    disk.maps.limit = 2
    log = new_log(tmp_path, SMALL, disk)
    for index in range(300):
        append(log, batch(1, NOW_MS + index))

    assert len(log.segments) > 10
    assert all_offsets(log) == list(range(300))
    assert len(disk.files) <= 3
    assert len(disk.maps) <= 2
    assert sum(segment._file is not None for segment in log.segments) <= 3
