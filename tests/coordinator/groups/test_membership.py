"""Heartbeat, sessions and LeaveGroup."""

from __future__ import annotations

from coordinator.groups.states import GroupState
from protocol.errors import ErrorCode
from protocol.messages.group_membership import LeaveGroupRequest
from tests.coordinator.harness import GROUP, Harness


def state_of(harness: Harness) -> GroupState | None:
    group = harness.shard.find(GROUP)
    return None if group is None else group.state


def test_heartbeat_answers_by_member_generation_and_state() -> None:
    harness = Harness()
    leader, follower = harness.stable_group(2)
    assert harness.heartbeat(leader, 1) is ErrorCode.NONE
    assert harness.heartbeat(leader, 0) is ErrorCode.ILLEGAL_GENERATION
    assert harness.heartbeat("ghost", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    harness.join(leader)
    assert harness.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeat_of_unknown_group_is_of_an_unknown_member() -> None:
    assert Harness().heartbeat("ghost", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeat_is_fine_while_the_assignment_is_made() -> None:
    harness = Harness()
    member, _ = harness.join_twice()
    harness.advance(3_000)
    assert state_of(harness) is GroupState.COMPLETING_REBALANCE
    assert harness.heartbeat(member, 1) is ErrorCode.NONE


def test_silent_member_is_dropped_after_its_session_and_the_rest_rebalances() -> None:
    harness = Harness()
    leader, silent = harness.stable_group(2, session_ms=10_000)
    for _ in range(3):
        harness.advance(3_000)
        assert harness.heartbeat(leader, 1) is ErrorCode.NONE
    harness.advance(1_000)
    assert harness.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.heartbeat(silent, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.join(leader).response.generation_id == 2


def test_heartbeats_keep_a_member_for_ever() -> None:
    harness = Harness()
    (member,) = harness.stable_group(1, session_ms=10_000)
    for _ in range(100):
        harness.advance(9_999)
        assert harness.heartbeat(member, 1) is ErrorCode.NONE


def test_shorter_session_of_a_rejoined_member_counts_from_then_on() -> None:
    harness = Harness()
    (member,) = harness.stable_group(1, session_ms=600_000, rebalance_ms=600_000)
    rejoined = harness.join(member, session_ms=6_000, protocols={"range": b"x"})
    harness.settle([member], rejoined.response.generation_id)
    harness.advance(5_999)
    assert state_of(harness) is GroupState.STABLE
    harness.advance(1)
    assert state_of(harness) is GroupState.EMPTY


def test_member_waiting_for_others_to_join_does_not_expire() -> None:
    harness = Harness()
    leader, _ = harness.stable_group(2, session_ms=20_000, rebalance_ms=60_000)
    parked = harness.join(leader, session_ms=6_000, rebalance_ms=60_000)
    harness.advance(19_000)
    assert parked.is_parked
    harness.advance(1_000)
    assert [each.member_id for each in parked.response.members] == [leader]


def test_leaving_member_starts_a_rebalance() -> None:
    harness = Harness()
    leader, follower = harness.stable_group(2)
    assert [each.error_code for each in harness.leave(follower)] == [ErrorCode.NONE]
    assert harness.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_last_member_to_leave_empties_the_group_and_that_is_recorded() -> None:
    harness = Harness()
    (member,) = harness.stable_group(1)
    harness.leave(member)
    group = harness.shard.find(GROUP)
    assert group is not None
    assert (group.state, group.generation, group.leader_id) == (GroupState.EMPTY, 2, None)
    other = harness.restarted().shard.find(GROUP)
    assert other is not None
    assert (other.state, other.generation, other.protocol_type) == (GroupState.EMPTY, 2, "consumer")


def test_group_is_empty_in_memory_even_if_that_cannot_be_recorded() -> None:
    harness = Harness()
    (member,) = harness.stable_group(1)
    harness.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert harness.leave(member)[0].error_code == ErrorCode.NONE
    assert state_of(harness) is GroupState.EMPTY


def test_leaving_while_others_wait_completes_the_join_at_once() -> None:
    harness = Harness()
    leader, follower = harness.stable_group(2)
    parked = harness.join(leader)
    assert parked.is_parked
    harness.leave(follower)
    assert parked.response.generation_id == 2


def test_parked_member_that_leaves_on_another_connection_is_answered() -> None:
    harness = Harness()
    leader, _ = harness.stable_group(2)
    parked = harness.join(leader)
    harness.leave(leader)
    assert parked.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_member_that_leaves_while_its_sync_is_parked_is_answered() -> None:
    harness = Harness()
    (leader, _), (follower, _) = (harness.join_twice() for _ in range(2))
    harness.advance(6_000)
    parked = harness.sync(follower, 1)
    harness.leave(follower)
    assert parked.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.join(leader).response.generation_id == 2


def test_pending_member_may_leave() -> None:
    harness = Harness()
    pending = harness.join().response.member_id
    assert harness.leave(pending)[0].error_code == ErrorCode.NONE
    assert harness.shard.find(GROUP) is None


def test_leave_batch_has_an_error_for_each_member() -> None:
    harness = Harness()
    leader, follower = harness.stable_group(2)
    left = harness.leave(follower, "ghost", leader)
    assert [each.error_code for each in left] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert state_of(harness) is GroupState.EMPTY


def test_leaving_an_unknown_group_is_each_members_error() -> None:
    assert Harness().leave("ghost")[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_administrator_removes_a_static_member_by_its_instance_id_alone() -> None:
    harness = Harness()
    harness.join(instance="one")
    harness.advance(3_000)
    left = harness.leave_members(
        LeaveGroupRequest.Member(member_id="", group_instance_id="one"),
        LeaveGroupRequest.Member(member_id="", group_instance_id="two"),
    )
    assert [each.error_code for each in left] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert left[0].group_instance_id == "one"


def test_fenced_static_member_cannot_make_its_successor_leave() -> None:
    harness = Harness()
    old = harness.join(instance="one")
    harness.advance(3_000)
    member_id = old.response.member_id
    harness.settle([member_id], 1)
    harness.join(instance="one")
    left = harness.leave_members(
        LeaveGroupRequest.Member(member_id=member_id, group_instance_id="one")
    )
    assert left[0].error_code == ErrorCode.FENCED_INSTANCE_ID


def test_group_whose_silent_members_are_all_static_waits_for_their_sessions() -> None:
    harness = Harness()
    (first, second) = (
        harness.join(instance=name, session_ms=30_000, rebalance_ms=10_000) for name in "ab"
    )
    harness.advance(6_000)
    members = [first.response.member_id, second.response.member_id]
    harness.settle(members, 1)
    third = harness.join(instance="c", session_ms=30_000, rebalance_ms=10_000)
    harness.leave(third.response.member_id if not third.is_parked else "")
    harness.advance(10_000)
    assert third.response.generation_id == 2
    assert len(third.response.members) == 3
    harness.advance(40_000)
    assert state_of(harness) is GroupState.EMPTY


def test_unloading_a_shard_fails_all_parked_requests() -> None:
    harness = Harness()
    leader, follower = harness.stable_group(2)
    join = harness.join(leader)
    other = [harness.join(version=3, group_id="other") for _ in range(2)]
    harness.advance(6_000)
    sync = harness.sync(other[1].response.member_id, 1, group_id="other")
    harness.run(harness.shard.on_unloaded())
    assert join.error is sync.error is ErrorCode.NOT_COORDINATOR
    assert join.response.member_id == leader
    assert harness.timers.due == {}
    assert harness.heartbeat(follower, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_session_timeout_restarts_after_a_restart() -> None:
    harness = Harness()
    (member,) = harness.stable_group(1, session_ms=10_000)
    harness.advance(9_000)
    other = harness.restarted()
    other.advance(9_999)
    assert other.heartbeat(member, 1) is ErrorCode.NONE
    other.advance(10_000)
    assert other.heartbeat(member, 1) is ErrorCode.UNKNOWN_MEMBER_ID
