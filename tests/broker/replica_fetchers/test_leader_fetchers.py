"""Replicas that are far behind: fetched beside the others, appended piece by piece."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from broker.replica_fetchers import fetcher
from broker.replica_fetchers.leader_fetchers import LeaderFetchers, Purpose, Running
from tests.broker.replica_fetchers.nodes import LIMITS, Ensemble, run_ensemble

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

IN_SYNC = (0, 1)
LAGGARD = 2
VALUE = bytes(4096)
RECORDS = 60
"""A quarter of a megabyte: four answers."""
AT_ONCE = replace(LIMITS, partition_max_bytes=1 << 20)
"""Or one."""
MAIN, BEHIND = f"broker-{LAGGARD}-fetcher-0", f"broker-{LAGGARD}-fetcher-0-behind"


async def fall_behind(nodes: Ensemble) -> None:
    """Leave broker 2 without what the others have."""
    nodes.lead(0, isr=IN_SYNC, epoch=0, told=IN_SYNC)
    nodes[LAGGARD].is_up = False
    for _ in range(RECORDS):
        nodes[0].append(1, value=VALUE)
    await nodes.until_equal(RECORDS)
    nodes[LAGGARD].is_up = True


async def ends_seen(nodes: Ensemble, end: int) -> list[int]:
    """Look at broker 2's end after each turn of the event loop, until it is `end`."""
    log = nodes[LAGGARD].partition.log
    ends = [log.log_end_offset]
    while ends[-1] < end:
        await nodes[0].timers.sleep(0)
        if log.log_end_offset != ends[-1]:
            ends.append(log.log_end_offset)
    return ends


def test_a_lagging_replica_is_fetched_on_its_own_connection_until_caught_up(
    tmp_path: Path,
) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await fall_behind(nodes)

        nodes.lead(0, isr=IN_SYNC, epoch=1)
        await nodes.until(lambda: BEHIND in nodes.links)
        assert MAIN in nodes.links
        await nodes.until_equal(RECORDS)
        await nodes.until(lambda: BEHIND not in nodes.links)

        assert nodes[0].partition.in_sync_replicas == (0, 1, 2)
        nodes[0].append(3)
        await nodes.until_equal(RECORDS + 3)
        assert BEHIND not in nodes.links

    run_ensemble(tmp_path, scenario)


class Fetcher:
    """Fetcher that records a lane's calls."""

    def __init__(self) -> None:
        self.has: set[object] = set()
        self.is_woken = self.is_over = False

    @property
    def is_idle(self) -> bool:
        return not self.has

    def follow(self, partition: object, *, is_caught_up: bool = False) -> None:
        assert is_caught_up is (self.is_woken and partition not in self.has)
        self.has.add(partition)

    def leave(self, partition: object) -> None:
        self.has.discard(partition)

    def wake(self) -> None:
        self.is_woken = True

    def close(self) -> None:
        self.is_over = True


class Replica:
    """A partition, as far as lanes look at it."""

    durability: Any = None


def replica() -> Any:
    return Replica()


async def for_ever() -> None:
    await asyncio.Event().wait()


def test_a_replica_that_changes_fetchers_is_always_fetched_by_one() -> None:
    async def scenario() -> None:
        fetchers: list[Fetcher] = []

        def start(lane: object, purpose: Purpose) -> Running:
            assert purpose is (Purpose.BEHIND if fetchers else Purpose.MAIN)
            fetchers.append(Fetcher())
            return Running(
                cast("Any", fetchers[-1]), asyncio.get_running_loop().create_task(for_ever())
            )

        lane, one, other = LeaderFetchers(start), replica(), replica()
        lane.follow(one)
        lane.follow(other)
        lane.found(cast("Any", fetchers[0]), one, is_behind=True)
        main, aside = fetchers
        assert (main.has, aside.has) == ({other}, {one})

        lane.found(cast("Any", aside), one, is_behind=False)
        assert (main.has, aside.has) == ({other}, {one}), "the first has a question under way"
        assert main.is_woken
        lane.before_asking(cast("Any", aside))
        assert aside.has == {one}
        lane.before_asking(cast("Any", main))
        assert (main.has, aside.has, aside.is_over) == ({one, other}, set(), True)
        assert not lane.is_idle

    asyncio.run(scenario())


