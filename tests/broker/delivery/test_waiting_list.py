"""Delayed records are listed in delivery order, page by page, and cancelled by offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.delivery.waiting_list import FIRST, PAGE_ENTRIES, PageLimits, WaitingList
from broker.runtime.slices import Slices, Turns
from protocol.errors import ApiError, ErrorCode
from protocol.records.control import ControlType
from tests.broker.delivery.judged_log import check_complete, judge
from tests.broker.delivery.test_bounds import (
    DELAY_MS,
    append,
    cancelling,
    end,
    leading,
    passed,
    waiting,
)
from tests.support.broker_parts.slices import one_step_at_a_time
from tests.support.broker_parts.virtual_time import run_in_virtual_time

if TYPE_CHECKING:
    from tests.broker.delivery.replicated import Replica

PLENTY = PageLimits(1000, 1 << 20)


def list_of(leader: Replica, *, is_late: bool = False) -> WaitingList:
    delivery = leader.deliveries.of(leader.partition)
    assert delivery is not None
    return WaitingList(delivery, one_step_at_a_time(), lambda: is_late)


async def offsets(leader: Replica, limits: PageLimits = PLENTY) -> list[int]:
    """List all offsets, over as many pages as it takes."""
    found, place = [], FIRST
    while True:
        page = await list_of(leader).page(place, limits)
        assert len(page.records) <= limits.records
        found += [one.record.offset for one in page.records]
        if page.next is None:
            return found
        place = page.next


@pytest.mark.parametrize(("most", "is_late"), [(1, False), (2, False), (1000, False), (1000, True)])
def test_records_are_found_by_their_id_while_they_wait(most: int, *, is_late: bool) -> None:
    """A search that is late goes on by a record each time."""

    async def scenario() -> None:
        leader = await leading()
        named = ("message-id", b"7")
        records = [waiting(b"%d" % number) for number in range(5)]
        records[1] = records[1]._replace(headers=(*records[1].headers, named))
        records[3] = records[3]._replace(headers=(*records[3].headers, named), value=b"7")
        records[4] = records[4]._replace(value=b"message-id 7")
        first = append(leader, *records)
        second = append(leader, *records, sequence=0)
        await passed(1)

        async def found() -> list[int]:
            offsets, place = [], FIRST
            while True:
                looking = list_of(leader, is_late=is_late)
                page = await looking.search(place, PageLimits(most, 1 << 20), b"7")
                assert len(page.records) <= (1 if is_late else most)
                offsets += [one.record.offset for one in page.records]
                if page.next is None:
                    return offsets
                place = page.next

        assert await found() == [first + 1, first + 3]
        end(leader, ControlType.COMMIT)
        append(leader, cancelling(first + 1))
        await passed(1)
        assert await found() == [first + 3, second + 1, second + 3]
        await passed(2 * DELAY_MS)
        assert await found() == []

    run_in_virtual_time(scenario())


@pytest.mark.parametrize(("most", "count"), [(1, 10), (3, 30), (1000, PAGE_ENTRIES + 40)])
def test_records_are_listed_as_they_will_be_delivered(most: int, count: int) -> None:
    async def scenario() -> None:
        leader = await leading()
        for number in range(count):
            append(leader, waiting(b"%d" % number))
            if number % 7 == 0:
                await passed(1)
        await passed(1)
        append(leader, cancelling(3))
        await passed(1)

        listed = await offsets(leader, PageLimits(most, 1 << 20))

        await passed(2 * DELAY_MS)
        assert listed == judge(leader.log).delivered_sources
        assert len(listed) == count - 1
        assert await offsets(leader) == []

    run_in_virtual_time(scenario())


class Slowly(Slices):
    """Gives way for so long that all that waits is due."""

    async def give_way(self) -> None:
        await passed(2 * DELAY_MS)


def test_a_cancelled_record_that_falls_due_is_not_listed() -> None:
    async def scenario() -> None:
        leader = await leading()
        offset = append(leader, waiting(b"0"))
        append(leader, cancelling(offset))
        await passed(1)
        delivery = leader.deliveries.of(leader.partition)
        assert delivery is not None

        page = await WaitingList(delivery, Slowly(Turns(lambda: 0.0))).page(FIRST, PLENTY)

        assert page.records == []

    run_in_virtual_time(scenario())


def test_a_page_ends_with_the_record_that_reaches_its_bytes() -> None:
    async def scenario() -> None:
        leader = await leading()
        append(leader, *[waiting(bytes(100)) for _ in range(10)])
        await passed(1)

        page = await list_of(leader).page(FIRST, PageLimits(1000, 250))

        assert len(page.records) == 3
        assert len(await offsets(leader, PageLimits(1000, 250))) == 10

    run_in_virtual_time(scenario())


def test_a_record_is_cancelled_by_its_place_also_after_its_transaction() -> None:
    async def scenario() -> None:
        leader = await leading()
        first = append(leader, waiting(b"0"), waiting(b"1"), sequence=0)
        await passed(1)
        end(leader, ControlType.COMMIT)
        plain = append(leader, *[waiting(b"%d" % number) for number in range(6)])
        await passed(1)

        for offset in (first + 1, plain + 5):
            await list_of(leader).cancel(offset)
            await passed(1)
            with pytest.raises(ApiError) as refused:
                await list_of(leader).cancel(offset)
            assert refused.value.code is ErrorCode.INVALID_RECORD

        await passed(2 * DELAY_MS)
        found = judge(leader.log)
        check_complete(found)
        assert sorted(found.delivered_sources) == [first, *range(plain, plain + 5)]
        for offset in (first, plain, 10_000):
            with pytest.raises(ApiError, match="no record waits"):
                await list_of(leader).cancel(offset)

    run_in_virtual_time(scenario())


def test_a_list_ends_with_the_leadership() -> None:
    async def scenario() -> None:
        leader = await leading()
        append(leader, waiting(b"x"))
        await passed(1)
        waits = list_of(leader)
        leader.resign()
        await passed(1)

        with pytest.raises(ApiError) as refused:
            await waits.page(FIRST, PLENTY)
        assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER

    run_in_virtual_time(scenario())


def test_a_search_that_meets_a_damaged_index_has_it_rebuilt() -> None:
    async def scenario() -> None:
        leader = await leading()
        named = ("message-id", b"7")
        record = waiting(b"v")
        record = record._replace(headers=(*record.headers, named))
        offset = append(leader, record)
        for _ in range(3):
            append(leader, waiting(b"another"))
        await passed(1)
        segment = leader.log.segments.active
        segment.write_index_entries()
        assert segment.delays is not None
        leader.disk.open(segment.delays.path).truncate(30)

        with pytest.raises(ApiError):
            await list_of(leader).search(FIRST, PLENTY, b"7")
        await passed(DELAY_MS // 2)

        page = await list_of(leader).search(FIRST, PLENTY, b"7")
        assert [one.record.offset for one in page.records] == [offset]
        await passed(2 * DELAY_MS)
        check_complete(judge(leader.log))
        assert leader.failures == []

    run_in_virtual_time(scenario())
