"""SyncGroup: parked followers, the assignment, and what happens when it is late."""

from __future__ import annotations

import pytest

from coordinator.groups.states import GroupState
from protocol.errors import ErrorCode
from tests.coordinator.harness import GROUP, Harness


def joined(harness: Harness, size: int = 2) -> list[str]:
    members = [harness.join_twice()[0] for _ in range(size)]
    harness.advance(6_000)
    return members


def test_followers_wait_for_the_leader_and_get_their_part() -> None:
    harness = Harness()
    leader, follower = joined(harness)
    parked = harness.sync(follower, 1)
    assert parked.is_parked
    own = harness.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert own.response.assignment == b"L"
    assert parked.response.assignment == b"F"
    assert parked.response.protocol_type == "consumer"
    assert parked.response.protocol_name == "range"
    group = harness.shard.find(GROUP)
    assert group is not None
    assert group.state is GroupState.STABLE


def test_assignments_of_followers_are_ignored() -> None:
    harness = Harness()
    leader, follower = joined(harness)
    harness.sync(follower, 1, {follower: b"all mine"})
    harness.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert harness.sync(follower, 1).response.assignment == b"F"


def test_member_missing_from_the_assignment_gets_nothing() -> None:
    harness = Harness()
    leader, follower = joined(harness)
    parked = harness.sync(follower, 1)
    harness.sync(leader, 1, {leader: b"L", "stranger": b"S"})
    assert parked.response.assignment == b""


def test_late_follower_gets_the_stored_assignment() -> None:
    harness = Harness()
    leader, follower = joined(harness)
    harness.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert harness.sync(follower, 1).response.assignment == b"F"


def test_sync_while_members_rejoin_answers_rebalance_in_progress() -> None:
    harness = Harness()
    leader, follower = harness.stable_group(2)
    harness.join(leader)
    assert harness.sync(follower, 1).error is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "ghost"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"group_instance_id": "one"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_sync_that_does_not_fit_is_refused(options: dict[str, object], error: ErrorCode) -> None:
    harness = Harness()
    leader, _ = joined(harness)
    call: dict[str, object] = {"member_id": leader, "generation": 1, **options}
    assert harness.sync(**call).error is error  # type: ignore[arg-type]


def test_members_that_never_sync_are_dropped_after_the_rebalance_timeout() -> None:
    harness = Harness()
    leader, follower = (harness.join_twice(rebalance_ms=20_000, session_ms=60_000) for _ in "ab")
    harness.advance(6_000)
    sync = harness.sync(leader[0], 1, {leader[0]: b"L"})
    assert sync.response.error_code == ErrorCode.NONE
    harness.advance(19_999)
    assert harness.heartbeat(follower[0], 1) is ErrorCode.NONE
    harness.advance(1)
    assert harness.heartbeat(follower[0], 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.heartbeat(leader[0], 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_leader_that_never_syncs_is_dropped_and_the_parked_follower_leads_next() -> None:
    harness = Harness()
    _, follower = (harness.join_twice(rebalance_ms=20_000, session_ms=60_000)[0] for _ in "ab")
    harness.advance(6_000)
    parked = harness.sync(follower, 1)
    harness.advance(20_000)
    assert parked.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.join(follower).response.leader == follower


def test_no_member_is_dropped_after_all_have_synced() -> None:
    harness = Harness()
    members = harness.stable_group(2, session_ms=600_000, rebalance_ms=20_000)
    harness.advance(100_000)
    assert [harness.heartbeat(member, 1) for member in members] == [ErrorCode.NONE] * 2


def test_failed_append_refuses_all_parked_syncs_and_starts_over() -> None:
    harness = Harness()
    leader, follower = joined(harness)
    parked = harness.sync(follower, 1)
    harness.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    own = harness.sync(leader, 1, {leader: b"L"})
    assert own.error is parked.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    group = harness.shard.find(GROUP)
    assert group is not None
    assert group.state is GroupState.PREPARING_REBALANCE
    assert harness.log == []


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REBALANCE_IN_PROGRESS),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_uncommitted_generation_is_refused_in_words_clients_know(
    failure: ErrorCode, told: ErrorCode
) -> None:
    harness = Harness()
    leader, _ = joined(harness)
    harness.commit_error = failure
    assert harness.sync(leader, 1, {}).error is told


def test_member_that_syncs_on_two_connections_is_answered_on_both() -> None:
    harness = Harness()
    leader, follower = joined(harness)
    first, second = harness.sync(follower, 1), harness.sync(follower, 1)
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    harness.sync(leader, 1, {follower: b"F"})
    assert second.response.assignment == b"F"


def test_generation_is_one_record_that_a_restart_reads_back() -> None:
    harness = Harness()
    leader, follower = harness.stable_group(2)
    assert len(harness.log) == 1
    other = harness.restarted()
    assert other.sync(follower, 1).response.assignment == f"part of {follower}".encode()
    assert other.heartbeat(leader, 1) is ErrorCode.NONE
    group = other.shard.find(GROUP)
    assert group is not None
    assert (group.leader_id, group.protocol, group.generation) == (leader, "range", 1)


def test_restart_reads_the_last_generation_where_a_member_changed_its_timeouts() -> None:
    harness = Harness()
    (member,) = harness.stable_group(1)
    again = harness.join(
        member, protocols={"range": b"any"}, session_ms=20_000, rebalance_ms=90_000
    )
    harness.settle([member], again.response.generation_id)
    group = harness.restarted().shard.find(GROUP)
    assert group is not None
    assert group.members[member].session_timeout_ms == 20_000
    assert group.rebalance_timeout_ms == 90_000
