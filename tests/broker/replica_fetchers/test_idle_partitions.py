"""Partitions that a follower has all of: not looked at again, and still in sync."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.replication.effects import Stored
from broker.replication.followers import Follower
from broker.runtime.slices import at_once
from protocol.errors import ErrorCode
from tests.broker.replica_fetchers.nodes import Ensemble, run_ensemble

if TYPE_CHECKING:
    from pathlib import Path

    from broker.fetch.fetch_sessions import FetchSession

ALL = (0, 1, 2)
MAX_LAG_MS = 1000
FETCH_ROUNDS_MS = 120


class Presence:
    """A fetching follower."""

    fetched_ms = 0
    broker_epoch = 0


def sessions(nodes: Ensemble) -> list[FetchSession]:
    return list(nodes[0].fetch_sessions._sessions.values())


async def until_all_rest(nodes: Ensemble) -> None:
    await nodes.until(
        lambda: len(sessions(nodes)) == 2 and not any(one.active for one in sessions(nodes))
    )


def test_an_idle_partition_is_not_fetched_until_it_grows(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=ALL, epoch=0)
        nodes[0].append(5)
        await nodes.until_equal(5)
        await until_all_rest(nodes)

        epochs = [one.epoch for one in sessions(nodes)]
        await nodes[0].timers.sleep(FETCH_ROUNDS_MS)
        assert all(
            one.epoch > before for one, before in zip(sessions(nodes), epochs, strict=True)
        ), "sessions go on"
        assert not any(one.active for one in sessions(nodes))

        nodes[0].append(2)
        await nodes.until_equal(7)
        await until_all_rest(nodes)

    run_ensemble(tmp_path, scenario)


def test_an_idle_follower_gets_a_new_log_start_and_a_new_epoch(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=ALL, epoch=0)
        nodes[0].append(5)
        await nodes.until_equal(5)
        await until_all_rest(nodes)

        nodes[0].partition.log.advance_log_start_offset(3)
        nodes[0].partition.note_start()
        await nodes.until(lambda: all(nodes[n].partition.log.log_start_offset == 3 for n in ALL))
        await until_all_rest(nodes)

        nodes.lead(1, isr=ALL, epoch=1)
        nodes[1].append(1)
        await nodes.until_equal(6)

    run_ensemble(tmp_path, scenario)


def test_an_idle_follower_removed_from_the_isr_fetches_and_rejoins(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=ALL, epoch=0)
        nodes[0].append(5)
        await nodes.until_equal(5)
        partition = nodes[0].partition
        in_sync = partition.machine.in_sync
        await until_all_rest(nodes)

        proposal = in_sync.propose((0, 1), partition.leader_epoch, partition.partition_epoch)
        stored = Stored((0, 1), partition.leader_epoch, partition.partition_epoch + 1)
        partition.decided(proposal, ErrorCode.NONE, stored)

        assert in_sync.committed == (0, 1)
        await nodes.until(lambda: 2 in in_sync.committed)

    run_ensemble(tmp_path, scenario)


def test_a_closed_fetch_session_leaves_no_watcher(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=ALL, epoch=0)
        nodes[0].append(5)
        await nodes.until_equal(5)
        await until_all_rest(nodes)
        for node_id in (1, 2):
            nodes[node_id].following.stop()
        await nodes[0].timers.sleep(FETCH_ROUNDS_MS)

        for one in sessions(nodes):
            at_once(one.close())

        assert not nodes[0].partition._followers.waiting

    run_ensemble(tmp_path, scenario)


def test_nothing_comes_to_rest_in_a_session_that_was_evicted(tmp_path: Path) -> None:
    async def scenario(nodes: Ensemble) -> None:
        nodes.lead(0, isr=ALL, epoch=0)
        nodes[0].append(5)
        await nodes.until_equal(5)
        await until_all_rest(nodes)
        for node_id in (1, 2):
            nodes[node_id].following.stop()
        await nodes[0].timers.sleep(FETCH_ROUNDS_MS)
        partition = nodes[0].partition
        one = sessions(nodes)[0]
        (fetched,) = one.partitions.values()

        at_once(one.close())
        fetched.rest(one, partition, partition.machine.in_sync.followers[1])

        assert list(one.active) == [fetched]
        assert fetched not in partition._followers.waiting

    run_ensemble(tmp_path, scenario)


def test_an_idle_follower_is_caught_up_by_any_fetch_of_its_session() -> None:
    follower, presence = Follower(2), Presence()
    follower.start_over(100, 10, is_in_sync=True)
    follower.fetched(10, 0, 200, 10, 7)
    presence.fetched_ms, presence.broker_epoch = 200, 7
    follower.rest(presence)

    presence.fetched_ms, presence.broker_epoch = 90_000, 8
    assert follower.is_caught_up(11, 90_500, MAX_LAG_MS), "the leader has appended just now"
    assert follower.broker_epoch == 8

    follower.rouse(presence)
    presence.fetched_ms = 99_000
    assert follower.is_caught_up(11, 90_500, MAX_LAG_MS)
    assert not follower.is_caught_up(11, 92_000, MAX_LAG_MS), "it must ask again"
    follower.fetched(10, 0, 91_000, 20, 8)
    assert follower.last_caught_up_ms == 90_000


def test_a_former_fetch_session_does_not_update_its_follower() -> None:
    follower, former = Follower(2), Presence()
    follower.start_over(100, 10, is_in_sync=True)
    follower.fetched(10, 0, 200, 10, 7)
    former.fetched_ms = 200
    follower.rest(former)
    follower.fetched(10, 0, 300, 10, 9)

    former.fetched_ms, former.broker_epoch = 90_000, 7
    follower.rouse(former)

    assert follower.last_caught_up_ms == 300
    assert follower.broker_epoch == 9
