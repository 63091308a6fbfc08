"""Positions in open transactions: who may commit them, who sees them, how they end (TX-13)."""

from __future__ import annotations

import pytest

from coordinator.settings import GroupSettings
from protocol.errors import ErrorCode
from protocol.messages.offset_fetch import OffsetDeleteRequest, OffsetFetchRequest
from tests.coordinator.harness import GROUP, Harness
from tests.support.broker_parts.steps import finished

NONE = ErrorCode.NONE
RETENTION_MS = 1_000


def delete_offset(harness: Harness) -> ErrorCode:
    partition = OffsetDeleteRequest.Topic.Partition(partition_index=0)
    topic = OffsetDeleteRequest.Topic(name="orders", partitions=[partition])
    request = OffsetDeleteRequest(group_id=GROUP, topics=[topic])
    response, records = harness.shard.handle_offset_delete(request)
    harness.append(records)
    return ErrorCode(response.error_code)


def expire(harness: Harness) -> None:
    harness.append(harness.shard.expire_offsets(GROUP, harness.now_ms))


def test_position_is_invisible_until_the_transaction_is_committed() -> None:
    harness = Harness()
    harness.commit(1)
    assert harness.commit_in_transaction(2) is NONE

    assert harness.fetch().committed_offset == 1
    harness.end_transaction(7, is_commit=True)
    assert harness.fetch().committed_offset == 2


def test_abort_drops_the_position() -> None:
    harness = Harness()
    harness.commit(1)
    harness.commit_in_transaction(2)

    harness.end_transaction(7, is_commit=False)

    assert harness.fetch(require_stable=True).committed_offset == 1
    harness.end_transaction(7, is_commit=True)
    assert harness.fetch().committed_offset == 1


def test_offset_fetch_with_require_stable_answers_unstable_offset_commit() -> None:
    harness = Harness()
    harness.commit(1, partition=1)
    harness.commit_in_transaction(2)

    unstable = harness.fetch(require_stable=True)
    assert unstable.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert (unstable.committed_offset, unstable.metadata) == (-1, "")
    assert harness.fetch(partition=1, require_stable=True).committed_offset == 1

    harness.end_transaction(7, is_commit=True)
    assert harness.fetch(require_stable=True).committed_offset == 2


def test_fetching_all_offsets_omits_partitions_never_committed() -> None:
    harness = Harness()
    harness.commit(1, partition=1)
    harness.commit_in_transaction(2, partition=1)
    harness.commit_in_transaction(3, partition=2)
    request = OffsetFetchRequest.Group(group_id=GROUP, topics=None)

    (topic,) = finished(harness.shard.handle_offset_fetch(request, require_stable=True)).topics

    (only,) = topic.partitions
    assert only.partition_index == 1
    assert only.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT


def test_commit_outside_the_transaction_that_came_later_counts() -> None:
    harness = Harness()
    harness.commit_in_transaction(2)
    harness.commit(5)

    harness.end_transaction(7, is_commit=True)

    assert harness.fetch().committed_offset == 5


def test_of_two_transactional_offsets_the_later_one_counts() -> None:
    harness = Harness()
    harness.commit_in_transaction(2, producer_id=7)
    harness.commit_in_transaction(3, producer_id=8)

    harness.end_transaction(8, is_commit=True)
    assert harness.fetch(require_stable=True).error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
    harness.end_transaction(7, is_commit=True)

    assert harness.fetch(require_stable=True).committed_offset == 3


def test_last_position_of_a_transaction_counts() -> None:
    harness = Harness()
    harness.commit_in_transaction(2)
    harness.commit_in_transaction(1)

    harness.end_transaction(7, is_commit=True)

    assert harness.fetch().committed_offset == 1


def test_group_comes_to_be_by_a_pending_position_and_outlives_its_abort() -> None:
    harness = Harness()
    harness.commit_in_transaction(2)
    assert harness.shard.find(GROUP) is not None

    harness.end_transaction(7, is_commit=False)
    assert harness.restarted().shard.find(GROUP) is not None

    expire(harness)
    assert harness.shard.find(GROUP) is None


def test_generation_of_a_group_that_does_not_exist_is_illegal() -> None:
    harness = Harness()
    assert harness.commit_in_transaction(1, member_id="m", generation=3) is (
        ErrorCode.ILLEGAL_GENERATION
    )
    assert harness.shard.find(GROUP) is None


