"""A classic group with members becomes a consumer group, when one of the other protocol joins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from coordinator.consumer_groups.settings import MigrationPolicy
from protocol.errors import ErrorCode
from protocol.messages.consumer_offsets_records import GroupMetadataKey
from tests.coordinator.consumer_groups.classic_members.classic_member import assignment_of
from tests.coordinator.consumer_groups.classic_members.moves import (
    PARTITIONS,
    TOPIC,
    classic_group,
    settle,
)
from tests.coordinator.consumer_groups.consumer_harness import (
    AT_ONCE,
    Member,
    beat,
    described,
    group_of,
)
from tests.coordinator.harness import GROUP

if TYPE_CHECKING:
    from tests.coordinator.harness import Harness

CLASSIC, CONSUMER = 0, 1
HOUR_MS = 3_600_000
TEN_DAYS_MS = 240 * HOUR_MS


def key_types(harness: Harness, since: int) -> list[int]:
    records = [entry.record for entry in harness.log[since:]]
    return [record.key.KEY_TYPE for record in records if record is not None]


def test_members_keep_their_partitions_until_they_rejoin() -> None:
    harness, [one, two] = classic_group(2)
    harness.commit(7, member_id=one.member_id, generation=one.generation)
    begins = len(harness.log)
    three = Member(harness, "c", [TOPIC])

    assert three.join() is ErrorCode.NONE

    assert harness.shard.find(GROUP) is None
    made = key_types(harness, begins)
    assert made[: 1 + 2 + 1 + 2 + 1 + 2] == [GroupMetadataKey.KEY_TYPE, 5, 5, 3, 7, 7, 6, 8, 8]
    kinds = {each.member_id: each.member_type for each in described(harness).members}
    assert kinds == {one.member_id: CLASSIC, two.member_id: CLASSIC, "c": CONSUMER}
    assert (one.count, two.count, three.count) == (3, 3, 0)
    assert harness.stored_offsets() == {(TOPIC, 0): 7}

    settle(one, two, three)
    assert [one.count, two.count, three.count] == [2, 2, 2]
    loaded = harness.restarted()
    assert described(loaded) == described(harness)


def test_a_parked_join_answers_rebalance_in_progress_on_upgrade() -> None:
    harness, [one, two] = classic_group(2)
    waiting = one.ask_to_join()
    assert waiting.is_parked

    assert Member(harness, "c", [TOPIC]).join() is ErrorCode.NONE

    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert two.heartbeat() is ErrorCode.NONE


def test_group_stays_classic_if_the_upgrade_cannot_be_stored() -> None:
    harness, [one, two] = classic_group(2)
    waiting = one.ask_to_join()
    harness.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert Member(harness, "c", [TOPIC]).join() is not ErrorCode.NONE
    harness.append_error = None

    assert waiting.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.shard.consumers.groups.find(GROUP) is None
    inboxes = [one.ask_to_join(), two.ask_to_join()]
    assert [inbox.error for inbox in inboxes] == [ErrorCode.NONE, ErrorCode.NONE]


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
def test_migration_policy_can_forbid_an_upgrade(policy: MigrationPolicy) -> None:
    harness, [one] = classic_group(1, replace(AT_ONCE, migration=policy))

    refused = beat(
        harness,
        member_id="c",
        member_epoch=0,
        rebalance_timeout_ms=1,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )

    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert refused.error_message == (
        "Cannot upgrade classic group orders to consumer group because online upgrade is disabled."
    )
    assert one.heartbeat() is ErrorCode.NONE


@pytest.mark.parametrize(
    ("metadata", "assignment", "reason"),
    [
        (b"any", b"", "malformed"),
        (b"", b"", "malformed"),
        (b"\xff\xff", b"", "malformed"),
        (None, b"\x00\x00", "malformed"),
        (None, b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01x", "custom assignor"),
    ],
)
def test_a_group_with_unparsable_metadata_stays_classic(
    metadata: bytes | None, assignment: bytes, reason: str
) -> None:
    harness, [_one] = classic_group(1)
    member = next(iter(found.members.values())) if (found := harness.shard.find(GROUP)) else None
    assert member is not None
    if metadata is not None:
        member.protocols = tuple((name, metadata) for name, _ in member.protocols)
    member.assignment = assignment

    refused = beat(
        harness,
        member_id="c",
        member_epoch=0,
        rebalance_timeout_ms=1,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )

    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert reason in (refused.error_message or "")
    assert harness.shard.find(GROUP) is not None


def test_partitions_assigned_twice_or_nonexistent_are_owned_once_or_not_at_all() -> None:
    harness, [one, two] = classic_group(2)
    group = harness.shard.find(GROUP)
    assert group is not None
    for member in group.members.values():
        member.assignment = assignment_of(orders=[0, 1, 1, -1, PARTITIONS, 2**31 - 1], gone=[0])
    three = Member(harness, "c", [TOPIC])

    assert three.join() is ErrorCode.NONE

    members = group_of(harness).members.values()
    owned = [index for each in members for owned in each.assigned.values() for index in owned]
    assert {0, 1} <= set(owned) <= set(range(PARTITIONS))
    assert len(owned) == len(set(owned))
    settle(one, two, three)
    assert [one.count, two.count, three.count] == [2, 2, 2]


@pytest.mark.parametrize("jump_ms", [0, -HOUR_MS, TEN_DAYS_MS])
@pytest.mark.parametrize("how", ["session", "join", "sync"])
def test_classic_member_that_is_silent_or_slow_is_removed(how: str, jump_ms: int) -> None:
    harness, [one] = classic_group(1)
    two = Member(harness, "c", [TOPIC])
    two.join()
    settle(one, two)
    assert (one.count, two.count) == (3, 3)

    def live(seconds: int) -> None:
        """The others say that they are there; so does it, if it is only slow."""
        for _ in range(seconds // 5):
            harness.advance(5_000)
            assert two.heartbeat() is ErrorCode.NONE
            if how != "session":
                harness.heartbeat(one.member_id, one.generation)

    if how == "join":
        harness.topics.put(TOPIC, PARTITIONS + 2)
        two.heartbeat()
    elif how == "sync":
        harness.topics.put(TOPIC, PARTITIONS + 2)
        two.heartbeat()
        assert one.joined(one.ask_to_join()) is ErrorCode.NONE
    harness.now_ms += jump_ms  # by the wall clock, by which nothing here goes
    live(10)
    assert (one.member_id in group_of(harness).members) == (how != "session")
    live(60)
    assert one.member_id not in group_of(harness).members
    settle(two)
    assert two.count >= PARTITIONS


def test_static_member_changes_its_protocol_and_keeps_its_place() -> None:
    harness, [one] = classic_group(1, instance_id="i")
    again = Member(harness, "c", [TOPIC], instance_id="i")

    assert again.join() is ErrorCode.NONE

    assert again.count == PARTITIONS
    assert one.heartbeat() is ErrorCode.FENCED_INSTANCE_ID
    assert list(group_of(harness).members) == ["c"]


def test_protocols_of_classic_members_have_one_in_common() -> None:
    harness, [one] = classic_group(1)
    Member(harness, "c", [TOPIC]).join()
    other: Any = replace(one, member_id="b", protocols=("roundrobin",))

    refused = other.ask_to_join()

    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    other.protocols = ("roundrobin", "sticky")
    assert other.ask_to_join().error is ErrorCode.NONE
