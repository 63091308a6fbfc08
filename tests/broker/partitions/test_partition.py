"""A partition and its leader: appends, waiters that are woken, and changes of role."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.partitions.partition import Partition
from config.topic import TopicConfig
from protocol.errors import ApiError, ErrorCode
from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
from storage.append.append_source import FROM_CLIENT
from storage.errors import LogDirectoryError
from tests.broker.replica_fetchers.harness import surroundings
from tests.storage.produced import NOW_MS, TOPIC_ID, batch, open_directories

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOCAL_ID = 1


class ManualTimers:
    """Runs what was put off when the test says so."""

    def __init__(self) -> None:
        self.soon_calls: list[Callable[[], object]] = []

    def soon(self, callback: Callable[[], object]) -> None:
        self.soon_calls.append(callback)

    def run(self) -> None:
        calls, self.soon_calls = self.soon_calls, []
        for call in calls:
            call()


class CountingWatcher:
    def __init__(self) -> None:
        self.checks = 0

    def check(self) -> None:
        self.checks += 1


@pytest.fixture
def timers() -> ManualTimers:
    return ManualTimers()


@pytest.fixture
def partition(tmp_path: Path, timers: ManualTimers) -> Partition:
    """Return a partition without a role."""
    directories = open_directories(tmp_path)
    config = TopicConfig(min_insync_replicas=2)
    log = directories.create("flights", 0, TOPIC_ID, config, NOW_MS)
    return Partition(log, surroundings(LOCAL_ID, timers))


def state(
    epoch: int = 0,
    leader: int = LOCAL_ID,
    isr: tuple[int, ...] = (LOCAL_ID,),
    replicas: tuple[int, ...] = (LOCAL_ID,),
) -> LeaderAndIsrPartitionState:
    return LeaderAndIsrPartitionState(
        partition_index=0,
        controller_epoch=1,
        leader=leader,
        leader_epoch=epoch,
        isr=list(isr),
        partition_epoch=0,
        replicas=list(replicas),
    )


def append(partition: Partition, count: int = 1, acks: int = -1) -> int:
    return partition.append_records(batch(count), acks, FROM_CLIENT, NOW_MS).first_offset


def test_a_leader_whose_epoch_cannot_be_written_does_not_lead(partition: Partition) -> None:
    partition.assume(state(4, leader=2, isr=(1, 2), replicas=(1, 2)))
    failure = LogDirectoryError(partition.log.directory.path, "planted")
    partition.log.directory.failure = failure
    led = state(5, isr=(1, 2), replicas=(1, 2))
    with pytest.raises(LogDirectoryError):
        partition.assume(led)
    partition.log.directory.failure = None

    with pytest.raises(ApiError) as refused:
        append(partition)
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (partition.leader_id, partition.leader_epoch) == (2, 4)

    assert partition.assume(led)
    append(partition)
    assert partition.log.high_watermark == 0, "the follower has nothing yet"


def code_of_append(partition: Partition, acks: int = -1) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        append(partition, acks=acks)
    return refused.value.code


def test_partition_without_a_role_takes_nothing(partition: Partition) -> None:
    assert code_of_append(partition) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_lone_leader_commits_at_once(partition: Partition) -> None:
    partition.assume(state(epoch=3))

    assert append(partition, 5) == 0

    assert (partition.log.high_watermark, partition.log.latest_epoch) == (5, 3)
    assert partition.readable_end(is_read_committed=False) == 5


def test_min_isr_is_bounded_by_the_number_of_replicas(partition: Partition) -> None:
    """Given min.insync.replicas=2 and one replica in all, then one in-sync replica is enough."""
    partition.assume(state())
    assert append(partition) == 0

    partition.assume(state(replicas=(1, 2, 3)))

    assert code_of_append(partition, acks=-1) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert append(partition, acks=1) == 1


def test_leader_with_followers_does_not_commit_alone(partition: Partition) -> None:
    partition.assume(state(isr=(1, 2), replicas=(1, 2)))

    append(partition, 5)

    assert partition.log.high_watermark == 0


def test_watchers_look_once_after_many_appends(partition: Partition, timers: ManualTimers) -> None:
    partition.assume(state())
    watcher, gone = CountingWatcher(), CountingWatcher()
    partition.watch(watcher)
    partition.watch(gone)
    partition.unwatch(gone)

    for _ in range(10):
        append(partition)
    assert watcher.checks == 0, "they look after what is being handled now"
    timers.run()
    assert watcher.checks == 1

    append(partition)
    timers.run()
    assert (watcher.checks, gone.checks) == (2, 0)


def test_appends_schedule_nothing_without_watchers(
    partition: Partition, timers: ManualTimers
) -> None:
    partition.assume(state())

    append(partition)

    assert timers.soon_calls == []


def test_watchers_may_come_and_go_while_they_are_woken(
    partition: Partition, timers: ManualTimers
) -> None:
    partition.assume(state())
    later = CountingWatcher()

    class Leaving(CountingWatcher):
        def check(self) -> None:
            super().check()
            partition.unwatch(self)
            partition.watch(later)

    leaving = Leaving()
    partition.watch(leaving)
    for _ in range(2):
        append(partition)
        timers.run()

    assert (leaving.checks, later.checks) == (1, 1)


def test_commit_waiters_are_called_in_the_order_of_their_offsets(partition: Partition) -> None:
    partition.log.config = TopicConfig()
    partition.assume(state(isr=(1, 2), replicas=(1, 2)))
    append(partition, 6)
    calls: list[tuple[int, ErrorCode]] = []
    for offset in (4, 2, 9, 2):
        partition.when_committed(offset, lambda code, offset=offset: calls.append((offset, code)))  # type: ignore[misc]
    partition.when_committed(0, lambda code: calls.append((0, code)))
    assert calls == [(0, ErrorCode.NONE)], "what is committed already is told at once"

    partition.assume(state(isr=(1,), replicas=(1, 2)))

    assert calls[1:] == [(2, ErrorCode.NONE), (2, ErrorCode.NONE), (4, ErrorCode.NONE)]


class RaisingWatcher(CountingWatcher):
    def check(self) -> None:
        super().check()
        raise BrokenPipeError


@pytest.mark.parametrize("is_follower", [False, True])
def test_a_watcher_that_raises_is_dropped_and_the_others_are_called(
    partition: Partition,
    timers: ManualTimers,
    caplog: pytest.LogCaptureFixture,
    is_follower: bool,
) -> None:
    replicas = (LOCAL_ID, 2) if is_follower else (LOCAL_ID,)
    partition.assume(state(isr=replicas, replicas=replicas))
    watchers = [CountingWatcher(), RaisingWatcher(), CountingWatcher()]
    for watcher in watchers:
        if is_follower:
            partition.watch_as_follower(watcher)
        else:
            partition.watch(watcher)

    for _ in range(2):
        append(partition)
        timers.run()

    assert [watcher.checks for watcher in watchers] == [2, 1, 2]
    assert [record.levelname for record in caplog.records] == ["ERROR"]


@pytest.mark.parametrize("is_lost", [False, True])
def test_commit_waiter_that_raises_costs_the_others_nothing(
    partition: Partition, caplog: pytest.LogCaptureFixture, is_lost: bool
) -> None:
    partition.assume(state(isr=(LOCAL_ID, 2), replicas=(LOCAL_ID, 2)))
    append(partition)
    codes: list[ErrorCode] = []

    def fail(_: ErrorCode) -> None:
        raise BrokenPipeError

    for callback in (codes.append, fail, codes.append):
        partition.when_committed(1, callback)
    if is_lost:
        partition.retire()
    else:
        partition.fetched_by(2, -1, 1, 0)

    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER if is_lost else ErrorCode.NONE] * 2
    assert [record.levelname for record in caplog.records] == ["ERROR"]


@pytest.mark.parametrize("loss", ["another leads", "the replica leaves"])
def test_lost_leadership_fails_waiters_and_wakes_watchers(
    partition: Partition, timers: ManualTimers, loss: str
) -> None:
    partition.assume(state(isr=(1, 2), replicas=(1, 2)))
    append(partition, 3)
    codes: list[ErrorCode] = []
    partition.when_committed(3, codes.append)
    watcher = CountingWatcher()
    partition.watch(watcher)

    if loss == "another leads":
        partition.assume(state(epoch=1, leader=2, isr=(1, 2), replicas=(1, 2)))
    else:
        partition.retire()
    timers.run()

    assert codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert watcher.checks == 1
    assert code_of_append(partition) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(ApiError):
        partition.check_leader(-1)


def test_older_leader_epoch_changes_nothing(partition: Partition) -> None:
    partition.assume(state(epoch=5))

    assert not partition.assume(state(epoch=4, leader=2))

    assert (partition.is_leader, partition.leader_epoch) == (True, 5)


def test_each_new_epoch_begins_at_the_log_end_and_a_repeated_one_does_not(
    partition: Partition,
) -> None:
    partition.assume(state(epoch=1))
    append(partition, 4)
    partition.assume(state(epoch=1))
    append(partition, 2)
    partition.assume(state(epoch=7))

    assert partition.leader_epoch_start_offset == 6
    append(partition, 1)
    assert [partition.log.epochs.epoch_at(offset) for offset in (0, 5, 6)] == [1, 1, 7]


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_readers_epoch_must_be_the_leaders(
    partition: Partition, epoch: int, code: ErrorCode
) -> None:
    partition.assume(state(epoch=5))
    partition.check_leader(5)
    partition.check_leader(-1)

    with pytest.raises(ApiError) as refused:
        partition.check_leader(epoch)

    assert refused.value.code == code
