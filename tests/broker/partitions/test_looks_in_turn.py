"""Fetches of more partitions than are read in one turn of the loop, and who is served meanwhile."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

from broker.handlers.records.delayed_fetch import READ_AT_ONCE, UNWATCHED_AT_ONCE, DelayedFetch
from broker.partitions.looks_in_turn import LooksInTurn
from broker.runtime.deferred import Deferred
from broker.runtime.timers import Timers
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse
from tests.broker.handlers.data_broker import (
    TOPIC,
    DataBroker,
    answers,
    fetch_request,
    offsets,
    records,
    run_data_broker,
)
from tests.controller.harness import turns
from tests.support.broker_parts.arrival import arrival
from tests.support.broker_parts.virtual_time import run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from broker.partitions.watchers import Watcher

MANY = 5 * READ_AT_ONCE
WAIT_MS = 1000


class Watched:
    """A partition that knows who watches it."""

    def __init__(self) -> None:
        self.watchers: set[Watcher] = set()

    def watch(self, watcher: Watcher) -> None:
        self.watchers.add(watcher)

    watch_as_follower = watch

    def unwatch(self, watcher: Watcher) -> None:
        self.watchers.discard(watcher)


class LongRead:
    """Counts the partitions that it has looked at, and what of that was whole looks."""

    session = None

    def __init__(self, count: int, *, is_by_follower: bool = False) -> None:
        self.is_by_follower = is_by_follower
        self.partitions = [Watched() for _ in range(count)]
        self.read = self.passes = 0
        self.passes_needed = 1

    @property
    def is_large(self) -> bool:
        return len(self.partitions) > READ_AT_ONCE

    @property
    def is_satisfied(self) -> bool:
        return self.passes >= self.passes_needed

    @property
    def watched_count(self) -> int:
        return sum(bool(one.watchers) for one in self.partitions)

    def run(self) -> None:
        for _ in self.run_in_steps():
            pass

    def run_in_steps(self) -> Iterator[None]:
        for _ in self.partitions:
            self.read += 1
            yield
        self.passes += 1

    def watched(self) -> Any:
        return iter(self.partitions)

    def answered(self) -> FetchResponse:
        return FetchResponse(responses=[])


def delayed(read: LongRead, looks: LooksInTurn, timers: Timers) -> DelayedFetch:
    return DelayedFetch(timers, looks, read, WAIT_MS)  # type: ignore[arg-type]  # partitions


async def counted(read: LongRead, fetch: DelayedFetch) -> list[int]:
    """Partitions read by each turn of the loop until the fetch is answered."""
    counts = [read.read]
    while not fetch.deferred.is_complete:
        await turns(1)
        counts.append(read.read)
    return [later - before for before, later in itertools.pairwise(counts)]


def test_one_long_look_serves_others_between_its_slices() -> None:
    async def scenario() -> None:
        timers = Timers(asyncio.get_running_loop())
        looks = LooksInTurn(timers)
        long, short = LongRead(MANY), LongRead(1)
        fetch, other = delayed(long, looks, timers), delayed(short, looks, timers)

        fetch.check()
        other.check()
        while not other.deferred.is_complete:
            await turns(1)
        assert long.read <= 2 * READ_AT_ONCE, "it waits for its next slice"
        steps = await counted(long, fetch)

        assert max(steps) <= 2 * READ_AT_ONCE, "a turn of the test is two of the loop"
        assert long.read == MANY

    run_in_virtual_time(scenario())


def test_partitions_are_watched_and_unwatched_in_slices() -> None:
    async def scenario() -> None:
        timers = Timers(asyncio.get_running_loop())
        read = LongRead(3 * UNWATCHED_AT_ONCE)
        read.passes_needed = 2
        fetch = delayed(read, LooksInTurn(timers), timers)
        before = read.watched_count
        fetch.look_again()
        while not read.passes:
            await turns(1)
        assert (before, read.watched_count) == (0, len(read.partitions))

        fetch.deferred.abandon()
        assert read.watched_count == 2 * UNWATCHED_AT_ONCE
        await turns()

        assert read.watched_count == 0

    run_in_virtual_time(scenario())


def test_a_follower_that_is_answered_is_not_read_for_again() -> None:
    """A second answer, never sent, would count as news already sent in the session."""

    async def scenario() -> None:
        timers = Timers(asyncio.get_running_loop())
        read = LongRead(2 * UNWATCHED_AT_ONCE, is_by_follower=True)
        fetch = delayed(read, LooksInTurn(timers), timers)
        fetch.look_again()
        await counted(read, fetch)
        still_watched = [one for one in read.partitions if one.watchers]
        assert still_watched

        for one in still_watched:
            for watcher in list(one.watchers):
                watcher.check()
        await turns()

        assert (read.passes, read.watched_count) == (1, 0)

    run_in_virtual_time(scenario())


def test_a_fetch_that_is_woken_while_it_looks_looks_again() -> None:
    async def scenario() -> None:
        timers = Timers(asyncio.get_running_loop())
        read = LongRead(MANY)
        read.passes_needed = 2
        fetch = delayed(read, LooksInTurn(timers), timers)
        fetch.check()
        while not read.read:
            await turns(1)
        assert read.read < MANY

        fetch.check()
        fetch.check()
        await counted(read, fetch)

        assert read.read == 2 * MANY

    run_in_virtual_time(scenario())


def test_a_reader_that_hangs_up_while_it_looks_ends_the_look() -> None:
    async def scenario() -> None:
        timers = Timers(asyncio.get_running_loop())
        read = LongRead(MANY)
        fetch = delayed(read, LooksInTurn(timers), timers)
        fetch.check()
        while not read.read:
            await turns(1)

        fetch.deferred.abandon()
        seen = read.read
        await turns()

        assert read.read == seen < MANY

    run_in_virtual_time(scenario())


def test_the_last_look_when_the_time_is_over_goes_on_in_slices() -> None:
    async def scenario() -> None:
        timers = Timers(asyncio.get_running_loop())
        read = LongRead(MANY)
        read.passes_needed = 9
        fetch = delayed(read, LooksInTurn(timers), timers)

        await timers.sleep(WAIT_MS)
        steps = await counted(read, fetch)

        assert max(steps) <= 2 * READ_AT_ONCE
        assert read.passes == 1

    run_in_virtual_time(scenario())


def test_a_short_request_of_a_session_with_many_partitions_is_handled_in_steps(
    tmp_path: Path,
) -> None:
    """Only few of them exist: the others may be created."""

    async def scenario(broker: DataBroker) -> None:
        await broker.create_topic()
        partitions = [
            FetchRequest.Topic.Partition(partition=index, fetch_offset=0, partition_max_bytes=1)
            for index in range(READ_AT_ONCE + 1)
        ]
        whole = FetchRequest.Topic(topic=TOPIC, partitions=partitions)
        opening: Any = broker.call(fetch_request(whole, session_epoch=0), 12)
        opened = await arrival(opening)
        await broker.produce({(TOPIC, 0): records(3)})

        short = fetch_request(session_id=opened.session_id, session_epoch=1)
        fetching: Any = broker.call(short, 12)

        assert isinstance(fetching, Deferred)
        found = answers(await arrival(fetching))
        assert len(found) == len(partitions)
        assert offsets(found[0]) == [0, 1, 2]
        assert {one.error_code for one in found[1:]} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}

    run_data_broker(tmp_path, scenario)
