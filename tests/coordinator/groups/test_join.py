"""JoinGroup: ids, protocols, sizes, and when it starts or ends a rebalance."""

from __future__ import annotations

import pytest

from coordinator.groups.states import GroupState
from coordinator.settings import GroupSettings
from protocol.errors import ErrorCode
from tests.coordinator.harness import GROUP, Harness


def test_a_new_member_gets_member_id_required_with_its_id() -> None:
    harness = Harness()
    answer = harness.join(client_id="billing", version=4)
    assert answer.error is ErrorCode.MEMBER_ID_REQUIRED
    assert answer.response.member_id == "billing-0001"
    assert answer.response.generation_id == -1


def test_new_member_below_version_4_joins_at_once() -> None:
    harness = Harness()
    answer = harness.join(version=3)
    assert answer.is_parked
    harness.advance(3_000)
    assert answer.response.member_id == "app-0001"
    assert answer.response.generation_id == 1


def test_pending_member_that_does_not_come_back_is_forgotten_after_its_session() -> None:
    harness = Harness()
    pending = harness.join(session_ms=6_000).response.member_id
    harness.advance(5_999)
    group = harness.shard.find(GROUP)
    assert group is not None
    assert pending in group.pending_members
    harness.advance(1)
    assert harness.shard.find(GROUP) is None
    assert harness.join(pending).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_pending_member_holds_up_a_rebalance_until_it_joins() -> None:
    harness = Harness()
    first, *_ = harness.stable_group(1)
    pending = harness.join().response.member_id
    rejoin = harness.join(first, protocols={"range": b"changed"})
    assert rejoin.is_parked
    joined = harness.join(pending)
    assert rejoin.response.generation_id == joined.response.generation_id == 2


def test_pending_member_that_expires_lets_the_rebalance_end() -> None:
    harness = Harness()
    first, *_ = harness.stable_group(1)
    harness.join(session_ms=6_000)
    rejoin = harness.join(first, protocols={"range": b"changed"})
    harness.advance(6_000)
    assert rejoin.response.generation_id == 2


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, -1])
def test_session_timeout_out_of_bounds_is_refused(session_ms: int) -> None:
    harness = Harness()
    assert harness.join(session_ms=session_ms).error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert harness.shard.find(GROUP) is None


def test_unknown_member_of_unknown_group_is_refused() -> None:
    assert Harness().join("ghost").error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("", {"range": b""}), ("connect", {"range": b""}), ("consumer", {"sticky": b""})],
)
def test_member_that_does_not_fit_the_group_is_refused(
    protocol_type: str, protocols: dict[str, bytes]
) -> None:
    harness = Harness()
    harness.stable_group(1)
    refused = harness.join(protocol_type=protocol_type, protocols=protocols)
    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_refused_first_member_leaves_no_group_behind() -> None:
    harness = Harness()
    assert harness.join(protocol_type="").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert harness.shard.find(GROUP) is None


def test_protocol_with_most_votes_among_common_ones_is_chosen() -> None:
    harness = Harness()
    wishes = [["range", "sticky"], ["sticky", "range"], ["odd", "sticky", "range"]]
    answers = [harness.join(version=3, protocols=dict.fromkeys(wish, b"")) for wish in wishes[:2]]
    refused = harness.join(version=3, protocols={"odd": b""})
    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    answers.append(harness.join(version=3, protocols=dict.fromkeys(wishes[2], b"")))
    harness.advance(6_000)
    assert {answer.response.protocol_name for answer in answers} == {"sticky"}


def test_only_the_leader_gets_the_member_list() -> None:
    harness = Harness()
    leader, follower = (harness.join_twice() for _ in range(2))
    harness.advance(6_000)
    assert [each.member_id for each in leader[1].response.members] == [leader[0], follower[0]]
    assert follower[1].response.members == []
    assert leader[1].response.leader == follower[1].response.leader == leader[0]


def test_empty_group_waits_longer_while_members_keep_coming() -> None:
    harness = Harness()
    answers = [harness.join(version=3)]
    for _ in range(3):
        harness.advance(2_999)
        assert answers[0].is_parked
        answers.append(harness.join(version=3))
    harness.advance(6_000)
    assert {answer.response.generation_id for answer in answers} == {1}
    assert len(answers[0].response.members) == 4


def test_initial_delay_never_exceeds_the_rebalance_timeout() -> None:
    harness = Harness()
    first = harness.join(version=3, rebalance_ms=7_000)
    for second in range(8):
        harness.join(version=3, rebalance_ms=7_000)
        harness.advance(1_000)
        assert first.is_parked == (second < 6)


def test_without_initial_delay_the_first_member_is_answered_by_the_next_tick() -> None:
    harness = Harness(GroupSettings(initial_rebalance_delay_ms=0))
    _, answer = harness.join_twice()
    harness.advance(0)
    assert answer.response.generation_id == 1


def test_a_follower_that_rejoins_unchanged_gets_the_current_generation() -> None:
    harness = Harness()
    _, follower = harness.stable_group(2)
    answer = harness.join(follower)
    assert answer.response.generation_id == 1
    assert answer.response.members == []


