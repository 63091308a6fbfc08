"""Transaction indexes after a crash, after damage, and after truncation and deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from protocol.records.control import ControlType
from storage.filesystem import LocalFileSystem
from storage.segment.aborted_index import ENTRY, AbortedIndex, AbortedTransaction
from tests.storage.produced import (
    NOW_MS,
    Producer,
    append,
    append_marker,
    batch,
    marker,
    new_log,
    reopen,
    reopen_clean,
)

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Two aborted transactions, the second of which begins in the first segment and ends later."""
    log = new_log(tmp_path)
    write(log, 1)
    append_marker(log, marker(Producer(1), ControlType.ABORT))
    write(log, 2)
    log.roll(NOW_MS)
    append(log, batch())
    append_marker(log, marker(Producer(2), ControlType.ABORT))
    return log


def write(log: Log, producer_id: int) -> None:
    append(log, batch(producer=Producer(producer_id, is_transactional=True)))


def index_files(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.txnindex"))


BOTH = [AbortedTransaction(1, 0, 1, 2), AbortedTransaction(2, 2, 4, 5)]


def test_entries_that_a_crash_lost_come_back(tmp_path: Path, log: Log) -> None:
    log.release()
    for path in index_files(tmp_path):
        path.unlink()

    recovered, _ = reopen(tmp_path, recovery_point=0, high_watermark=5)

    assert recovered.aborted_transactions(0, 5) == BOTH


def test_entry_of_before_the_recovery_point_is_kept(tmp_path: Path, log: Log) -> None:
    log.flush()
    log.release()
    (_, second) = index_files(tmp_path)
    second.write_bytes(b"")
    snapshot = tmp_path / "flights-0" / "00000000000000000003.snapshot"
    assert snapshot.exists()

    recovered, _ = reopen(tmp_path, recovery_point=3, high_watermark=5)

    assert recovered.aborted_transactions(0, 5) == BOTH


def test_torn_entry_is_rebuilt_after_a_clean_stop_too(tmp_path: Path, log: Log) -> None:
    log.close()
    (first, second) = index_files(tmp_path)
    first.write_bytes(first.read_bytes()[:-1])
    second.write_bytes(bytes(3))

    reopened = reopen_clean(tmp_path, high_watermark=5)

    assert reopened.aborted_transactions(0, 5) == BOTH
    assert [path.stat().st_size for path in index_files(tmp_path)] == [ENTRY.size] * 2


def test_entry_goes_with_its_marker_when_the_log_is_truncated(log: Log) -> None:
    log.truncate_to(4)
    assert log.aborted_transactions(0, 5) == BOTH[:1]
    assert log.producers.has_open_transactions
    assert log.last_stable_offset == 2

    append_marker(log, marker(Producer(2), ControlType.COMMIT))
    assert log.aborted_transactions(0, 5) == BOTH[:1]


def test_index_goes_with_its_segment(tmp_path: Path, log: Log) -> None:
    log.truncate_fully_and_start_at(100)
    assert log.aborted_transactions(0, 200) == []
    assert index_files(tmp_path) == []


def test_search_returns_overlapping_transactions_and_whether_it_is_complete(tmp_path: Path) -> None:
    index = AbortedIndex(LocalFileSystem(), str(tmp_path), 0)
    entries = [
        AbortedTransaction(producer_id, first, first + 15, max(0, first - 5))
        for producer_id, first in enumerate(range(0, 3_000, 10))
    ]
    for entry in entries:
        index.append(entry)

    for start, end in [(0, 1), (0, 3_000), (400, 401), (1_234, 1_500), (2_990, 9_999)]:
        found, is_all = AbortedIndex(LocalFileSystem(), str(tmp_path), 0).overlapping(start, end)
        assert found == [
            entry for entry in entries if entry.last_offset >= start and entry.first_offset < end
        ]
        assert is_all == any(entry.last_stable_offset >= end for entry in entries)


def test_last_stable_offset_does_not_fall_behind_the_log_start(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    write(log, 1)
    append(log, batch(count=4))
    log.advance_log_start_offset(3)

    assert log.last_stable_offset == 3
