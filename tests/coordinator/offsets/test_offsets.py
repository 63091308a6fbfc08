"""Committing, reading and deleting offsets."""

from __future__ import annotations

import struct

import pytest

from coordinator.settings import GroupSettings
from protocol.errors import ErrorCode
from protocol.messages.offset_fetch import OffsetDeleteRequest
from tests.coordinator.harness import GROUP, Harness


def subscription(*topics: str) -> bytes:
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 1, len(topics)) + names + struct.pack(">i", -1)


def delete_offset(harness: Harness, *topics: str) -> dict[str, ErrorCode] | ErrorCode:
    partition = OffsetDeleteRequest.Topic.Partition(partition_index=0)
    request = OffsetDeleteRequest(
        group_id=GROUP,
        topics=[OffsetDeleteRequest.Topic(name=name, partitions=[partition]) for name in topics],
    )
    response, records = harness.shard.handle_offset_delete(request)
    harness.append(records)
    if response.error_code:
        return ErrorCode(response.error_code)
    return {each.name: ErrorCode(each.partitions[0].error_code) for each in response.topics}


def test_tool_commits_for_a_group_that_does_not_exist() -> None:
    harness = Harness()
    assert harness.commit(42, metadata="note", epoch=7) is ErrorCode.NONE
    found = harness.fetch()
    assert (found.committed_offset, found.committed_leader_epoch, found.metadata) == (42, 7, "note")


def test_unknown_partition_reads_as_no_offset() -> None:
    found = Harness().fetch()
    assert (found.committed_offset, found.committed_leader_epoch) == (-1, -1)
    assert (found.metadata, found.error_code) == ("", ErrorCode.NONE)


@pytest.mark.parametrize(
    ("version", "error"),
    [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)],
)
def test_member_of_a_group_that_does_not_exist_is_refused(version: int, error: ErrorCode) -> None:
    harness = Harness()
    assert harness.commit(1, member_id="ghost", generation=3, version=version) is error
    assert harness.shard.find(GROUP) is None


def test_only_members_of_the_present_generation_commit_for_a_group_with_members() -> None:
    harness = Harness()
    (member,) = harness.stable_group(1)
    assert harness.commit(1, member_id=member, generation=1) is ErrorCode.NONE
    assert harness.commit(2, member_id=member, generation=0) is ErrorCode.ILLEGAL_GENERATION
    assert harness.commit(2, member_id="ghost", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.commit(2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.fetch().committed_offset == 1


def test_commit_is_taken_while_members_join_and_not_while_the_assignment_is_made() -> None:
    harness = Harness()
    leader, follower = harness.stable_group(2)
    harness.join(leader)
    assert harness.commit(1, member_id=follower, generation=1) is ErrorCode.NONE
    harness.join(follower)
    assert harness.commit(2, member_id=follower, generation=2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.fetch().committed_offset == 1


def test_commit_keeps_the_session_alive() -> None:
    harness = Harness()
    (member,) = harness.stable_group(1, session_ms=10_000)
    for offset in range(5):
        harness.advance(9_000)
        assert harness.commit(offset, member_id=member, generation=1) is ErrorCode.NONE


def test_emptied_group_takes_commits_of_tools_again() -> None:
    harness = Harness()
    (member,) = harness.stable_group(1)
    harness.leave(member)
    assert harness.commit(5) is ErrorCode.NONE
    assert harness.commit(6, member_id=member, generation=1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_null_metadata_is_stored_as_empty() -> None:
    harness = Harness()
    harness.commit(1, metadata=None)
    assert harness.fetch().metadata == ""


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ("x" * 8, ErrorCode.NONE),
        ("x" * 9, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("ж" * 8, ErrorCode.NONE),
        ("𝄞" * 4, ErrorCode.NONE),
        ("𝄞" * 5, ErrorCode.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_metadata_is_limited_in_utf_16_units(metadata: str, error: ErrorCode) -> None:
    harness = Harness(GroupSettings(offset_metadata_max_bytes=8))
    assert harness.commit(1, metadata=metadata) is error


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_a_failed_append_changes_nothing_and_answers_its_error(
    failure: ErrorCode, told: ErrorCode
) -> None:
    harness = Harness()
    harness.commit(1)
    harness.append_error = failure
    assert harness.commit(2) is told
    assert harness.fetch().committed_offset == 1


def test_offsets_survive_a_restart() -> None:
    harness = Harness()
    harness.commit(1, topic="a")
    harness.commit(2, topic="a")
    harness.commit(3, topic="b", partition=9, group_id="other")
    other = harness.restarted()
    assert other.stored_offsets() == {("a", 0): 2}
    assert other.stored_offsets("other") == {("b", 9): 3}


def test_offsets_of_a_consumed_topic_cannot_be_deleted() -> None:
    harness = Harness()
    (member,) = harness.stable_group(1, protocols={"range": subscription("a")})
    for topic in "ab":
        harness.commit(1, topic=topic, member_id=member, generation=1)
    assert delete_offset(harness, "a", "b") == {
        "a": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        "b": ErrorCode.NONE,
    }
    assert harness.stored_offsets() == {("a", 0): 1}


def test_offsets_of_members_that_are_no_consumers_cannot_be_deleted() -> None:
    harness = Harness()
    (member,) = harness.stable_group(1, protocol_type="connect")
    harness.commit(1, member_id=member, generation=1)
    assert delete_offset(harness, "orders") is ErrorCode.NON_EMPTY_GROUP


def test_offsets_cannot_be_deleted_while_subscriptions_are_unknown() -> None:
    harness = Harness()
    (member,) = harness.stable_group(1, protocols={"range": b"not a subscription"})
    harness.commit(1, member_id=member, generation=1)
    assert delete_offset(harness, "orders") == {"orders": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}


def test_group_goes_with_its_last_offset() -> None:
    harness = Harness()
    harness.commit(1)
    assert delete_offset(harness, "orders") == {"orders": ErrorCode.NONE}
    assert harness.shard.find(GROUP) is None
    assert harness.restarted().shard.find(GROUP) is None


def test_offset_delete_of_unknown_group() -> None:
    assert delete_offset(Harness(), "orders") is ErrorCode.GROUP_ID_NOT_FOUND


def test_deleted_topics_take_their_offsets_along() -> None:
    harness = Harness()
    (member,) = harness.stable_group(1)
    for topic in "ab":
        harness.commit(1, topic=topic, member_id=member, generation=1)
    harness.commit(1, topic="a", group_id="other")
    for records in harness.shard.handle_topics_deleted({"a"}, harness.log_end):
        harness.append(records)
    assert harness.stored_offsets() == {("b", 0): 1}
    assert harness.shard.find("other") is None
    assert harness.heartbeat(member, 1) is ErrorCode.NONE


def test_position_that_is_committed_after_the_deletion_is_kept() -> None:
    harness = Harness()
    harness.commit(700, topic="a")
    harness.commit(700, topic="a", partition=1)
    harness.commit(700, topic="a", group_id="other")
    forgetting = harness.shard.handle_topics_deleted({"a"}, harness.log_end)

    harness.commit(1, topic="a")
    harness.append(next(forgetting))
    harness.commit(1, topic="a", group_id="other")
    for records in forgetting:
        harness.append(records)

    assert harness.stored_offsets() == {("a", 0): 1}
    assert harness.stored_offsets("other") == {("a", 0): 1}
