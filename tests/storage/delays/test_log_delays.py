"""Logs with records that wait: leader and follower alike, after crashes and cuts, and kept."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import TYPE_CHECKING

import pytest

from protocol.delays.delivered_batch import build_delivered
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from protocol.records.control import ControlType
from protocol.records.record import Record
from protocol.records.validation import LargeContentsError
from storage.append.append_source import FROM_COORDINATOR
from storage.delays.delay_index import DelayEntry, DelayKind
from storage.delays.delay_rebuild import HEADERS_AT_A_TIME
from storage.delays.log_delays import NOTHING_WAITS
from tests.protocol.delays.due_records import due_record
from tests.storage.produced import (
    NOW_MS,
    SMALL,
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

    from storage.append.append_info import AppendInfo
    from storage.log.log import Log

DELAYING = dataclasses.replace(SMALL, delivery_delay_enable=True)


def delayed(
    count: int = 1,
    producer: Producer | None = None,
    value: bytes = b"v",
    codec: Codec = Codec.NONE,
) -> memoryview:
    """A client's batch of records with a delay of a minute."""
    headers = (("deliver-after", b"1m"),)
    records = [NewRecord(NOW_MS, None, value, headers) for _ in range(count)]
    if producer is None:
        return memoryview(build_batch(records, codec=codec))
    return memoryview(
        build_batch(
            records,
            codec=codec,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=producer.sequence,
            is_transactional=producer.is_transactional,
        )
    )


def deliver(log: Log, source: int, waiting_from: int) -> AppendInfo:
    due = [due_record(NOW_MS + 60_000, Record(source, NOW_MS, None, b"v"))]
    data = memoryview(build_delivered(due, waiting_from, Codec.NONE))
    info = log.append_as_leader(data, 0, NOW_MS, FROM_COORDINATOR)
    log.advance_high_watermark(log.log_end_offset)
    return info


def entries(log: Log) -> list[DelayEntry]:
    return list(log.delays.entries_from(0))


def filled(log: Log) -> None:
    """Several segments with all that there is."""
    one = Producer(9, is_transactional=True)
    append(log, batch(2))
    append(log, delayed(2))
    append(log, delayed(1, one))
    for number in range(8):
        append(log, delayed(3, Producer(7, sequence=3 * number), bytes(200)))
        append(log, batch(1, value=bytes(100)))
    append_marker(log, marker(one, ControlType.COMMIT))
    deliver(log, 2, 3)
    append(log, delayed(1))


def test_delayed_records_get_offsets_in_the_produce_answer(tmp_path: Path) -> None:
    log = new_log(tmp_path, DELAYING)
    append(log, batch(2))

    info = append(log, delayed(3, Producer(7)))

    assert (info.first_offset, info.last_offset) == (2, 4)
    assert log.log_end_offset == 5
    assert entries(log)[0][0::2] == (2, DelayKind.WAITING)
    again = append(log, delayed(3, Producer(7)))
    assert again.is_duplicate
    assert (again.first_offset, again.last_offset) == (2, 4)
    assert append(log, delayed(1, Producer(7, sequence=3))).first_offset == 5


def test_duplicates_are_known_after_a_crash_too(tmp_path: Path) -> None:
    log = new_log(tmp_path, DELAYING)
    for number in range(4):
        append(log, delayed(2, Producer(7, sequence=2 * number)))
    log.release()

    log, _ = reopen(tmp_path, DELAYING)

    again = append(log, delayed(2, Producer(7, sequence=2)))
    assert again.is_duplicate
    assert again.first_offset == 2


def test_followers_note_the_same_as_their_leader(tmp_path: Path) -> None:
    leader, follower = new_log(tmp_path / "1", DELAYING), new_log(tmp_path / "2", SMALL)
    filled(leader)

    for data in leader.read_batches(0, leader.log_end_offset):
        follower.append_as_follower(bytes(data), NOW_MS)

    assert entries(follower) == entries(leader)
    kinds = [entry.kind for entry in entries(leader)]
    assert kinds[-3:] == [DelayKind.ENDED, DelayKind.DELIVERED, DelayKind.WAITING]
    assert follower.delays.point() == leader.delays.point()
    assert follower.prepare_delays()


@pytest.mark.parametrize("recovery_point", [0, 11, 1000])
@pytest.mark.parametrize("lost", [0, 24, 30, 10**6])
def test_a_crash_costs_nothing_that_is_in_the_log(
    tmp_path: Path, recovery_point: int, lost: int
) -> None:
    log = new_log(tmp_path, DELAYING)
    filled(log)
    expected = entries(log)
    recovery_point = min(recovery_point, log.segments.active.base_offset)
    log.close()
    path = tmp_path / "flights-0" / f"{log.segments.active.base_offset:020d}.delays"
    path.write_bytes(path.read_bytes()[: max(path.stat().st_size - lost, 0)])

    log, _ = reopen(tmp_path, DELAYING, recovery_point=recovery_point)

    assert entries(log) == expected


def test_entries_of_records_lost_in_a_crash_are_dropped(tmp_path: Path) -> None:
    log = new_log(tmp_path, DELAYING)
    filled(log)
    base = log.segments.active.base_offset
    expected = [entry for entry in entries(log) if entry.offset < base]
    log.close()
    (tmp_path / "flights-0" / f"{base:020d}.log").write_bytes(b"")

    log, _ = reopen(tmp_path, DELAYING)
    assert entries(log) == expected

    append(log, delayed(1))
    log.close()
    assert len(entries(reopen_clean(tmp_path, DELAYING))) == len(expected) + 1


