"""Delivery after a clock that was ahead has been set right."""

from __future__ import annotations

from protocol.records.builder import NewRecord, build_batch
from tests.broker.delivery.judged_log import check_complete, check_order, judge
from tests.broker.delivery.replicated import DELAYING, LIMITS, Replica
from tests.broker.delivery.test_delivery_faults import passed
from tests.storage.produced import NOW_MS
from tests.support.broker_parts.virtual_time import run_in_virtual_time

YEARS_MS = 30 * 365 * 86_400_000


async def led_by_the_future() -> Replica:
    """A leader whose clock is right again; records were delivered when it was years ahead."""
    replica = Replica(1, DELAYING)
    replica.begin_life()
    replica.lead(0)
    replica.clock.skew_ms = YEARS_MS
    send(replica, 1)
    await passed(10)
    replica.clock.skew_ms = 0
    assert len(values(replica)) == 1
    return replica


def send(replica: Replica, *delays_ms: int) -> None:
    """Send a record for each delay, which is its value."""
    records = [
        NewRecord(NOW_MS, None, b"%d" % delay, (("deliver-after", b"%d" % delay),))
        for delay in delays_ms
    ]
    replica.append(memoryview(build_batch(records)))


def values(replica: Replica) -> list[int]:
    """Return the values delivered."""
    return [int(one.record.value or b"") for one in judge(replica.log).delivered]


def test_a_record_comes_at_its_time_though_the_clock_has_been_years_ahead() -> None:
    async def scenario() -> None:
        replica = await led_by_the_future()
        send(replica, 1000)
        await passed(900)
        assert values(replica) == [1]
        await passed(200)
        assert values(replica) == [1, 1000]

    run_in_virtual_time(scenario())


def test_records_behind_a_fast_clock_are_delivered_in_the_order_sent() -> None:
    """Records due together by the log keep their order: one behind another waits for that."""

    async def scenario() -> None:
        replica = await led_by_the_future()
        send(replica, 100, 2000, 500)
        await passed(1000)
        assert values(replica) == [1, 100]
        await passed(1100)
        assert values(replica) == [1, 100, 2000, 500]
        found = judge(replica.log)
        check_order(found)
        check_complete(found)

    run_in_virtual_time(scenario())


def test_records_beyond_memory_are_delivered_on_time_by_the_next_leader() -> None:
    async def scenario() -> None:
        replica = await led_by_the_future()
        count = 3 * LIMITS.memory_records
        delays = [100 + 10 * number for number in range(count)]
        for delay in delays:
            send(replica, delay)
        await passed(delays[count // 2])
        replica.die(0)
        replica.lead(1)
        half = len(values(replica))
        assert 1 < half < count
        await passed(delays[-1])
        assert values(replica) == [1, *delays]

    run_in_virtual_time(scenario())


def test_no_record_is_delivered_early_by_a_slow_clock() -> None:
    """The clock was ahead, and is behind now."""

    async def scenario() -> None:
        replica = await led_by_the_future()
        send(replica, 5000)
        replica.clock.skew_ms = -4000
        await passed(8000)
        assert values(replica) == [1]
        await passed(1100)
        assert values(replica) == [1, 5000]

    run_in_virtual_time(scenario())
