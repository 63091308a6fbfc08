"""Deleting groups, and what expires when (KIP-211)."""

from __future__ import annotations

import pytest

from coordinator import records
from coordinator.settings import GroupSettings
from protocol.errors import ErrorCode
from protocol.messages.consumer_offsets_records import GroupMetadataKey, GroupMetadataValue
from tests.coordinator.harness import GROUP, Harness
from tests.coordinator.offsets.test_offsets import subscription

RETENTION_MS = 100_000


@pytest.fixture
def harness() -> Harness:
    return Harness(GroupSettings(offsets_retention_ms=RETENTION_MS))


def clean_up(harness: Harness) -> None:
    for group_id in list(harness.shard.group_ids):
        harness.append(harness.shard.expire_offsets(group_id, harness.now_ms))


def delete(harness: Harness, group_id: str = GROUP) -> ErrorCode:
    code, records = harness.shard.handle_delete_group(group_id)
    harness.append(records)
    return code


def test_empty_group_is_deleted_with_its_offsets(harness: Harness) -> None:
    harness.commit(1)
    harness.commit(2, topic="other")
    assert delete(harness) is ErrorCode.NONE
    assert harness.shard.find(GROUP) is None
    assert harness.stored_offsets() == {}
    assert harness.restarted().stored_offsets() == {}


def test_group_with_members_is_not_deleted(harness: Harness) -> None:
    harness.stable_group(1)
    assert delete(harness) is ErrorCode.NON_EMPTY_GROUP


def test_group_that_does_not_exist_is_not_deleted(harness: Harness) -> None:
    assert delete(harness) is ErrorCode.GROUP_ID_NOT_FOUND


def test_deleted_group_may_be_founded_again(harness: Harness) -> None:
    (member,) = harness.stable_group(1)
    harness.leave(member)
    assert delete(harness) is ErrorCode.NONE
    harness.stable_group(1)
    assert harness.restarted().shard.find(GROUP) is not None