def test_replicas_that_wait_for_their_disk_hold_up_no_others() -> None:
    async def scenario() -> None:
        fetchers: dict[Purpose, Fetcher] = {}

        def start(lane: object, purpose: Purpose) -> Running:
            fetchers[purpose] = Fetcher()
            task = asyncio.get_running_loop().create_task(for_ever())
            return Running(cast("Any", fetchers[purpose]), task)

        lane, plain, flushed = LeaderFetchers(start), replica(), replica()
        flushed.durability = SimpleNamespace(is_for_all_replicas=True)
        lane.follow(plain)
        lane.follow(flushed)
        main, own = fetchers[Purpose.MAIN], fetchers[Purpose.FLUSHED]
        assert (main.has, own.has) == ({plain}, {flushed})

        lane.found(cast("Any", own), flushed, is_behind=True)
        aside = fetchers[Purpose.BEHIND]
        assert (own.has, aside.has) == (set(), {flushed})
        lane.found(cast("Any", aside), flushed, is_behind=False)
        lane.before_asking(cast("Any", main))
        assert (main.has, aside.has, own.is_woken) == ({plain}, {flushed}, True)
        lane.before_asking(cast("Any", own))
        assert (main.has, own.has, aside.is_over) == ({plain}, {flushed}, True)

        own.is_woken = False
        flushed.durability.is_for_all_replicas = False
        lane.follow(flushed)
        assert (main.has, own.has, own.is_over) == ({plain, flushed}, set(), True)
        lane.leave(plain)
        lane.leave(flushed)
        assert lane.is_idle

    asyncio.run(scenario())


def test_a_role_that_changes_while_it_is_fetched_aside_is_taken_up(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        await fall_behind(nodes)
        nodes.lead(0, isr=IN_SYNC, epoch=1)
        await nodes.until(lambda: BEHIND in nodes.links)

        nodes.lead(1, isr=IN_SYNC, epoch=2)
        nodes[1].append(2)
        await nodes.until_equal(RECORDS + 2)
        await nodes.until(lambda: BEHIND not in nodes.links)
        nodes.lead(LAGGARD, isr=(0, 1, 2), epoch=3)
        nodes[LAGGARD].append(2)
        await nodes.until_equal(RECORDS + 4)
        assert not [link for link in nodes.links if link.startswith(f"broker-{LAGGARD}")]

    run_ensemble(tmp_path, scenario)


def in_pieces(monkeypatch: pytest.MonkeyPatch, piece_bytes: int) -> None:
    """Write larger answers by threads, in pieces of that size."""
    monkeypatch.setattr(fetcher, "MUCH_BYTES", piece_bytes)
    monkeypatch.setattr(fetcher, "PIECE_BYTES", piece_bytes)


def test_others_have_the_event_loop_while_much_is_appended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_pieces(monkeypatch, 4 * len(VALUE))

    async def scenario(nodes: Ensemble) -> None:
        await fall_behind(nodes)
        nodes.lead(0, isr=IN_SYNC, epoch=1)
        ends = await ends_seen(nodes, RECORDS)
        assert len(ends) > RECORDS / 4, ends
        await nodes.until_equal(RECORDS)

    run_ensemble(tmp_path, scenario, AT_ONCE)


def test_the_rest_of_an_answer_is_not_used_after_a_change_of_roles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_pieces(monkeypatch, len(VALUE))

    async def scenario(nodes: Ensemble) -> None:
        await fall_behind(nodes)
        nodes.lead(0, isr=IN_SYNC, epoch=1)
        log = nodes[LAGGARD].partition.log
        while log.log_end_offset < 2:
            await nodes[0].timers.sleep(0)
        cut = log.log_end_offset

        nodes.lead(LAGGARD, isr=(LAGGARD,), epoch=2, told=(LAGGARD,))  # unclean
        nodes[LAGGARD].append(1, value=b"its own")
        await nodes[0].timers.sleep(20)
        assert 2 <= cut < RECORDS
        assert log.log_end_offset == cut + 1
        nodes.lead(LAGGARD, isr=(LAGGARD,), epoch=2)
        await nodes.until_equal(cut + 1)

    run_ensemble(tmp_path, scenario, AT_ONCE)
