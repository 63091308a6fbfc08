"""Selection of the next leader."""

from __future__ import annotations

from controller.partitions.leader_selection import (
    Choice,
    initial_leader,
    leader_when_offline,
    leader_when_shutting_down,
    preferred_leader,
    without_replica,
)


def test_new_partition_is_led_by_its_first_live_replica() -> None:
    assert initial_leader((1, 2, 3), {2, 3}) == Choice(2, (2, 3))
    assert initial_leader((1, 2), {9}) is None


def test_offline_partition_takes_the_first_live_in_sync_replica_of_its_assignment() -> None:
    assert leader_when_offline((1, 2, 3), (3, 2), {2, 3}, allow_unclean=False) == (
        Choice(2, (3, 2))
    )
    assert leader_when_offline((1, 2, 3), (3, 1), {2, 3}, allow_unclean=False) == Choice(3, (3,))


def test_unclean_leader_is_alone_in_sync_and_only_if_allowed() -> None:
    assert leader_when_offline((1, 2, 3), (1,), {2, 3}, allow_unclean=False) is None
    assert leader_when_offline((1, 2, 3), (1,), {2, 3}, allow_unclean=True) == (
        Choice(2, (2,), is_unclean=True)
    )
    assert leader_when_offline((1,), (1,), set(), allow_unclean=True) is None


def test_preferred_leader_must_be_live_and_in_sync() -> None:
    assert preferred_leader((1, 2), (2, 1), {1, 2}) == Choice(1, (2, 1))
    assert preferred_leader((1, 2), (2,), {1, 2}) is None
    assert preferred_leader((1, 2), (2, 1), {2}) is None


def test_leaving_brokers_drop_out_of_the_in_sync_replicas() -> None:
    assert leader_when_shutting_down((1, 2, 3), (1, 2, 3), {1, 2, 3}, {1}) == Choice(2, (2, 3))
    assert leader_when_shutting_down((1,), (1,), {1}, {1}) is None


def test_last_in_sync_replica_stays() -> None:
    assert without_replica(1, (1, 2), 1) == Choice(-1, (2,))
    assert without_replica(1, (1, 2), 2) == Choice(1, (1,))
    assert without_replica(1, (1,), 1) == Choice(-1, (1,))
