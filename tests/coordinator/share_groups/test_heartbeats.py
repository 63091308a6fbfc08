"""Members of share groups: the answers they get, and the records that a group stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coordinator.share_groups.checks import check_share_request, is_member_id
from coordinator.share_groups.settings import ShareGroupSettings
from protocol.errors import ApiError, ErrorCode
from protocol.messages.share_groups import ShareGroupHeartbeatRequest
from tests.coordinator.consumer_groups.consumer_harness import Member
from tests.coordinator.harness import GROUP
from tests.coordinator.share_groups.share_harness import AT_ONCE, Shares, share_harness
from tests.support.broker_parts.steps import finished

if TYPE_CHECKING:
    from typing import Any


def everything(shares: Shares) -> Any:
    group = shares.group
    return (
        *(group.epoch, group.assignment_epoch, group.metadata_hash, group.states),
        *(group.members, group.targets, group.names),
    )


def test_a_partition_is_read_once_it_has_state() -> None:
    shares = share_harness(t=2)
    joined = shares.beat("a", "t")
    assert (joined.error_code, joined.member_epoch) == (ErrorCode.NONE, 2)
    assert shares.told["a"] == {}
    [wanted] = shares.asked
    assert wanted.state_epoch == 2
    assert set(wanted.start_offsets.values()) == {-1}

    shares.initialise()
    assert shares.beat("a").member_epoch == 3
    assert shares.told["a"] == {"t": [0, 1]}
    length = len(shares.harness.log)
    assert shares.beat("a").assignment is None
    assert len(shares.harness.log) == length, "a heartbeat that changes nothing stores nothing"


def test_an_assignment_whose_answer_was_lost_is_sent_again() -> None:
    shares = share_harness(t=2)
    shares.beat("a", "t")
    shares.initialise()
    shares.beat("a")
    shares.epochs["a"], shares.told["a"] = 2, {}

    assert shares.beat("a").member_epoch == 3
    assert shares.told["a"] == {"t": [0, 1]}
    assert shares.beat("a").assignment is None


def test_members_share_partitions_and_leave_them_to_others() -> None:
    shares = share_harness(t=4)
    for member in "ab":
        shares.beat(member, "t")
    shares.settle("a", "b")
    assert sorted(shares.told["a"]["t"] + shares.told["b"]["t"]) == [0, 1, 2, 3]
    assert shares.leave("a") is ErrorCode.NONE
    shares.beat("b")
    assert shares.told["b"] == {"t": [0, 1, 2, 3]}
    assert shares.leave("a") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_whose_removal_is_not_stored_is_removed_later() -> None:
    shares = share_harness(t=1)
    shares.beat("a", "t")
    shares.beat("b", "t")
    shares.harness.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert shares.leave("b") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    shares.harness.advance(45_000)
    assert len(shares.group.members) == 2

    shares.harness.append_error = None
    shares.harness.advance(1_000)

    assert not shares.group.members


def test_a_heartbeat_that_is_not_committed_in_time_has_to_look_for_its_coordinator() -> None:
    shares = share_harness(t=1)
    shares.harness.commit_error = ErrorCode.REQUEST_TIMED_OUT

    assert shares.beat("a", "t").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_silent_member_is_removed() -> None:
    shares = share_harness(t=1)
    shares.beat("a", "t")
    shares.beat("b", "t")
    shares.harness.advance(30_000)
    shares.beat("b")
    shares.harness.advance(20_000)
    assert shares.group.members.keys() == {"b"}
    shares.harness = shares.harness.restarted()
    shares.harness.advance(45_000)
    assert shares.group.state.value == "Empty"


def test_topics_that_grow_or_appear_are_initialised_too() -> None:
    shares = share_harness(t=1)
    shares.beat("a", "t", "later")
    shares.settle("a")
    shares.harness.topics.put("t", 3)
    shares.harness.topics.put("later", 1)
    shares.beat("a")
    [wanted] = shares.asked
    assert len(wanted.start_offsets) == 3
    shares.settle("a")
    assert shares.told["a"] == {"t": [0, 1, 2], "later": [0]}


def test_topics_added_by_another_members_subscription_are_initialised() -> None:
    shares = share_harness(t=1, u=1)
    shares.beat("a", "t")
    shares.settle("a")
    shares.beat("b", "u")
    assert len(shares.asked) == 1
    shares.settle("a", "b")
    assert shares.told == {"a": {"t": [0]}, "b": {"u": [0]}}


def test_a_failed_initialisation_is_requested_again() -> None:
    shares = share_harness(t=1)
    shares.beat("a", "t")
    shares.initialise(failing=True)
    assert shares.group.states.initialising == {}
    shares.harness.advance(AT_ONCE.initialize_retry_interval_ms)
    shares.beat("a")
    assert len(shares.asked) == 1
    shares.asked.clear()  # no answer at all
    shares.beat("a")
    assert shares.asked == []
    shares.harness.advance(AT_ONCE.initialize_retry_interval_ms)
    shares.beat("a")
    assert len(shares.asked) == 1


def test_a_new_coordinator_repeats_an_unanswered_initialisation() -> None:
    shares = share_harness(t=1)
    shares.beat("a", "t")
    shares.asked.clear()
    shares.harness = shares.harness.restarted()
    shares.beat("a")
    assert len(shares.asked) == 1


def test_a_reloaded_share_group_equals_the_stored_one() -> None:
    shares = share_harness(t=4, u=2)
    for member in "abc":
        shares.beat(member, "t", "u")
    shares.settle("a", "b", "c")
    shares.leave("b")
    shares.beat("c", "u")
    before = everything(shares)
    shares.harness = shares.harness.restarted()
    assert everything(shares) == before


def test_an_epoch_that_is_not_the_members_is_fenced() -> None:
    shares = share_harness(t=1)
    shares.beat("a", "t")
    shares.settle("a")
    epoch = shares.epochs["a"]
    assert shares.beat("a", member_epoch=epoch - 1).member_epoch == epoch, "an answer was lost"
    for wrong in (epoch + 1, epoch - 2):
        assert shares.beat("a", member_epoch=wrong).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert shares.beat("b", member_epoch=1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    again = shares.beat("a", "t", member_epoch=0)
    assert (again.error_code, again.member_epoch) == (ErrorCode.NONE, epoch)
    assert shares.told["a"] == {"t": [0]}


def test_a_full_share_group_refuses_new_members() -> None:
    shares = share_harness(ShareGroupSettings(assignment_interval_ms=0, max_size=1), t=1)
    shares.beat("a", "t")
    assert shares.beat("b", "t").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert not shares.beat("a").error_code


def test_the_next_target_waits_for_the_interval() -> None:
    shares = share_harness(ShareGroupSettings(assignment_interval_ms=1_000), t=2)
    shares.beat("a", "t")
    shares.initialise()
    assert shares.beat("a").member_epoch == 2
    shares.harness.advance(1_000)
    assert shares.beat("a").member_epoch == 3
    assert shares.told["a"] == {"t": [0, 1]}


def test_the_assignment_epoch_of_an_emptied_group_follows_its_epoch() -> None:
    shares = share_harness(t=2)
    shares.beat("a", "t")

    shares.leave("a")

    assert shares.group.assignment_epoch == shares.group.epoch == 3


def test_a_large_group_is_assigned_in_steps() -> None:
    shares = share_harness(t=400)
    for member in "ab":
        shares.beat(member, "t")
    shares.initialise()
    shares.beat("a")
    shares.settle("a", "b")
    assert len(shares.told["a"]["t"]) == len(shares.told["b"]["t"]) == 200
    assert shares.group.assignment_epoch == shares.group.epoch


def test_a_heartbeat_that_cannot_be_stored_changes_nothing() -> None:
    shares = share_harness(t=1)
    shares.harness.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert shares.beat("a", "t").error_code == ErrorCode.NOT_COORDINATOR
    assert GROUP not in shares.harness.shard.shares


def test_groups_of_other_kinds_are_no_share_groups() -> None:
    shares = share_harness(t=1)
    assert shares.leave("a") is ErrorCode.GROUP_ID_NOT_FOUND
    assert shares.harness.commit(7) is ErrorCode.NONE
    refused = shares.beat("a", "t")
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert refused.error_message == f"Group {GROUP} is not a share group."


def test_a_share_group_is_of_no_other_kind() -> None:
    shares = share_harness(t=1)
    shares.beat("a", "t")
    shares.leave("a")
    harness = shares.harness
    consumer = Member(harness, "c", ["t"])
    assert consumer.join() is ErrorCode.GROUP_ID_NOT_FOUND
    with pytest.raises(ApiError, match="INCONSISTENT_GROUP_PROTOCOL"):
        harness.shard.handle_change_to_classic(GROUP)
    assert harness.commit(7) is ErrorCode.GROUP_ID_NOT_FOUND
    assert harness.shard.expire_offsets(GROUP, harness.now_ms) == []
    [listed] = harness.shard.handle_list([], ["share"])
    assert (listed.group_id, listed.group_state, listed.protocol_type) == (GROUP, "Empty", "share")
    assert list(harness.shard.handle_list(["stable"], [])) == []
    described = finished(harness.shard.shares.describe("nobody"))
    assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    other = finished(harness.shard.consumers.describe(GROUP))
    assert other.error_message == f"Group {GROUP} is not a consumer group."


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"subscribed_topic_names": []}, "SubscribedTopicNames must be set in first request."),
        ({"member_epoch": -2}, "MemberEpoch is invalid."),
    ],
)
def test_malformed_share_group_heartbeats_are_refused(said: dict[str, Any], message: str) -> None:
    right: dict[str, Any] = {
        "group_id": GROUP,
        "member_id": "a",
        "member_epoch": 0,
        "subscribed_topic_names": ["t"],
    }
    check_share_request(ShareGroupHeartbeatRequest(**right))
    with pytest.raises(ApiError) as refused:
        check_share_request(ShareGroupHeartbeatRequest(**(right | said)))
    assert refused.value.message == message


def test_member_ids_are_no_longer_than_a_uuid() -> None:
    assert [is_member_id(text) for text in ("a", "x" * 36, "x" * 37, "", None)] == [
        *(True, True, False, False, False)
    ]
