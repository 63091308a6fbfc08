"""Faults during delivery: death at each step, a full disk, and the like."""

from __future__ import annotations

import asyncio
import errno
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from broker.delivery.partition_delivery import PACE_MS
from broker.runtime.timers import Timers
from protocol.errors import ApiError
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from tests.broker.delivery.judged_log import check_complete, check_order, judge
from tests.broker.delivery.replicated import DELAYING, LIMITS, Replica
from tests.broker.delivery.test_delivery_model import Scenario
from tests.storage.produced import NOW_MS
from tests.support.broker_parts.virtual_time import run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

DELAYS = b"400", b"0", b"300", b"300", b"100", b"350"
BATCHES = 6
ALL_DUE_MS = 1000


class KilledError(BaseException):
    """The process is dead: nothing of it runs any more that could tidy up."""


def batch(number: int) -> memoryview:
    """Records with and without delays, compressed or not."""
    records = [
        NewRecord(NOW_MS, b"key", b"%d-%d" % (number, index), (("deliver-after", delay),))
        for index, delay in enumerate(DELAYS)
    ]
    direct = NewRecord(NOW_MS, b"key", b"%d-direct" % number)
    codec = Codec.LZ4 if number % 2 else Codec.NONE
    return memoryview(build_batch([*records, direct], codec=codec))


async def passed(milliseconds: int) -> None:
    await Timers(asyncio.get_running_loop()).sleep(milliseconds)


async def leading() -> Replica:
    """A leader, more records waiting than it holds in memory, and nothing due yet."""
    replica = Replica(1, DELAYING)
    replica.clock.skew_ms = -ALL_DUE_MS
    replica.begin_life()
    replica.lead(0)
    for number in range(BATCHES):
        replica.append(batch(number))
    assert BATCHES * len(DELAYS) > 2 * LIMITS.memory_records
    return replica


class Steps:
    """Counts what changes a disk, and dies instead of one such step."""

    def __init__(self, replica: Replica, dies_at: int) -> None:
        self.count = 0
        self.is_dead = False
        use = replica.disk.use

        def step(life: int, count: int = 0) -> None:
            if self.is_dead or self.count == dies_at:
                self.is_dead = True
                raise KilledError
            self.count += 1
            use(life, count)

        self._replica = replica
        self._use = use
        replica.disk.use = step  # type: ignore[method-assign]

    def end(self) -> None:
        self._replica.disk.use = self._use  # type: ignore[method-assign]


async def hand_over(dies_at: int, random: Random | None) -> int:
    """Deliver until death, by a leader that takes what waits; returns the steps that it did."""
    replica = await leading()
    if random is not None:
        replica.log.flush()
    steps = Steps(replica, dies_at)
    replica.clock.skew_ms = 0
    await passed(ALL_DUE_MS)
    steps.end()
    assert all(isinstance(one, KilledError) for one in replica.failures), replica.failures
    visible = judge(replica.log).delivered_sources if random is None else []

    replica.resign()
    replica.failures.clear()
    replica.die(0, random)
    replica.lead(1)
    await passed(ALL_DUE_MS)

    found = judge(replica.log)
    check_order(found)
    check_complete(found)
    assert len(found.waited) == BATCHES * (len(DELAYS) + 1)
    assert found.delivered_sources[: len(visible)] == visible
    assert replica.failures == []
    return steps.count


@pytest.mark.parametrize("has_power", [True, False])
def test_death_at_each_step_of_handing_over_delivers_each_record_once(*, has_power: bool) -> None:
    whole = 1 << 30
    steps = run_in_virtual_time(hand_over(whole, None if has_power else Random(0)))
    assert steps > BATCHES

    for number in range(steps):
        random = None if has_power else Random(number)
        assert run_in_virtual_time(hand_over(number, random)) == number


@pytest.mark.parametrize("room", [0, 100, 400, 1500])
def test_a_full_disk_ends_delivery_and_costs_no_record(room: int) -> None:
    async def scenario() -> None:
        replica = await leading()
        enough = replica.disk.room
        replica.disk.room = room
        replica.clock.skew_ms = 0
        await passed(ALL_DUE_MS)
        assert replica.log.directory.failure is not None
        replica.disk.room = enough

        replica.resign()
        replica.failures.clear()
        replica.die(0)
        replica.lead(1)
        await passed(ALL_DUE_MS)

        found = judge(replica.log)
        check_order(found)
        check_complete(found)
        assert len(found.delivered) == BATCHES * (len(DELAYS) + 1)
        assert replica.failures == []

    run_in_virtual_time(scenario())


def test_a_full_disk_refuses_delayed_records() -> None:
    async def scenario() -> None:
        replica = await leading()
        replica.disk.room = 50
        end = replica.log.log_end_offset

        with pytest.raises(ApiError):
            replica.append(batch(9))

        assert replica.log.log_end_offset == end
        assert replica.log.directory.failure is not None

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("is_loaded", [True, False])
def test_a_topic_that_is_deleted_leaves_no_files_and_no_work(*, is_loaded: bool) -> None:
    async def scenario() -> None:
        replica = await leading()
        waiting = 20 * LIMITS.memory_records
        headers = (("deliver-after", b"1h"),)
        for _ in range(waiting):
            records = [NewRecord(NOW_MS, None, b"v", headers)]
            replica.append(memoryview(build_batch(records)))
        if is_loaded:
            await passed(1)
            assert len(replica.deliveries) >= waiting
            assert any(
                name.startswith("delivery-") for name in replica.disk.names(replica.log.path)
            )

        replica.resign()
        path = replica.log.path
        replica.log.give_up()
        replica.disk.rename(path, f"{path}-deleted")
        replica.disk.make_directory(path)  # it is created anew at once
        await passed(3 * ALL_DUE_MS)

        assert len(replica.deliveries) == 0
        assert replica.failures == []
        assert replica.disk.names(path) == []
        assert [task for task in asyncio.all_tasks() if "deliver" in task.get_name()] == []

    run_in_virtual_time(scenario())


