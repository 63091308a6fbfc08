"""Compaction of markers, of aborted data, of tombstones and of a producer's last batch."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import pytest

from protocol.records.batch import iterate_headers
from protocol.records.control import ControlType
from tests.storage.compaction.compacting import compact, keyed, put, records_in
from tests.storage.produced import (
    NOW_MS,
    SMALL,
    Producer,
    append,
    append_marker,
    marker,
    new_log,
    reopen_clean,
)

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log

RETENTION_MS = 1000
CONFIG = dataclasses.replace(
    SMALL, cleanup_policy=frozenset({"compact"}), delete_retention_ms=RETENTION_MS
)
PRODUCER = Producer(7, 0, 0, is_transactional=True)
COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT


class Seen(NamedTuple):
    """A batch: its base offset, the number of records left, and its kind."""

    base_offset: int
    records: int
    is_control: bool = False
    horizon_ms: int | None = None


def batches(log: Log) -> list[Seen]:
    data = log.read(log.log_start_offset, 1 << 20, log.log_end_offset)
    seen = []
    for segment in log.segments:
        data_of_one = segment.file.read_at(0, segment.size)
        for _, header in iterate_headers(data_of_one):
            horizon = header.base_timestamp if header.has_delete_horizon else None
            seen.append(Seen(header.base_offset, header.record_count, header.is_control, horizon))
    assert data.length > 0
    return seen


def transaction(log: Log, outcome: ControlType, sequence: int, **values: str) -> None:
    """Data in one batch, then its end."""
    producer = dataclasses.replace(PRODUCER, sequence=sequence)
    pairs = [(key.encode(), value.encode()) for key, value in values.items()]
    append(log, keyed(pairs, producer=producer))
    append_marker(log, marker(producer, outcome))


def forget_producers(log: Log) -> None:
    """Expire the producers, whose sequence numbers no longer matter."""
    assert sum(log.producers.expire(NOW_MS * 2, 1)) >= 0


def dirty(log: Log) -> None:
    """Add a batch in a segment of its own, so that there is something to clean."""
    put(log, other="value")
    log.roll(NOW_MS)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return new_log(tmp_path, CONFIG)


def test_markers_are_not_compared_by_key(log: Log) -> None:
    """All commit markers have the same key."""
    for number in range(3):
        transaction(log, COMMIT, number, **{f"k{number}": "v"})
    dirty(log)

    compact(log)

    assert [one.base_offset for one in batches(log) if one.is_control] == [1, 3, 5]


def test_aborted_records_are_dropped_and_supersede_no_value(log: Log) -> None:
    put(log, a="good")
    transaction(log, ABORT, 0, a="bad")
    transaction(log, COMMIT, 1, b="good")
    dirty(log)

    compact(log)

    assert [one[:2] for one in records_in(log)] == [(0, b"a"), (3, b"b"), (5, b"other")]


def test_a_marker_stays_for_its_data_and_then_for_the_retention(log: Log) -> None:
    transaction(log, COMMIT, 0, a="old")
    transaction(log, COMMIT, 1, a="new")
    dirty(log)
    forget_producers(log)
    compact(log)
    # The data of the first transaction was there when its marker was met, so that is not begun.
    assert batches(log) == [
        Seen(1, 1, is_control=True),
        Seen(2, 1),
        Seen(3, 1, is_control=True),
        Seen(4, 1),
    ]

    dirty(log)
    compact(log, NOW_MS)
    horizon = NOW_MS + RETENTION_MS
    assert batches(log)[:3] == [
        Seen(1, 1, is_control=True, horizon_ms=horizon),
        Seen(2, 1),
        Seen(3, 1, is_control=True),
    ]

    dirty(log)
    compact(log, horizon - 1)
    assert Seen(1, 1, is_control=True, horizon_ms=horizon) in batches(log)

    dirty(log)
    compact(log, horizon)
    assert [one.base_offset for one in batches(log)][:2] == [2, 3]


def test_the_index_of_aborted_transactions_is_kept_as_long_as_their_data_is_met(log: Log) -> None:
    transaction(log, ABORT, 0, a="bad")
    put(log, b="good")
    dirty(log)
    forget_producers(log)

    compact(log)
    assert [one[:3] for one in log.aborted_transactions(0, 100)] == [(7, 0, 1)]

    dirty(log)
    compact(log)
    assert log.aborted_transactions(0, 100) == []


def test_the_last_batch_of_an_active_producer_is_emptied_but_stays(
    log: Log, tmp_path: Path
) -> None:
    producer = Producer(5, 0, 0)
    append(log, keyed([(b"a", b"1"), (b"b", b"1")], producer=producer))
    append(log, keyed([(b"a", b"2")], producer=dataclasses.replace(producer, sequence=2)))
    put(log, a="3", b="3")
    log.roll(NOW_MS)

    compact(log)

    assert batches(log) == [Seen(2, 0), Seen(3, 2)]
    assert records_in(log) == [(3, b"a", b"3"), (4, b"b", b"3")]
    log.close()
    for path in (tmp_path / "flights-0").glob("*.snapshot"):
        path.unlink()
    again = reopen_clean(tmp_path, CONFIG, high_watermark=5, recovery_point=5)
    assert again.producers.producers[5].last_sequence == 2


def test_the_marker_of_a_producer_without_data_stays_for_its_epoch(log: Log) -> None:
    append_marker(log, marker(PRODUCER, ABORT))
    for _ in range(3):
        dirty(log)
        compact(log, NOW_MS + 10 * RETENTION_MS)

    (kept,) = [one for one in batches(log) if one.is_control]
    assert kept.base_offset == 0

    forget_producers(log)
    dirty(log)
    compact(log, NOW_MS + 100 * RETENTION_MS)
    assert not [one for one in batches(log) if one.is_control]


def test_a_tombstone_goes_after_its_retention_and_not_before(log: Log) -> None:
    put(log, a="1")
    put(log, a=None, b="2")
    dirty(log)

    compact(log, NOW_MS)
    horizon = NOW_MS + RETENTION_MS
    assert records_in(log)[:2] == [(1, b"a", None), (2, b"b", b"2")]
    assert batches(log)[0] == Seen(1, 2, horizon_ms=horizon)

    dirty(log)
    compact(log, horizon - 1)
    assert records_in(log)[0] == (1, b"a", None)

    dirty(log)
    compact(log, horizon)
    assert records_in(log)[0] == (2, b"b", b"2")
    assert batches(log)[0] == Seen(1, 1, horizon_ms=horizon)


def test_the_last_batch_of_a_segment_stays_to_say_where_it_ends(log: Log) -> None:
    put(log, a="1")
    put(log, a="2")
    log.roll(NOW_MS)
    put(log, a="3")
    log.roll(NOW_MS)
    log.config = dataclasses.replace(CONFIG, segment_bytes=100)

    compact(log)

    assert log.segments.base_offsets == [0, 2, 3]
    assert batches(log) == [Seen(1, 0), Seen(2, 1)]
    assert log.read(0, 1000, 3).length > 0