def test_leader_that_rejoins_starts_a_rebalance() -> None:
    harness = Harness()
    leader, follower = harness.stable_group(2)
    answer = harness.join(leader)
    assert answer.is_parked
    assert harness.heartbeat(follower, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    harness.join(follower)
    assert answer.response.generation_id == 2


def test_follower_with_changed_metadata_starts_a_rebalance() -> None:
    harness = Harness()
    leader, follower = harness.stable_group(2)
    answer = harness.join(follower, protocols={"range": b"other topics"})
    assert answer.is_parked
    harness.join(leader)
    assert answer.response.generation_id == 2


def test_repeated_join_before_the_assignment_gets_the_same_generation_again() -> None:
    harness = Harness()
    (leader, _), (follower, _) = (harness.join_twice() for _ in range(2))
    harness.advance(6_000)
    again = harness.join(leader)
    assert again.response.generation_id == 1
    assert len(again.response.members) == 2
    assert harness.join(follower).response.members == []


def test_changed_join_before_the_assignment_starts_over_and_fails_parked_syncs() -> None:
    harness = Harness()
    (leader, _), (follower, _) = (harness.join_twice() for _ in range(2))
    harness.advance(6_000)
    sync = harness.sync(follower, 1)
    answer = harness.join(leader, protocols={"range": b"changed"})
    assert sync.error is ErrorCode.REBALANCE_IN_PROGRESS
    harness.join(follower)
    assert answer.response.generation_id == 2


def test_second_join_of_a_parked_member_releases_the_first() -> None:
    harness = Harness()
    member, first = harness.join_twice()
    second = harness.join(member)
    assert first.error is ErrorCode.REBALANCE_IN_PROGRESS
    harness.advance(3_000)
    assert second.response.generation_id == 1


def test_members_that_do_not_rejoin_within_the_rebalance_timeout_are_dropped() -> None:
    harness = Harness()
    leader, slow = harness.stable_group(2, rebalance_ms=20_000, session_ms=30_000)
    answer = harness.join(leader, rebalance_ms=20_000, session_ms=30_000)
    harness.advance(19_999)
    assert answer.is_parked
    harness.advance(1)
    assert [each.member_id for each in answer.response.members] == [leader]
    assert harness.heartbeat(slow, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_leader_that_does_not_rejoin_is_replaced() -> None:
    harness = Harness()
    leader, follower = harness.stable_group(2, rebalance_ms=20_000, session_ms=30_000)
    answer = harness.join(follower, protocols={"range": b"x"}, rebalance_ms=20_000)
    harness.advance(20_000)
    assert answer.response.leader == follower != leader
    assert len(answer.response.members) == 1


def test_rebalance_timeout_is_the_most_patient_members() -> None:
    harness = Harness()
    slow = harness.join(version=3, rebalance_ms=50_000, session_ms=60_000)
    quick = harness.join(version=3, rebalance_ms=10_000, session_ms=60_000)
    harness.advance(6_000)
    members = [slow.response.member_id, quick.response.member_id]
    harness.settle(members, 1)
    answer = harness.join(
        members[1], protocols={"range": b"x"}, rebalance_ms=10_000, session_ms=60_000
    )
    harness.advance(49_999)
    assert answer.is_parked
    harness.advance(1)
    assert answer.response.generation_id == 2


def test_version_0_has_no_rebalance_timeout_and_uses_the_session_timeout() -> None:
    harness = Harness()
    harness.join(version=0, session_ms=12_000)
    group = harness.shard.find(GROUP)
    assert group is not None
    assert group.rebalance_timeout_ms == 12_000


def test_full_group_takes_nobody_else_but_keeps_its_members() -> None:
    harness = Harness(GroupSettings(max_size=2))
    leader, follower = harness.stable_group(2)
    assert harness.join().error is ErrorCode.GROUP_MAX_SIZE_REACHED
    answer = harness.join(leader)
    harness.join(follower)
    assert answer.response.generation_id == 2


def test_group_larger_than_a_lowered_limit_sheds_those_that_rejoin_last() -> None:
    harness = Harness()
    members = harness.stable_group(3)
    harness.settings = GroupSettings(max_size=2)
    smaller = harness.restarted()
    group = smaller.shard.find(GROUP)
    assert group is not None
    assert group.state is GroupState.PREPARING_REBALANCE
    answers = [smaller.join(member) for member in members]
    assert answers[2].error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert answers[0].response.generation_id == 2
    assert len(answers[0].response.members) == 2


def test_new_member_whose_client_died_while_parked_is_dropped_after_five_minutes() -> None:
    harness = Harness()
    leader, *_ = harness.stable_group(1, rebalance_ms=600_000, session_ms=600_000)
    _, parked = harness.join_twice(rebalance_ms=600_000)
    harness.advance(299_999)
    assert parked.is_parked
    harness.advance(1)
    assert parked.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.join(leader, rebalance_ms=600_000).response.generation_id == 2


def test_member_joins_a_group_that_the_last_one_left_while_it_was_awaited() -> None:
    harness = Harness()
    (first,) = harness.stable_group(1)
    pending = harness.join().response.member_id
    rejoin = harness.join(first, protocols={"range": b"changed"})
    assert rejoin.is_parked
    harness.leave(first)
    group = harness.shard.find(GROUP)
    assert group is not None
    assert (group.state, len(group.members)) == (GroupState.PREPARING_REBALANCE, 0)

    joined = harness.join(pending)

    assert joined.error is ErrorCode.NONE
    assert joined.response.generation_id == 2
