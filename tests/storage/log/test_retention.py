"""Segments that retention deletes, and the effects of deleting them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import pytest

from config.topic import TopicConfig
from protocol.errors import ApiError, ErrorCode
from storage.log.retention import LogFacts, count_deletable
from tests.storage.produced import NOW_MS, SMALL, all_offsets, append, batch, new_log

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log


class Old(NamedTuple):
    size: int
    age_timestamp: int


SEGMENTS = [Old(100, 1000), Old(100, 2000), Old(100, 1500), Old(50, 3000)]
ENDS = [10, 20, 30, 35]
WHOLE = LogFacts(ENDS, high_watermark=35, log_start_offset=0)
KEEP = TopicConfig(retention_ms=-1, retention_bytes=-1)


@pytest.mark.parametrize(
    ("changes", "log", "now_ms", "count"),
    [
        ({}, WHOLE, 10**9, 0),
        ({"retention_ms": 500}, WHOLE, 1500, 0),
        ({"retention_ms": 500}, WHOLE, 1501, 1),
        ({"retention_ms": 500}, WHOLE, 2501, 3),
        ({"retention_ms": 500}, WHOLE, 3501, 4),
        ({"retention_ms": 500}, LogFacts(ENDS, 20, 0), 3501, 2),
        ({"retention_ms": 500}, LogFacts(ENDS, 19, 0), 3501, 1),
        ({"retention_bytes": 350}, WHOLE, 0, 0),
        ({"retention_bytes": 251}, WHOLE, 0, 0),
        ({"retention_bytes": 250}, WHOLE, 0, 1),
        ({"retention_bytes": 50}, WHOLE, 0, 3),
        ({"retention_bytes": 0}, WHOLE, 0, 4),
        ({"retention_ms": 0}, WHOLE, 1000, 0),
        ({"retention_ms": 0}, WHOLE, 3001, 4),
        ({"retention_ms": 500, "cleanup_policy": frozenset()}, WHOLE, 10**9, 0),
        ({"cleanup_policy": frozenset()}, LogFacts(ENDS, 35, 20), 0, 2),
        ({"retention_ms": 500, "retention_bytes": 350}, WHOLE, 1501, 1),
        ({"retention_ms": 500, "retention_bytes": 150}, LogFacts(ENDS, 35, 10), 1501, 2),
        ({"retention_bytes": 250, "cleanup_policy": frozenset({"compact"})}, WHOLE, 0, 0),
        ({"retention_bytes": 250, "cleanup_policy": frozenset({"compact", "delete"})}, WHOLE, 0, 1),
        ({}, LogFacts(ENDS, 35, 19), 0, 1),
        ({}, LogFacts(ENDS, 35, 20), 0, 2),
        ({}, LogFacts(ENDS, 35, 35), 0, 3),
        ({"cleanup_policy": frozenset({"compact"})}, LogFacts(ENDS, 35, 20), 0, 2),
    ],
)
def test_oldest_segments_past_a_limit_go(
    changes: dict[str, object], log: LogFacts, now_ms: int, count: int
) -> None:
    config = dataclasses.replace(KEEP, **changes)  # type: ignore[arg-type]

    assert count_deletable(SEGMENTS, log, config, now_ms) == count


def test_empty_active_segment_stays() -> None:
    segments = [Old(0, 0)]
    config = dataclasses.replace(KEEP, retention_ms=1, retention_bytes=0)

    assert count_deletable(segments, LogFacts([0], 0, 0), config, 10**9) == 0


@pytest.fixture
def log(tmp_path: Path) -> Log:
    log = new_log(tmp_path, dataclasses.replace(SMALL, retention_ms=1000))
    for index in range(60):
        append(log, batch(1, NOW_MS + index * 10, value=b"x" * 40), epoch=index // 20)
    assert len(log.segments) > 3
    return log


def test_old_segments_are_renamed_and_the_log_start_moves(log: Log, tmp_path: Path) -> None:
    second = log.segments.base_offsets[1]
    newest = log.segments[0].max_timestamp

    paths = log.delete_expired(newest + 1001)

    assert log.log_start_offset == second
    assert all_offsets(log) == list(range(second, 60))
    assert sorted(path[-8:] for path in paths) == [".deleted"] * 3
    assert {path.name for path in tmp_path.glob("*/*.deleted")} == {
        f"{0:020d}{suffix}.deleted" for suffix in (".log", ".index", ".timeindex")
    }


def test_wholly_expired_log_keeps_its_end(log: Log) -> None:
    log.delete_expired(NOW_MS + 10**6)

    assert (log.log_start_offset, log.log_end_offset, log.size_in_bytes) == (60, 60, 0)
    assert append(log, batch(1)).first_offset == 60
    assert log.epochs.entries() == [(0, 60)]


def test_nothing_above_the_high_watermark_goes(log: Log) -> None:
    log.offsets.high_watermark = 0

    assert log.delete_expired(NOW_MS + 10**6) == []


def test_delete_records_moves_the_start_and_frees_whole_segments(log: Log) -> None:
    log.config = KEEP

    assert log.advance_log_start_offset(45)
    assert not log.advance_log_start_offset(44)
    with pytest.raises(ApiError) as refused:
        log.advance_log_start_offset(61)
    log.delete_expired(NOW_MS)

    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.log_start_offset == 45
    assert log.segments[0].base_offset <= 45 < log.segments.base_offsets[1]
    assert log.epochs.entries() == [(2, 45)]
    assert all_offsets(log) == list(range(45, 60))