def test_delay_index_survives_a_clean_stop_and_a_torn_one_is_rebuilt(tmp_path: Path) -> None:
    log = new_log(tmp_path, DELAYING)
    filled(log)
    expected = entries(log)
    log.close()
    assert entries(reopen_clean(tmp_path, DELAYING)) == expected

    path = tmp_path / "flights-0" / f"{log.segments.active.base_offset:020d}.delays"
    path.write_bytes(path.read_bytes()[:-3])

    assert entries(reopen_clean(tmp_path, DELAYING)) == expected


def test_truncated_records_are_no_longer_delayed(tmp_path: Path) -> None:
    log = new_log(tmp_path, DELAYING)
    filled(log)
    expected = entries(log)

    for offset in (expected[9].offset, expected[3].offset, 4, 0):
        log.truncate_to(offset)
        assert entries(log) == [entry for entry in expected if entry.offset < offset]


def test_retention_keeps_delayed_records_and_those_after_them(tmp_path: Path) -> None:
    config = dataclasses.replace(DELAYING, retention_ms=1)
    log = new_log(tmp_path, config)
    append(log, batch(5, value=bytes(250)))
    append(log, batch(5, value=bytes(200)))
    first = append(log, delayed(1)).first_offset
    append(log, batch(5, value=bytes(200)))
    append(log, batch(5, value=bytes(200)))
    later = NOW_MS + 10**9

    log.delete_expired(later)
    assert log.log_start_offset <= first
    assert log.delays.needed_from() == first

    deliver(log, first, log.log_end_offset)
    assert log.delays.needed_from() == NOTHING_WAITS
    log.delete_expired(later)
    assert log.log_start_offset == log.log_end_offset


def test_a_delivery_that_is_not_committed_makes_nothing_needless(tmp_path: Path) -> None:
    """It may be truncated, and then the records it delivered wait again."""
    config = dataclasses.replace(DELAYING, retention_ms=1)
    log = new_log(tmp_path, config)
    first = append(log, delayed(1)).first_offset
    append(log, batch(5, value=bytes(250)))
    committed = append(log, batch(5, value=bytes(250))).last_offset + 1
    due = [due_record(NOW_MS, Record(first, NOW_MS, None, b"v"))]
    data = memoryview(build_delivered(due, committed, Codec.NONE))
    log.append_as_leader(data, 0, NOW_MS, FROM_COORDINATOR)

    log.delete_expired(NOW_MS + 10**9)
    assert log.log_start_offset <= first
    assert log.delays.needed_from() == first

    log.advance_high_watermark(log.log_end_offset)
    assert log.delays.needed_from() == NOTHING_WAITS


def test_delete_records_and_retention_remove_delayed_records(tmp_path: Path) -> None:
    log = new_log(tmp_path, DELAYING)
    filled(log)
    end = log.log_end_offset

    log.advance_log_start_offset(end)
    log.roll(NOW_MS)
    log.delete_expired(NOW_MS)

    assert entries(log) == []
    assert sorted(path.suffix for path in (tmp_path / "flights-0").iterdir()).count(".delays") == 0


def test_large_batches_are_looked_into_beside_the_loop_if_they_may_wait(tmp_path: Path) -> None:
    config = dataclasses.replace(DELAYING, segment_bytes=1 << 20)
    log = new_log(tmp_path, config)
    assert append(log, batch(1, value=bytes(100_000))).first_offset == 0
    with pytest.raises(LargeContentsError):
        append(log, delayed(1, value=bytes(100_000)))
    with pytest.raises(LargeContentsError):
        append(log, delayed(1, value=Random(1).randbytes(30_000), codec=Codec.GZIP))


def test_a_log_without_delays_has_no_file_for_them(tmp_path: Path) -> None:
    log = new_log(tmp_path, DELAYING)
    append(log, batch(3))
    log.close()

    assert not list((tmp_path / "flights-0").glob("*.delays"))
    assert not log.delays.exist
    assert log.delays.needed_from() == NOTHING_WAITS


@pytest.mark.parametrize("at", [0, 1, 2, 4])
@pytest.mark.parametrize("damage", [bytes(24), b"\xff" * 24, b"\xff" * 5])
def test_a_delay_index_damaged_before_the_recovery_point_is_rebuilt_after_a_crash(
    tmp_path: Path, at: int, damage: bytes
) -> None:
    config = dataclasses.replace(DELAYING, segment_bytes=100_000)
    log = new_log(tmp_path, config)
    filled(log)
    expected = entries(log)
    log.close()
    path = tmp_path / "flights-0" / f"{0:020d}.delays"
    data = path.read_bytes()
    if len(damage) < 24:
        path.write_bytes(data[: 24 * at] + damage)  # cut within an entry
    else:
        path.write_bytes(data[: 24 * at] + damage + data[24 * (at + 1) :])

    log, _ = reopen(tmp_path, config, recovery_point=expected[8].offset)

    assert entries(log) == expected


def test_a_step_of_an_index_rebuild_reads_few_batches(tmp_path: Path) -> None:
    log = new_log(tmp_path, dataclasses.replace(DELAYING, segment_bytes=1 << 24))
    count = 5 * HEADERS_AT_A_TIME
    for _ in range(count):
        append(log, delayed(1))
    expected = entries(log)
    assert log.segments.active.delays is not None
    log.segments.active.delays.make_void()

    rebuild = log.delays.rebuild(0)
    steps = len(list(rebuild.steps()))
    rebuild.sync()
    rebuild.put_in_place()
    rebuild.close()

    assert steps == count // HEADERS_AT_A_TIME - 1, "the last one comes with what follows"
    assert entries(log) == expected
