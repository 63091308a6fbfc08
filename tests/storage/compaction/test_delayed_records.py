"""Cleaning a log in which records wait or have waited: what stays, and at which step it may die."""

from __future__ import annotations

import dataclasses
import shutil
from typing import TYPE_CHECKING

import pytest

from protocol.delays.delivered_batch import DeliveryPoint, build_delivered, parse_point
from protocol.delays.delivered_remainder import delivered_remainder
from protocol.delays.relay_batch import Position, Relay, build_relay
from protocol.records.batch import DELAY_BIT, parse_header, replace_records
from protocol.records.builder import NewRecord, build_batch, encode_record
from protocol.records.compression import Codec
from protocol.records.record import Record, iterate_records
from storage.append.append_source import FROM_COORDINATOR
from storage.delays.delay_index import DelayKind, kind_of
from storage.filesystem import LocalFileSystem
from storage.log.log_loader import LoadHints
from tests.protocol.delays.due_records import due_record
from tests.storage.compaction.compacting import compact, put, records_in
from tests.storage.compaction.test_swap_crashes import KilledError, MortalFileSystem, opened
from tests.storage.produced import NOW_MS, SMALL, Producer, append, new_log, reopen

if TYPE_CHECKING:
    from pathlib import Path

    from storage.log.log import Log

CONFIG = dataclasses.replace(
    SMALL,
    segment_bytes=1500,
    cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=0,
    delivery_delay_enable=True,
)
LATER_MS = NOW_MS + 86_400_000


def wait(log: Log, *keys: bytes, value: bytes | None = b"late", sequence: int = -1) -> int:
    """Append a batch of records that wait; returns the offset of the first."""
    headers = (("deliver-after", b"1m"),)
    records = [NewRecord(NOW_MS, key, value, headers) for key in keys]
    who = Producer(7, 0, sequence) if sequence >= 0 else Producer(-1, -1, -1)
    batch = build_batch(
        records,
        producer_id=who.producer_id,
        producer_epoch=who.epoch,
        base_sequence=who.sequence,
    )
    return append(log, memoryview(batch)).first_offset


def deliver(log: Log, waiting_from: int, *sources: tuple[int, bytes], due_ms: int = 60_000) -> int:
    """Append the delivery of records; returns its offset."""
    due = [
        due_record(NOW_MS + due_ms, Record(source, NOW_MS, key, b"late")) for source, key in sources
    ]
    return deliver_batch(log, build_delivered(due, waiting_from, Codec.NONE))


def deliver_batch(log: Log, data: bytearray) -> int:
    info = log.append_as_leader(memoryview(data), 0, NOW_MS, FROM_COORDINATOR)
    log.advance_high_watermark(log.log_end_offset)
    return info.first_offset


def close_segment(log: Log) -> None:
    log.roll(NOW_MS)
    put(log, filler="x")
    log.flush()


def kinds(log: Log) -> list[tuple[int, DelayKind]]:
    return [(entry.offset, entry.kind) for entry in log.delays.entries_from(0)]


def check_index(log: Log) -> None:
    """Indexes and headers say the same."""
    found = [
        (header.base_offset, kind_of(header), header.max_timestamp)
        for header in map(parse_header, log.read_batches(log.log_start_offset, log.log_end_offset))
        if header.attributes & DELAY_BIT
    ]
    entries = list(log.delays.entries_from(0))
    assert [(one.offset, one.kind, one.timestamp) for one in entries] == found
    for entry in entries:
        assert parse_header(log.delays.read(entry)).base_offset == entry.offset


def test_compaction_keeps_delayed_records_and_drops_delivered_ones(tmp_path: Path) -> None:
    log = new_log(tmp_path, CONFIG)
    first, second = wait(log, b"a"), wait(log, b"b")
    delivered = deliver(log, second, (first, b"a"))
    close_segment(log)

    compact(log, LATER_MS)

    assert kinds(log) == [(second, DelayKind.WAITING), (delivered, DelayKind.DELIVERED)]
    assert (delivered, b"a", b"late") in records_in(log)
    check_index(log)