def test_standalone_offsets_expire_from_their_commit(harness: Harness) -> None:
    harness.commit(1, topic="old")
    harness.advance(RETENTION_MS // 2)
    harness.commit(1, topic="young")
    harness.advance(RETENTION_MS // 2 - 1)
    clean_up(harness)
    assert len(harness.stored_offsets()) == 2
    harness.advance(1)
    clean_up(harness)
    assert harness.stored_offsets() == {("young", 0): 1}
    harness.advance(RETENTION_MS)
    clean_up(harness)
    assert harness.shard.find(GROUP) is None


def test_offsets_of_an_emptied_group_expire_from_that_moment(harness: Harness) -> None:
    (member,) = harness.stable_group(1, session_ms=1_000_000)
    harness.commit(1, member_id=member, generation=1)
    harness.advance(2 * RETENTION_MS)
    harness.leave(member)
    harness.advance(RETENTION_MS - 1)
    clean_up(harness)
    assert harness.stored_offsets() == {("orders", 0): 1}
    other = harness.restarted()
    other.advance(1)
    clean_up(other)
    assert other.shard.find(GROUP) is None


def test_topics_that_a_stable_group_consumes_do_not_expire(harness: Harness) -> None:
    (member,) = harness.stable_group(
        1, protocols={"range": subscription("used")}, session_ms=1_000_000
    )
    for topic in ("used", "unused"):
        harness.commit(1, topic=topic, member_id=member, generation=1)
    harness.advance(RETENTION_MS)
    clean_up(harness)
    assert harness.stored_offsets() == {("used", 0): 1}


def test_nothing_expires_while_a_group_rebalances(harness: Harness) -> None:
    leader, _ = harness.stable_group(
        2,
        protocols={"range": subscription("used")},
        session_ms=1_000_000,
        rebalance_ms=1_000_000,
    )
    harness.commit(1, topic="unused", member_id=leader, generation=1)
    harness.join(leader, session_ms=1_000_000, rebalance_ms=1_000_000)
    harness.advance(RETENTION_MS)
    clean_up(harness)
    assert harness.stored_offsets() == {("unused", 0): 1}


@pytest.mark.parametrize("protocol_type", ["connect", "consumer"])
def test_no_offset_expires_while_subscriptions_are_unknown(
    harness: Harness, protocol_type: str
) -> None:
    (member,) = harness.stable_group(1, protocol_type=protocol_type, session_ms=1_000_000)
    harness.commit(1, member_id=member, generation=1)
    harness.advance(RETENTION_MS)
    clean_up(harness)
    assert harness.stored_offsets() == {("orders", 0): 1}


def test_a_new_commit_restarts_the_offset_retention(harness: Harness) -> None:
    harness.commit(1)
    harness.advance(RETENTION_MS - 1)
    harness.commit(2)
    harness.advance(RETENTION_MS - 1)
    clean_up(harness)
    assert harness.stored_offsets() == {("orders", 0): 2}
    harness.advance(1)
    clean_up(harness)
    assert harness.stored_offsets() == {}


@pytest.mark.parametrize("restart", [False, True])
def test_a_topic_is_spared_as_long_as_some_member_consumes_it(
    harness: Harness, restart: bool
) -> None:
    first, second = harness.stable_group(
        2, protocols={"range": subscription("used", "shared")}, session_ms=1_000_000
    )
    for topic in ("used", "shared", "unused"):
        harness.commit(1, topic=topic, member_id=first, generation=1)
    harness.advance(RETENTION_MS)
    survivor = harness.restarted() if restart else harness
    clean_up(survivor)
    assert survivor.stored_offsets() == {("used", 0): 1, ("shared", 0): 1}
    assert survivor.shard.find(GROUP) is not None
    for member in (first, second):
        survivor.leave(member)
    clean_up(survivor)
    assert len(survivor.stored_offsets()) == 2, "they count from when the group became empty"


def test_emptied_group_of_an_old_broker_expires_from_the_commits(harness: Harness) -> None:
    """Before version 2 a group's record has no time since which it is in its state."""
    key = GroupMetadataKey(group=GROUP)
    value = GroupMetadataValue(
        protocol_type="consumer", generation=0, protocol=None, leader=None, members=[]
    )
    assert value.current_state_timestamp == -1
    harness.append([records.OffsetsRecord(key, value)])
    harness.commit(1, topic="old")
    harness.advance(RETENTION_MS // 2)
    harness.commit(1, topic="young")
    harness.advance(RETENTION_MS // 2)
    clean_up(harness)
    assert harness.stored_offsets() == {("young", 0): 1}


def test_client_that_chose_its_own_retention_gets_it(harness: Harness) -> None:
    harness.commit(1, retention_ms=10, version=2)
    harness.advance(9)
    clean_up(harness)
    assert harness.stored_offsets() == {("orders", 0): 1}
    harness.advance(1)
    clean_up(harness)
    assert harness.stored_offsets() == {}


def test_emptied_group_without_offsets_goes_at_the_next_clean_up(harness: Harness) -> None:
    (member,) = harness.stable_group(1)
    clean_up(harness)
    assert harness.shard.find(GROUP) is not None
    harness.leave(member)
    clean_up(harness)
    assert harness.shard.find(GROUP) is None


def test_tombstone_of_a_group_leaves_its_offsets(harness: Harness) -> None:
    # Apache writes such a log when a group moves to the newer protocol.
    (member,) = harness.stable_group(1)
    harness.commit(1, member_id=member, generation=1)
    harness.append([records.group_tombstone(GROUP)])
    assert harness.stored_offsets() == {("orders", 0): 1}
    group = harness.shard.find(GROUP)
    assert group is not None
    assert (group.members, group.generation) == ({}, 0)


def test_group_of_offsets_goes_with_the_last_of_them_even_without_its_own_tombstone(
    harness: Harness,
) -> None:
    harness.commit(1)
    harness.append([records.offset_tombstone(GROUP, "orders", 0)])
    assert harness.shard.find(GROUP) is None


def test_a_group_with_a_pending_member_does_not_expire(harness: Harness) -> None:
    harness.commit(1)
    pending = harness.join().response.member_id
    harness.advance(0)
    code, _ = harness.shard.handle_delete_group("other")
    assert code is ErrorCode.GROUP_ID_NOT_FOUND
    harness.now_ms += RETENTION_MS
    clean_up(harness)
    assert harness.stored_offsets() == {}
    assert harness.join(pending).is_parked
