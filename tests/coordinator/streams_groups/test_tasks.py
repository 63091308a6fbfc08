"""Restoration progress of tasks, as members report it; and tags that they lack."""

from __future__ import annotations

from dataclasses import replace

from coordinator.streams_groups.topology import StatusCode
from protocol.errors import ErrorCode
from protocol.messages.streams_groups import StreamsGroupKeyValue, StreamsGroupTaskOffset
from tests.coordinator.streams_groups.streams_harness import (
    AT_ONCE,
    Member,
    described,
    settle,
    streams_harness,
)


def offset(partition: int, number: int) -> StreamsGroupTaskOffset:
    return StreamsGroupTaskOffset(subtopology_id="0", partition=partition, offset=number)


def test_offsets_are_described_until_they_are_reported_anew() -> None:
    harness = streams_harness()
    member = Member(harness, "a")
    member.join(task_offsets=[offset(2, 5), offset(0, 7)], task_end_offsets=[offset(0, 9)])
    settle(member)

    (shown,) = described(harness).members
    assert shown.task_offsets == [offset(0, 7), offset(2, 5)]
    assert shown.task_end_offsets == [offset(0, 9)]

    member.heartbeat(task_offsets=[])
    (shown,) = described(harness).members
    assert (shown.task_offsets, shown.task_end_offsets) == ([], [offset(0, 9)])


def test_offset_that_is_reported_twice_is_refused() -> None:
    harness = streams_harness()
    member = Member(harness, "a")
    member.join()

    twice = [offset(0, 1), offset(0, 2)]
    assert member.heartbeat(task_offsets=twice) is ErrorCode.INVALID_REQUEST


def test_answer_carries_offset_interval_and_acceptable_recovery_lag() -> None:
    member = Member(streams_harness(), "a")
    member.join()

    assert member.answer is not None
    assert member.answer.task_offset_interval_ms == 60_000
    assert member.answer.acceptable_recovery_lag == 10_000


def test_missing_client_tags_are_reported_in_the_status() -> None:
    harness = streams_harness(replace(AT_ONCE, rack_aware_assignment_tags=("zone", "rack")))
    member = Member(harness, "a")
    member.join(client_tags=[StreamsGroupKeyValue(key="zone", value="z")])
    settle(member)

    assert member.answer is not None
    assert member.answer.status is not None
    (status,) = member.answer.status
    assert status.status_code == StatusCode.MISSING_CLIENT_TAGS
    assert "[rack]" in status.status_detail