def test_the_key_of_a_record_counts_from_its_delivery_on(tmp_path: Path) -> None:
    log = new_log(tmp_path, CONFIG)
    source = wait(log, b"a")
    put(log, a="sent later, superseded")
    delivered = deliver(log, source + 2, (source, b"a"))
    close_segment(log)

    compact(log, LATER_MS)

    found = [(offset, value) for offset, key, value in records_in(log) if key == b"a"]
    assert found == [(delivered, b"late")]


def test_delivery_point_survives_compaction_of_its_records(tmp_path: Path) -> None:
    log = new_log(tmp_path, CONFIG)
    sources = [wait(log, b"a", b"b", b"c"), wait(log, b"d")]
    at = deliver(log, 3, *[(sources[0] + index, key) for index, key in enumerate([b"a", b"b"])])
    point = log.delays.point()
    put(log, a="newer")
    close_segment(log)

    compact(log, LATER_MS)
    assert [key for offset, key, _ in records_in(log) if offset in (at, at + 1)] == [b"b"]
    assert log.delays.point() == point

    put(log, b="newer")
    close_segment(log)
    compact(log, LATER_MS)
    assert not [key for offset, key, _ in records_in(log) if offset in (at, at + 1)]
    assert log.delays.point() == point == DeliveryPoint(NOW_MS + 60_000, sources[0] + 1, 3)
    assert log.delays.waiting_at(sources[1]) is not None
    check_index(log)


def test_a_delivered_batch_keeps_its_time_when_its_last_record_goes(tmp_path: Path) -> None:
    log = new_log(tmp_path, CONFIG)
    source = wait(log, b"a", b"b")
    due = [
        due_record(NOW_MS + 1000 * (1 + index), Record(source + index, NOW_MS, key, b"late"))
        for index, key in enumerate([b"a", b"b"])
    ]
    at = deliver_batch(log, build_delivered(due, source + 2, Codec.LZ4))
    put(log, b="newer")
    close_segment(log)

    compact(log, LATER_MS)

    assert [key for offset, key, _ in records_in(log) if offset in (at, at + 1)] == [b"a"]
    (entry,) = [one for one in log.delays.entries_from(0) if one.kind is DelayKind.DELIVERED]
    assert entry.timestamp == NOW_MS + 2000
    assert log.delays.point() == DeliveryPoint(NOW_MS + 2000, source + 1, source + 2)


def test_a_users_delivery_point_header_is_ignored() -> None:
    own = (("delivery-point", b"1,2,3"),)
    due = [due_record(9, Record(4, 1, b"a", b"1")), due_record(9, Record(5, 1, b"b", b"2", own))]
    batch = build_delivered(due, 6, Codec.NONE)
    second = list(iterate_records(batch))[1]
    rest = build_batch([NewRecord(9, second.key, second.value, second.headers)])
    header = parse_header(rest)._replace(attributes=DELAY_BIT)
    body = encode_record(NewRecord(9, second.key, second.value, second.headers), 1, 9)
    left = delivered_remainder(batch, replace_records(header, body))

    assert parse_point(left) == DeliveryPoint(9, 5, 6)


def test_sequence_numbers_of_dropped_delayed_records_are_still_known(tmp_path: Path) -> None:
    log = new_log(tmp_path, CONFIG)
    source = wait(log, b"a", b"b", sequence=0)
    deliver(log, source + 2, (source, b"a"), (source + 1, b"b"))
    close_segment(log)
    compact(log, LATER_MS)
    for path in (tmp_path / "flights-0").glob("*.snapshot"):
        path.unlink()
    log.release()

    log, _ = reopen(tmp_path, CONFIG)

    assert log.delays.waiting_at(source) is None
    batch = [NewRecord(NOW_MS, key, b"late", (("deliver-after", b"1m"),)) for key in (b"a", b"b")]
    again = build_batch(batch, producer_id=7, producer_epoch=0, base_sequence=0)
    assert append(log, memoryview(again)).is_duplicate
    assert wait(log, b"a", sequence=2) == log.log_end_offset - 1


