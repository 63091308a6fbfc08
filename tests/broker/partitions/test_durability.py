"""Appends that wait for the disk: what is committed, and who is answered when."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from broker.partitions.partition import Partition
from config.topic import TopicConfig
from protocol.errors import ApiError, ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from storage.append.append_source import FROM_CLIENT
from tests.broker.partitions.test_partition import ManualTimers
from tests.broker.replica_fetchers.harness import surroundings
from tests.storage.produced import NOW_MS, TOPIC_ID, Producer, batch, open_directories
from tests.support.loop_watch import disk_in_place

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from broker.partitions.durability import Durability

LOCAL_ID, FOLLOWER = 1, 2
EACH = TopicConfig(flush_messages=1)


class HeldDisk:
    """Flushes when the test says so."""

    def __init__(self) -> None:
        self.asked: list[Durability] = []
        self.works: list[tuple[Durability, Callable[[], None]]] = []

    def add(self, log: Durability) -> None:
        if log not in self.asked:
            self.asked.append(log)

    def begin(self) -> None:
        """Start what was asked for."""
        asked, self.asked = self.asked, []
        self.works += [(log, log.start()) for log in asked]

    def end(self, error: ApiError | None = None) -> None:
        """End what was started."""
        works, self.works = self.works, []
        for log, work in works:
            with disk_in_place():
                work()
            log.ended(error)

    def flush(self) -> None:
        self.begin()
        self.end()


class Led:
    """A partition whose appends wait for the disk, and the results of its waiters."""

    def __init__(self, directory: Path, config: TopicConfig = EACH, *others: int) -> None:
        self.disk = HeldDisk()
        log = open_directories(directory).create("flights", 0, TOPIC_ID, config, NOW_MS)
        self.around = surroundings(LOCAL_ID, ManualTimers(), alive=others)
        self.around = self.around._replace(flushes=self.disk)
        self.partition = Partition(log, self.around)
        self.replicas = (LOCAL_ID, *others)
        self.told: list[tuple[str, ErrorCode]] = []
        self.assume()

    @property
    def high_watermark(self) -> int:
        return self.partition.log.high_watermark

    def assume(self, leader: int = LOCAL_ID, epoch: int = 0) -> None:
        self.partition.assume(
            LeaderAndIsrPartitionState(
                partition_index=0,
                controller_epoch=1,
                leader=leader,
                leader_epoch=epoch,
                isr=list(self.replicas),
                partition_epoch=0,
                replicas=list(self.replicas),
            )
        )

    def append(self, count: int = 1, producer: Producer | None = None) -> int:
        records = batch(count, producer=producer)
        return self.partition.append_records(records, -1, FROM_CLIENT, NOW_MS).last_offset + 1

    def wait(self, end: int) -> None:
        """Wait for offset `end` as acks=1 and acks=all do."""
        self.partition.when_flushed(end, lambda code: self.told.append((f"1 to {end}", code)))
        self.partition.when_committed(end, lambda code: self.told.append((f"all to {end}", code)))

    def configure(self, config: TopicConfig) -> None:
        self.partition.log.config = config
        self.partition.config_changed()


def ok(*who: str) -> list[tuple[str, ErrorCode]]:
    return [(one, ErrorCode.NONE) for one in who]


def test_nothing_is_committed_or_acknowledged_before_it_is_on_the_disk(tmp_path: Path) -> None:
    led = Led(tmp_path)

    led.wait(led.append(3))
    assert (led.high_watermark, led.told) == (0, [])
    led.disk.begin()
    assert (led.high_watermark, led.told) == (0, [])
    led.disk.end()

    assert led.high_watermark == 3
    assert led.told == ok("all to 3", "1 to 3")


def test_appends_during_a_flush_share_the_next_flush(tmp_path: Path) -> None:
    led = Led(tmp_path)
    led.wait(led.append())
    led.disk.begin()
    for _ in range(5):
        led.wait(led.append())

    led.disk.end()
    assert led.high_watermark == 1
    led.disk.begin()
    assert len(led.disk.works) == 1
    led.disk.end()

    assert led.high_watermark == 6
    assert led.told[:2] == ok("all to 1", "1 to 1")
    assert led.told[2:] == ok(
        *(f"all to {end}" for end in range(2, 7)), *(f"1 to {end}" for end in range(2, 7))
    )
    assert led.disk.asked == []


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7])
def test_fewer_than_flush_messages_are_committed_and_not_on_the_disk(
    tmp_path: Path, limit: int
) -> None:
    led = Led(tmp_path, TopicConfig(flush_messages=limit))

    for end in (2, 4, 6):
        led.append(2)
        assert led.high_watermark == min(end, limit - 1)
    assert bool(led.disk.asked) is (limit <= 6)

    led.disk.flush()
    assert led.high_watermark == 6


def test_only_a_whole_flush_advances_the_recovery_point(tmp_path: Path) -> None:
    led = Led(tmp_path)
    led.append(2)

    led.disk.flush()

    assert led.partition.log.recovery_point == 0
    led.partition.log.flush()
    assert led.partition.log.recovery_point == 2


def test_followers_and_the_own_disk_are_both_waited_for(tmp_path: Path) -> None:
    led = Led(tmp_path, EACH, FOLLOWER)
    led.wait(led.append(2))

    led.partition.fetched_by(FOLLOWER, 7, 2, 0)
    assert led.high_watermark == 0
    led.disk.flush()
    assert led.told == ok("all to 2", "1 to 2")

    led.wait(led.append(2))
    led.disk.flush()
    assert led.told[2:] == ok("1 to 4")
    assert led.high_watermark == 2
    led.partition.fetched_by(FOLLOWER, 7, 4, 0)
    assert led.told[3:] == ok("all to 4")


def test_a_disk_error_fails_all_waiters_and_commits_nothing(tmp_path: Path) -> None:
    led = Led(tmp_path)
    led.wait(led.append(2))
    led.disk.begin()
    led.wait(led.append(2))

    led.disk.end(ApiError(ErrorCode.KAFKA_STORAGE_ERROR))

    assert led.high_watermark == 0
    assert {code for _, code in led.told} == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert len(led.told) == 4


def test_a_duplicate_waits_for_the_flush_that_failed_before(tmp_path: Path) -> None:
    led = Led(tmp_path)
    led.append(2, Producer())
    led.disk.begin()
    led.disk.end(ApiError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert led.disk.asked == []

    end = led.append(2, Producer())
    led.wait(end)

    assert (end, led.partition.log.log_end_offset) == (2, 2)
    assert led.told == []
    led.disk.flush()
    assert led.told == ok("all to 2", "1 to 2")


def test_a_change_of_leader_fails_the_waiters(tmp_path: Path) -> None:
    led = Led(tmp_path, EACH, FOLLOWER)
    led.wait(led.append(2))
    led.disk.begin()

    led.assume(FOLLOWER, epoch=1)

    assert {code for _, code in led.told} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert len(led.told) == 2
    led.disk.end()
    assert (led.high_watermark, len(led.told)) == (0, 2)


def test_a_retired_replica_fails_its_waiters(tmp_path: Path) -> None:
    led = Led(tmp_path)
    led.wait(led.append(2))

    led.partition.retire()

    assert {code for _, code in led.told} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert len(led.told) == 2


def test_a_flush_of_truncated_records_does_not_count(tmp_path: Path) -> None:
    led = Led(tmp_path, EACH, FOLLOWER)
    led.append(4)
    led.assume(FOLLOWER, epoch=1)
    led.disk.begin()
    led.partition.leader_ends_at(2)
    durability = led.partition.durability
    assert durability is not None
    assert led.partition.log.log_end_offset == 2

    led.partition.append_from_leader(batch(2, offset=2), 0, 0, NOW_MS)
    led.disk.end()

    assert durability.limit == 0
    led.disk.flush()
    assert durability.limit == 4


def test_a_cut_below_what_was_flushed_lowers_the_limit(tmp_path: Path) -> None:
    led = Led(tmp_path, EACH, FOLLOWER)
    led.append(4)
    led.disk.flush()
    led.assume(FOLLOWER, epoch=1)
    durability = led.partition.durability
    assert durability is not None
    assert durability.limit == 4

    led.partition.leader_ends_at(2)
    led.partition.append_from_leader(batch(2, offset=2), 0, 0, NOW_MS)

    assert durability.limit == 2
    led.disk.flush()
    assert durability.limit == 4


def test_segments_that_rolled_meanwhile_are_flushed_too(tmp_path: Path) -> None:
    small = dataclasses.replace(EACH, segment_bytes=len(batch(2)))
    led = Led(tmp_path, small)
    log = led.partition.log
    for _ in range(4):
        led.append(2)
    assert len(log.segments) == 4

    led.disk.flush()

    assert led.high_watermark == 8


def test_flush_messages_can_be_set_and_unset_on_a_leader(tmp_path: Path) -> None:
    led = Led(tmp_path, TopicConfig())
    assert led.append(2) == led.high_watermark == 2
    assert led.partition.durability is None

    led.configure(EACH)
    assert led.high_watermark == 2, "it never goes back"
    led.wait(led.append(2))
    assert (led.high_watermark, led.told) == (2, [])
    led.configure(TopicConfig())

    assert led.high_watermark == 4
    assert sorted(led.told) == sorted(ok("1 to 4", "all to 4"))
    led.disk.flush()
    assert led.append(2) == led.high_watermark == 6


def test_raising_flush_messages_completes_the_waiters(tmp_path: Path) -> None:
    """The flush that was asked for may be held, and be due no more once it is not."""
    led = Led(tmp_path)
    led.wait(led.append())

    led.configure(dataclasses.replace(EACH, flush_messages=3))

    assert led.told == ok("1 to 1", "all to 1")


def test_unflushed_records_found_at_start_are_flushed_before_commit(tmp_path: Path) -> None:
    log = open_directories(tmp_path).create("flights", 0, TOPIC_ID, EACH, NOW_MS)
    log.append_as_leader(batch(3), 0, NOW_MS, FROM_CLIENT)
    led = Led(tmp_path / "other")
    led.partition = Partition(log, led.around)

    led.assume()
    assert led.high_watermark == 0
    assert led.partition.is_behind_its_epoch
    led.disk.flush()

    assert led.high_watermark == 3
