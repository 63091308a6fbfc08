"""Commits and reads of offsets, fenced by member epochs."""

from __future__ import annotations

import pytest

from protocol.errors import ApiError, ErrorCode
from protocol.messages.offset_fetch import OffsetFetchRequest
from tests.coordinator.consumer_groups.consumer_harness import (
    Member,
    consumer_harness,
    settle,
)

EPOCHS = 9
"""The first version of OffsetCommit with member epochs."""


def test_a_commit_of_an_earlier_epoch_counts_for_partitions_owned_then() -> None:
    harness = consumer_harness(orders=2)
    a, b = Member(harness, "a", ["orders"]), Member(harness, "b", ["orders"])
    a.join()
    first = a.epoch
    b.join()
    settle(a, b)
    assert a.epoch == first + 1
    [mine], [others] = a.owned.values(), b.owned.values()

    def commit(epoch: int, partition: int, version: int = EPOCHS) -> ErrorCode:
        return harness.commit(
            5, member_id="a", generation=epoch, partition=partition, version=version
        )

    assert commit(a.epoch, mine[0]) is ErrorCode.NONE
    assert commit(first, mine[0]) is ErrorCode.NONE
    assert commit(first, others[0]) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(a.epoch + 1, mine[0]) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(a.epoch, mine[0], 8) is ErrorCode.UNSUPPORTED_VERSION
    assert harness.commit(5, version=EPOCHS) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_stale_transactional_commit_answers_illegal_generation() -> None:
    harness = consumer_harness(orders=2)
    a = Member(harness, "a", ["orders"])
    a.join()

    assert harness.commit_in_transaction(5) is ErrorCode.NONE
    stale = harness.commit_in_transaction(5, member_id="a", generation=a.epoch + 1)
    assert stale is ErrorCode.ILLEGAL_GENERATION
    present = harness.commit_in_transaction(5, member_id="a", generation=a.epoch)
    assert present is ErrorCode.NONE


def test_an_empty_group_accepts_commits_of_tools() -> None:
    harness = consumer_harness(orders=2)
    a = Member(harness, "a", ["orders"])
    a.join()
    a.leave()

    assert harness.commit(5, version=EPOCHS) is ErrorCode.NONE


def test_reads_are_fenced_by_epoch() -> None:
    harness = consumer_harness(orders=2)
    a = Member(harness, "a", ["orders"])
    a.join()

    def check(member_id: str | None, epoch: int) -> ErrorCode:
        request = OffsetFetchRequest.Group(
            group_id="orders", member_id=member_id, member_epoch=epoch, topics=None
        )
        try:
            harness.shard.check_offset_fetch(request)
        except ApiError as error:
            return error.code
        return ErrorCode.NONE

    assert check(None, -1) is ErrorCode.NONE
    assert check("a", a.epoch) is ErrorCode.NONE
    assert check("a", a.epoch + 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert check("b", 1) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("has_members", [True, False])
def test_offsets_expire_by_subscription_and_the_group_with_the_last(has_members: bool) -> None:
    harness = consumer_harness(orders=2, old=1)
    a = Member(harness, "a", ["orders"])
    a.join()
    for topic in ("orders", "old"):
        harness.commit(5, member_id="a", generation=a.epoch, topic=topic, version=EPOCHS)
    if not has_members:
        a.leave()
    later = harness.now_ms + 8 * 24 * 3_600_000

    harness.append(harness.shard.expire_offsets("orders", later))

    assert harness.stored_offsets() == ({("orders", 0): 5} if has_members else {})
    assert ("orders" in harness.shard.consumers.groups) == has_members
    assert harness.restarted().stored_offsets() == harness.stored_offsets()