class UncleanScenario(Scenario):
    """A leader that lacks what was acknowledged may be elected: that is lost, the rest is not."""

    def steps(self) -> dict[Callable[[], Coroutine[Any, Any, object]], int]:
        return {**super().steps(), self.elect_uncleanly: 2}

    async def elect_uncleanly(self) -> None:
        new = self.random.choice(self.replicas)
        self.committed = min(self.committed, new.log.log_end_offset)
        self.leader.resign()
        end = new.log.log_end_offset
        for replica in self.replicas:
            replica.log.truncate_to(end)
        self.leader = new
        self.sent = {offset: value for offset, value in self.sent.items() if offset < end}
        self.looked_up_to = min(self.looked_up_to, end)
        self.epoch += 1
        self.sequence, self.last_batch = 0, b""
        new.lead(self.epoch)


@pytest.mark.parametrize("seed", range(24))
def test_an_unclean_leader_delivers_its_records_once_and_in_order(seed: int) -> None:
    scenario = UncleanScenario(seed)
    run_in_virtual_time(scenario.run())
    scenario.check()


def test_a_disk_that_fails_while_a_record_is_read_ends_delivery() -> None:
    async def scenario() -> None:
        replica = await leading()

        def broken(life: int, count: int = 0) -> None:
            raise OSError(errno.EIO, f"input/output error: {life}, {count}")

        replica.disk.use = broken  # type: ignore[method-assign]
        replica.clock.skew_ms = 0
        await passed(ALL_DUE_MS)

        assert replica.log.directory.failure is not None
        assert judge_nothing(replica)

    run_in_virtual_time(scenario())


def judge_nothing(replica: Replica) -> bool:
    """Check that no delivery task is left, without unforeseen errors."""
    running = [task for task in asyncio.all_tasks() if "deliver" in task.get_name()]
    return running == [] and replica.failures == []


def test_retention_keeps_the_batch_that_determines_due_times() -> None:
    """The clock was ahead, and is set right: what is sent is due after what was delivered.

    It comes in several batches, and the leader dies after the first of them.
    """

    async def scenario() -> None:
        replica = Replica(1, replace(DELAYING, retention_ms=1))
        replica.begin_life()
        replica.lead(0)
        replica.clock.skew_ms = 10 * ALL_DUE_MS
        replica.append(one_by_one(b"ahead", 1))
        await passed(2)
        (ahead,) = judge(replica.log).delivered
        replica.clock.skew_ms = 0
        while len(replica.log.segments) < 2:
            replica.append(memoryview(build_batch([NewRecord(NOW_MS, None, bytes(500))])))
        count = 3 * LIMITS.batch_records
        replica.append(one_by_one(b"behind", count))
        await some_more_delivered(replica, 1)
        assert ahead.record.timestamp > replica.clock.now_ms()
        assert len(judge(replica.log).delivered) < 1 + count

        replica.log.delete_expired(NOW_MS + 10**9)
        replica.die(0)
        replica.lead(1)
        await passed(20 * ALL_DUE_MS)

        sources = judge(replica.log).delivered_sources
        assert len(sources) == len(set(sources)) == 1 + count

    run_in_virtual_time(scenario())


def test_a_leader_forgets_a_delivery_with_the_log() -> None:
    """The next append is due by the log, as it is for the next leader."""

    async def scenario() -> None:
        replica = Replica(1, DELAYING)
        replica.begin_life()
        replica.lead(0)
        replica.clock.skew_ms = 10 * ALL_DUE_MS
        replica.append(one_by_one(b"ahead", 1))
        await passed(2)
        replica.clock.skew_ms = 0
        assert len(judge(replica.log).delivered) == 1
        replica.log.advance_log_start_offset(replica.log.log_end_offset)

        count = 3 * LIMITS.batch_records
        replica.append(one_by_one(b"behind", count))
        await some_more_delivered(replica, 0)
        assert len(judge(replica.log).delivered) < count
        replica.die(0, log_start_offset=replica.log.log_start_offset)
        replica.lead(1)
        await passed(20 * ALL_DUE_MS)

        sources = judge(replica.log).delivered_sources
        assert len(sources) == len(set(sources)) == count

    run_in_virtual_time(scenario())


async def some_more_delivered(replica: Replica, count: int) -> None:
    """Return once more than `count` are delivered, some milliseconds from now, no turn later."""
    for _ in range(2 * PACE_MS):
        for _ in range(100):
            if len(judge(replica.log).delivered) > count:
                return
            await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
        await passed(1)
    raise AssertionError("nothing more is delivered")


def one_by_one(value: bytes, count: int) -> memoryview:
    """Records that are due as soon as they may be."""
    headers = (("deliver-after", b"1"),)
    records = [
        NewRecord(NOW_MS, None, b"%s-%d" % (value, index), headers) for index in range(count)
    ]
    return memoryview(build_batch(records))
