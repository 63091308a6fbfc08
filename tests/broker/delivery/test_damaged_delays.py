"""Delay indexes damaged while their broker runs: rebuilt, and no record lost or early.

The index is derived from the log, so nothing that was acknowledged may hang on it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

import pytest

from broker.partitions.delay_repair import MOST_ROUNDS
from broker.runtime.timers import Timers
from protocol.records.batch import DELAY_BIT, parse_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.control import ControlType, EndTransactionMarker, build_marker
from storage.delays.delay_index import ENTRY, DelayKind
from storage.errors import DamagedDelaysError
from tests.broker.delivery.judged_log import check_complete, check_order, judge
from tests.broker.delivery.replicated import DELAYING, Replica
from tests.storage.produced import NOW_MS
from tests.support.broker_parts.virtual_time import run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.segment.segment import Segment

BATCHES = 12
DELAY_MS = 60_000
SOON_MS = 2_000
"""Time within which a damaged index is rebuilt."""


def waiting(number: int, delay_ms: int = DELAY_MS) -> memoryview:
    headers = (("deliver-after", b"%d" % delay_ms),)
    records = [NewRecord(NOW_MS, b"key", b"%d-%d" % (number, part), headers) for part in (0, 1)]
    return memoryview(build_batch([*records, NewRecord(NOW_MS, b"key", bytes(200))]))


async def passed(milliseconds: int) -> None:
    await Timers(asyncio.get_running_loop()).sleep(milliseconds)


async def turn() -> None:
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop


async def leading() -> Replica:
    """A leader of several segments, each with records that wait."""
    replica = Replica(1, DELAYING)
    replica.begin_life()
    replica.lead(0)
    for number in range(BATCHES):
        replica.append(waiting(number, 1 if number == 1 else DELAY_MS))
        await passed(10)
    replica.log.flush()
    for segment in replica.log.segments:
        segment.write_index_entries()
        assert segment.delays is not None
        assert len(segment.delays) > 1
    assert len(replica.log.segments) > 2
    return replica


def change(replica: Replica, segment: Segment, damage: Callable[[bytes], bytes]) -> None:
    """Damage the file, behind the back of all who know it."""
    assert segment.delays is not None
    file = replica.disk.open(segment.delays.path)
    damaged = damage(replica.disk.read(segment.delays.path))
    file.truncate(0)
    file.write_at(0, damaged)


def remove(replica: Replica, segment: Segment) -> None:
    assert segment.delays is not None
    replica.disk.remove(segment.delays.path)


def flipped(at: int, mask: int) -> Callable[[bytes], bytes]:
    def flip(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[at] ^= mask
        return bytes(changed)

    return flip


def entry_is_beyond_the_log(data: bytes) -> bytes:
    offset, place, timestamp = ENTRY.unpack_from(data)
    return ENTRY.pack(offset, place | 1 << 40, timestamp) + data[ENTRY.size :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut within an entry": lambda data: data[: ENTRY.size + 5],
    "entries are missing at the end": lambda data: data[: -ENTRY.size],
    "emptied": lambda _: b"",
    "zeros": lambda data: bytes(len(data)),
    "offset is too high": flipped(6, 0x40),
    "offset is another": flipped(ENTRY.size + 7, 0x01),
    "position is beyond the log": entry_is_beyond_the_log,
    "kind is another": flipped(15, 0x02),
    "kind is none": flipped(15, 0x40),
    "time is another": flipped(ENTRY.size + 23, 0x10),
}


def check(replica: Replica) -> None:
    """Check that all was delivered, in order, and that the indexes match the log."""
    found = judge(replica.log)
    check_order(found)
    check_complete(found)
    assert replica.failures == []
    check_indexes(replica)


def check_indexes(replica: Replica) -> None:
    expected = [
        header.base_offset
        for header in map(parse_header, replica.log.read_batches(0, replica.log.log_end_offset))
        if header.attributes & DELAY_BIT
    ]
    assert [entry.offset for entry in replica.log.delays.entries_from(0)] == expected
    assert [name for name in replica.disk.names(replica.log.path) if ".delays." in name] == []


async def begin_again(replica: Replica, epoch: int = 1) -> None:
    """Lead again: all that waits is read from the log."""
    replica.resign()
    await passed(1)
    replica.lead(epoch)
    await passed(SOON_MS)


@pytest.mark.parametrize("index", [0, 1, -1], ids=["first", "second", "active"])
@pytest.mark.parametrize("name", [*DAMAGES, "removed"])
def test_a_damaged_delay_index_is_rebuilt_and_each_record_delivered_once(
    name: str, index: int
) -> None:
    async def scenario() -> None:
        replica = await leading()
        segment = replica.log.segments[index]
        if name == "removed":
            remove(replica, segment)
        else:
            change(replica, segment, DAMAGES[name])

        await begin_again(replica)

        assert len(replica.deliveries) == 2 * (BATCHES - 1)
        await passed(2 * DELAY_MS)
        check(replica)

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("index", [0, -1], ids=["first", "active"])
def test_records_appended_during_a_rebuild_are_delivered(index: int) -> None:
    async def scenario() -> None:
        replica = await leading()
        change(replica, replica.log.segments[index], lambda _: b"")
        replica.resign()
        await passed(1)
        replica.lead(1)
        for number in range(60):
            replica.append(waiting(BATCHES + number))
            await (turn() if number % 2 else passed(5))
            if number % 10 == 0:
                replica.log.flush()  # which vouches for the indexes as well
        await passed(SOON_MS)

        assert len(replica.deliveries) == 2 * (BATCHES - 1 + 60)
        await passed(2 * DELAY_MS)
        check(replica)

    run_in_virtual_time(scenario())


def test_a_new_index_waits_for_the_disk_again_if_the_log_was_flushed_meanwhile() -> None:
    """The flush vouches for what the disk has not taken in of the new index."""

    async def scenario() -> None:
        replica = await leading()
        segment = replica.log.segments.active
        change(replica, segment, lambda _: b"")
        rebuild = replica.log.delays.rebuild(segment.base_offset)
        for number in range(MOST_ROUNDS):
            for _ in rebuild.steps():
                pass
            rebuild.sync()
            if number == 0:
                replica.append(waiting(77))
                replica.log.flush()
            for _ in rebuild.steps():
                pass
            rebuild.put_in_place()
            if rebuild.is_over:
                break
        assert number == 1
        rebuild.close()
        replica.disk.lose_power(Random(1))

        check_indexes(replica)

    run_in_virtual_time(scenario())


def resign(replica: Replica) -> None:
    replica.resign()


def truncate(replica: Replica) -> None:
    """Truncate as a follower does."""
    replica.resign()
    replica.log.truncate_to(replica.log.segments.active.base_offset + 1)
    replica.log.append_as_follower(bytes(following(replica)), NOW_MS)


def following(replica: Replica) -> bytearray:
    batch = bytearray(build_batch([NewRecord(NOW_MS, None, b"another")]))
    batch[:8] = replica.log.log_end_offset.to_bytes(8, "big")
    return batch


def start_over(replica: Replica) -> None:
    replica.resign()
    replica.log.truncate_fully_and_start_at(500)


def give_up_segments(replica: Replica) -> None:
    replica.log.advance_high_watermark(replica.log.log_end_offset)
    replica.log.advance_log_start_offset(replica.log.segments.active.base_offset)
    with suppress(DamagedDelaysError):  # then retention waits
        replica.log.delete_expired(NOW_MS)


def delete(replica: Replica) -> None:
    replica.resign()
    path = replica.log.path
    replica.log.give_up()
    replica.disk.rename(path, f"{path}-deleted")
    replica.disk.make_directory(path)


@pytest.mark.parametrize("happens", [resign, truncate, start_over, give_up_segments, delete])
@pytest.mark.parametrize("after_turns", range(1, 14, 2))
@pytest.mark.parametrize("index", [0, -1], ids=["first", "active"])
def test_changes_to_the_log_while_a_delay_index_is_rebuilt_are_harmless(
    index: int, after_turns: int, happens: Callable[[Replica], None]
) -> None:
    async def scenario() -> None:
        replica = await leading()
        damage = DamagedDelaysError("found by another", replica.log.segments[index].base_offset)
        change(replica, replica.log.segments[index], lambda data: data[: ENTRY.size])
        delivery = replica.deliveries.of(replica.partition)
        assert delivery is not None
        delivery.note_damage(damage)
        await passed(100)
        for _ in range(after_turns):
            await turn()

        happens(replica)
        await passed(SOON_MS)

        assert replica.failures == []
        if happens is delete:
            assert replica.disk.names(replica.log.path) == []
            return
        assert replica.log.directory.failure is None
        await begin_again(replica)
        await passed(2 * DELAY_MS)
        if happens is give_up_segments:
            check_order(judge(replica.log))
            check_indexes_from_the_start(replica)
        else:
            check(replica)

    run_in_virtual_time(scenario())


def check_indexes_from_the_start(replica: Replica) -> None:
    entries = list(replica.log.delays.entries_from(0))
    for entry in entries:
        replica.log.delays.check(entry)


def test_a_damaged_log_keeps_its_delay_index_and_delivery_retries() -> None:
    async def scenario() -> None:
        replica = await leading()
        segment = replica.log.segments[0]
        change(replica, segment, lambda data: data[: ENTRY.size])
        file = replica.disk.open(segment.path)
        sound = file.read_at(0, segment.size)
        file.write_at(16, b"\x09")  # of the first batch, the version of its format

        await begin_again(replica)
        await passed(DELAY_MS)
        assert replica.log.directory.failure is None
        assert replica.failures == []
        assert len(replica.deliveries) == 0
        assert replica.log.delays.exist

        file.write_at(0, sound)
        await passed(2 * DELAY_MS)
        check(replica)

    run_in_virtual_time(scenario())


def test_the_end_of_a_transaction_that_is_taken_for_a_delivery_is_noticed() -> None:
    async def scenario() -> None:
        replica = await leading()
        headers = (("deliver-after", b"%d" % DELAY_MS),)
        batch = build_batch(
            [NewRecord(NOW_MS, None, b"v", headers)],
            producer_id=5,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        replica.append(memoryview(batch))
        end = EndTransactionMarker(ControlType.COMMIT, 0)
        marker = build_marker(end, producer_id=5, producer_epoch=0, now_ms=replica.clock.now_ms())
        replica.append_marker(memoryview(marker))
        segment = replica.log.segments.active
        segment.write_index_entries()
        (entry,) = [
            one for one in replica.log.delays.entries_from(0) if one.kind is DelayKind.ENDED
        ]
        assert segment.delays is not None
        at = [one.offset for one in segment.delays.entries_from(0)].index(entry.offset)
        change(replica, segment, flipped(at * ENTRY.size + 15, 0x01))

        await begin_again(replica)
        await passed(2 * DELAY_MS)

        assert len(judge(replica.log).delivered) == 3 * BATCHES + 1
        check(replica)

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("cut_at", range(4))
@pytest.mark.parametrize("name", DAMAGES)
def test_a_follower_with_a_damaged_index_can_be_truncated(name: str, cut_at: int) -> None:
    async def scenario() -> None:
        replica = await leading()
        replica.resign()
        await passed(1)
        segment = replica.log.segments[1]
        assert segment.delays is not None
        offsets = [entry.offset for entry in segment.delays.entries_from(0)]
        change(replica, segment, DAMAGES[name])

        replica.log.truncate_to(offsets[min(cut_at, len(offsets) - 1)])
        replica.log.append_as_follower(bytes(following(replica)), NOW_MS)
        replica.lead(1)
        await passed(SOON_MS)
        replica.append(waiting(99))
        await passed(2 * DELAY_MS)

        check(replica)

    run_in_virtual_time(scenario())