def test_the_last_relay_record_survives_compaction(tmp_path: Path) -> None:
    log = new_log(tmp_path, CONFIG)
    first = wait(log, b"a")
    relays = [Relay(5, 0, number, Position(-1, -1), Position(-1, -1)) for number in range(2)]
    for relay in relays:
        deliver_batch(log, build_relay(relay, NOW_MS))
    deliver(log, first + 3, (first, b"a"))
    close_segment(log)

    compact(log, LATER_MS)

    assert log.delays.last_relay() == relays[1]
    assert [kind for _, kind in kinds(log)].count(DelayKind.RELAYED) == 1


def test_nothing_is_dropped_for_a_delivery_that_is_not_on_the_disk(tmp_path: Path) -> None:
    log = new_log(tmp_path, CONFIG)
    first = wait(log, b"a")
    log.flush()
    on_disk = log.recovery_point
    deliver(log, first + 1, (first, b"a"))
    log.roll(NOW_MS)
    put(log, filler="x")
    log.offsets.recovery_point = on_disk  # the flush that follows a roll is not done

    compact(log, LATER_MS)

    assert kinds(log)[0] == (first, DelayKind.WAITING)


def test_a_walk_over_delays_continues_after_a_compaction(tmp_path: Path) -> None:
    """A list is read over several steps of the loop, and a segment replaced between two of them."""
    log = new_log(tmp_path, CONFIG)
    put(log, a="superseded" * 20)
    sources = [wait(log, b"w%d" % number) for number in range(3)]
    put(log, a="newer")
    expected = kinds(log)
    close_segment(log)
    walk = log.delays.entries_from(0)
    found = [next(walk)]

    compact(log, LATER_MS)

    assert parse_header(log.delays.read(found[0])).base_offset == sources[0]
    found += walk
    assert [(one.offset, one.kind) for one in found] == expected
    check_index(log)


def write_dirty_log(directory: Path) -> LoadHints:
    log = new_log(directory, CONFIG)
    keys = [b"k%d" % number for number in range(4)]
    long = wait(log, b"long")
    source = wait(log, *keys)
    deliver(log, long, *zip(range(source, source + 4), keys, strict=True))
    log.roll(NOW_MS)
    source = wait(log, *keys)
    deliver(log, long, *zip(range(source, source + 4), keys, strict=True), due_ms=61_000)
    put(log, k1="x" * 300, k2="y" * 300)
    close_segment(log)
    log.close()
    return LoadHints(True, log.recovery_point, 0, log.log_end_offset, log.cleaned_offset)


@pytest.mark.timeout(240)
def test_death_at_each_step_of_a_compaction_keeps_the_delivery_state(tmp_path: Path) -> None:
    hints = write_dirty_log(tmp_path / "model")
    filesystem = MortalFileSystem()
    shutil.copytree(tmp_path / "model", tmp_path / "whole")
    whole = opened_log(tmp_path / "whole", hints, filesystem)
    point = whole.delays.point()
    compact(whole, LATER_MS)
    assert any(step.endswith(".delays.swap") for step in filesystem.steps)
    for number, step in enumerate(filesystem.steps):
        directory = tmp_path / str(number)
        shutil.copytree(tmp_path / "model", directory)
        mortal = MortalFileSystem()
        log = opened_log(directory, hints, mortal)
        mortal.dies_at = number
        with pytest.raises(KilledError):
            compact(log, LATER_MS)

        crashed = dataclasses.replace(hints, was_clean=False)
        again = opened_log(directory, crashed, LocalFileSystem())
        assert again.delays.point() == point, step
        assert again.delays.waiting_at(0) is not None, step
        check_index(again)
        assert {key: value for _, key, value in records_in(again)} == {
            key: value for _, key, value in records_in(whole)
        }, step
        assert not list((directory / "flights-0").glob("*.swap")), step
        compact(again, LATER_MS)
        assert again.delays.point() == point
        check_index(again)


def opened_log(directory: Path, hints: LoadHints, filesystem: LocalFileSystem) -> Log:
    log = opened(directory, hints, filesystem)
    log.config = CONFIG
    return log
