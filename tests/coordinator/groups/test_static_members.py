"""Static members keep their place across restarts (KIP-345, KIP-814)."""

from __future__ import annotations

from typing import Any

from coordinator.groups.states import GroupState
from protocol.errors import ErrorCode
from tests.coordinator.harness import GROUP, Harness


def stable(harness: Harness, *names: str, **options: Any) -> list[str]:
    joins = [harness.join(instance=name, **options) for name in names]
    harness.advance(6_000)
    members = [join.response.member_id for join in joins]
    harness.settle(members, 1)
    return members


def test_static_member_needs_no_second_join_and_is_named_after_its_instance() -> None:
    harness = Harness()
    answer = harness.join(instance="one", version=5)
    harness.advance(3_000)
    assert answer.response.member_id == "one-0001"


def test_restarted_follower_of_a_stable_group_keeps_its_assignment_without_rebalance() -> None:
    harness = Harness()
    leader, follower = stable(harness, "a", "b")
    answer = harness.join(instance="b")
    new_id = answer.response.member_id
    assert new_id != follower
    assert (answer.response.generation_id, answer.response.leader) == (1, leader)
    assert answer.response.members == []
    assert not answer.response.skip_assignment
    assert harness.sync(new_id, 1).response.assignment == f"part of {follower}".encode()
    assert harness.heartbeat(leader, 1) is ErrorCode.NONE


def test_restarted_leader_skips_the_assignment_from_version_9() -> None:
    harness = Harness()
    stable(harness, "a", "b")
    answer = harness.join(instance="a", version=9)
    assert answer.response.skip_assignment
    assert answer.response.leader == answer.response.member_id
    assert len(answer.response.members) == 2


def test_a_restarted_leader_is_not_named_leader_before_version_9() -> None:
    harness = Harness()
    leader, _ = stable(harness, "a", "b")
    answer = harness.join(instance="a", version=8)
    assert answer.response.leader == leader != answer.response.member_id
    assert answer.response.members == []


def test_old_incarnation_is_fenced_everywhere() -> None:
    harness = Harness()
    _, old = stable(harness, "a", "b")
    harness.join(instance="b")
    assert harness.heartbeat(old, 1, instance="b") is ErrorCode.FENCED_INSTANCE_ID
    assert harness.sync(old, 1, group_instance_id="b").error is ErrorCode.FENCED_INSTANCE_ID
    assert harness.join(old, instance="b").error is ErrorCode.FENCED_INSTANCE_ID
    commit = harness.commit(1, member_id=old, generation=1, instance="b")
    assert commit is ErrorCode.FENCED_INSTANCE_ID
    assert harness.heartbeat(old, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_new_id_is_stored_and_survives_a_restart_of_the_coordinator() -> None:
    harness = Harness()
    stable(harness, "a", "b")
    new_id = harness.join(instance="b").response.member_id
    other = harness.restarted()
    assert other.heartbeat(new_id, 1, instance="b") is ErrorCode.NONE
    group = other.shard.find(GROUP)
    assert group is not None
    assert group.static_members["b"] == new_id


def test_parked_join_of_the_old_incarnation_is_fenced_and_the_new_one_takes_its_place() -> None:
    harness = Harness()
    old = harness.join(instance="a")
    new = harness.join(instance="a")
    assert old.error is ErrorCode.FENCED_INSTANCE_ID
    harness.advance(6_000)
    assert new.response.generation_id == 1
    assert len(new.response.members) == 1


def test_restart_while_the_assignment_is_made_starts_a_rebalance() -> None:
    harness = Harness()
    first, second = (harness.join(instance=name) for name in "ab")
    harness.advance(6_000)
    sync = harness.sync(second.response.member_id, 1)
    again = harness.join(instance="b")
    assert sync.error is ErrorCode.FENCED_INSTANCE_ID
    assert again.is_parked
    group = harness.shard.find(GROUP)
    assert group is not None
    assert group.state is GroupState.PREPARING_REBALANCE
    harness.join(first.response.member_id, instance="a")
    assert again.response.generation_id == 2


def test_restart_that_changes_the_chosen_protocol_starts_a_rebalance() -> None:
    harness = Harness()
    both = {"range": b"", "sticky": b""}
    (leader,) = stable(harness, "a", protocols=both)
    answer = harness.join(instance="a", protocols={"sticky": b""})
    assert answer.response.generation_id == 2
    assert answer.response.protocol_name == "sticky"
    assert answer.response.member_id != leader


def test_new_incarnation_brings_its_own_timeouts_and_subscription() -> None:
    harness = Harness()
    stable(harness, "a", session_ms=10_000)
    new = harness.join(instance="a", session_ms=20_000, rebalance_ms=70_000, client_id="next")
    group = harness.shard.find(GROUP)
    assert group is not None
    member = group.members[new.response.member_id]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (20_000, 70_000)
    assert member.client_id == "next"
    harness.advance(19_999)
    assert harness.heartbeat(member.member_id, 1) is ErrorCode.NONE


def test_id_that_cannot_be_stored_is_taken_back() -> None:
    harness = Harness()
    _, follower = stable(harness, "a", "b")
    harness.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    answer = harness.join(instance="b", session_ms=60_000)
    assert answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert answer.response.member_id == ""
    assert harness.heartbeat(follower, 1, instance="b") is ErrorCode.NONE
    group = harness.shard.find(GROUP)
    assert group is not None
    assert group.members[follower].session_timeout_ms == 10_000


def test_static_member_that_stays_away_is_dropped_after_its_session() -> None:
    harness = Harness()
    leader, away = stable(harness, "a", "b", session_ms=10_000)
    harness.advance(9_000)
    harness.heartbeat(leader, 1)
    harness.advance(1_000)
    assert harness.heartbeat(leader, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.heartbeat(away, 1, instance="b") is ErrorCode.UNKNOWN_MEMBER_ID


def test_static_member_that_misses_a_rebalance_keeps_its_place() -> None:
    harness = Harness()
    leader, away = stable(harness, "a", "b", session_ms=60_000, rebalance_ms=10_000)
    answer = harness.join(leader, instance="a", session_ms=60_000, rebalance_ms=10_000)
    harness.advance(10_000)
    assert [each.member_id for each in answer.response.members] == [leader, away]