@pytest.mark.parametrize(
    ("member_id", "generation", "instance", "error"),
    [
        ("leader", 1, None, NONE),
        ("leader", 0, None, ErrorCode.ILLEGAL_GENERATION),
        ("leader", -1, None, ErrorCode.ILLEGAL_GENERATION),
        ("ghost", 1, None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", 1, None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, "ghost", ErrorCode.UNKNOWN_MEMBER_ID),
        ("", -1, None, NONE),
    ],
)
def test_a_transactional_commit_checks_member_generation_and_instance(
    member_id: str, generation: int, instance: str | None, error: ErrorCode
) -> None:
    harness = Harness()
    (leader,) = harness.stable_group(1)
    named = leader if member_id == "leader" else member_id

    answer = harness.commit_in_transaction(
        1, member_id=named, generation=generation, instance=instance
    )

    assert answer is error


def test_replaced_static_member_is_fenced() -> None:
    harness = Harness()
    harness.join(instance="one", version=3)
    while harness.inboxes[0].is_parked:
        harness.advance(1_000)
    answer = harness.commit_in_transaction(1, member_id="old", generation=1, instance="one")
    assert answer is ErrorCode.FENCED_INSTANCE_ID


def test_member_commits_while_it_waits_for_its_assignment() -> None:
    harness = Harness(GroupSettings(initial_rebalance_delay_ms=0))
    member_id, _ = harness.join_twice()
    harness.advance(0)
    plain = harness.commit(1, member_id=member_id, generation=1)
    assert plain is ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.commit_in_transaction(1, member_id=member_id, generation=1) is NONE


def test_metadata_that_is_too_long_is_refused() -> None:
    harness = Harness(GroupSettings(offset_metadata_max_bytes=3))
    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert harness.commit_in_transaction(1, metadata="four") is too_large
    assert harness.commit_in_transaction(1, metadata=None) is NONE


def test_failed_append_leaves_nothing_pending() -> None:
    harness = Harness()
    harness.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert harness.commit_in_transaction(1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    harness.append_error = ErrorCode.MESSAGE_TOO_LARGE
    assert harness.commit_in_transaction(1) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert harness.fetch(require_stable=True).error_code == NONE


def test_deleted_offset_takes_pending_ones_with_it() -> None:
    harness = Harness()
    harness.commit(1)
    harness.commit_in_transaction(2)

    assert delete_offset(harness) is NONE
    harness.end_transaction(7, is_commit=True)

    assert harness.fetch(require_stable=True).committed_offset == -1


def test_deleted_group_takes_pending_positions_with_it() -> None:
    harness = Harness()
    harness.commit_in_transaction(2)

    code, records = harness.shard.handle_delete_group(GROUP)
    harness.append(records)
    harness.end_transaction(7, is_commit=True)

    assert code is NONE
    assert harness.shard.find(GROUP) is None
    assert harness.restarted().stored_offsets() == {}


def test_deleted_topic_takes_pending_positions_with_it() -> None:
    harness = Harness()
    harness.commit(1, topic="kept")
    harness.commit_in_transaction(2)

    for tombstones in harness.shard.handle_topics_deleted(["orders"], harness.log_end):
        harness.append(tombstones)
    harness.end_transaction(7, is_commit=True)

    assert harness.stored_offsets() == {("kept", 0): 1}


def test_pending_position_in_a_topic_that_was_made_anew_is_kept() -> None:
    harness = Harness()
    harness.commit_in_transaction(700)
    forgetting = harness.shard.handle_topics_deleted(["orders"], harness.log_end)

    harness.commit_in_transaction(2)
    for tombstones in forgetting:
        harness.append(tombstones)
    harness.end_transaction(7, is_commit=True)

    assert harness.stored_offsets() == {("orders", 0): 2}


def test_offset_does_not_expire_while_a_transaction_would_replace_it() -> None:
    harness = Harness(GroupSettings(offsets_retention_ms=RETENTION_MS))
    harness.commit(1)
    harness.commit(1, partition=1)
    harness.commit_in_transaction(2)
    harness.advance(RETENTION_MS)

    expire(harness)
    assert harness.stored_offsets() == {("orders", 0): 1}

    harness.end_transaction(7, is_commit=False)
    expire(harness)
    assert harness.shard.find(GROUP) is None


def test_group_does_not_expire_while_it_has_a_pending_position() -> None:
    harness = Harness(GroupSettings(offsets_retention_ms=RETENTION_MS))
    harness.commit_in_transaction(2)
    harness.advance(RETENTION_MS)

    expire(harness)

    assert harness.shard.find(GROUP) is not None
