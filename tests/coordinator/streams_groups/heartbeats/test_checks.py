"""Heartbeats that are refused, and what they leave behind: nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coordinator.streams_groups.heartbeats.checks import check_request
from protocol.errors import ApiError, ErrorCode
from protocol.messages.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupKeyValue,
    StreamsGroupTaskIds,
)
from tests.coordinator.harness import GROUP
from tests.coordinator.streams_groups.streams_harness import (
    AT_ONCE,
    Member,
    beat,
    group_of,
    settle,
    streams_harness,
)
from tests.support.topologies import topology


@pytest.mark.parametrize("ahead", [1, -1])
def test_other_epochs_are_fenced(ahead: int) -> None:
    harness = streams_harness()
    member = Member(harness, "a")
    member.join()
    settle(member)
    member.epoch += ahead * 7

    assert member.heartbeat() is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_nonexistent_task_is_refused() -> None:
    harness = streams_harness()
    member = Member(harness, "a")
    member.join()
    settle(member)
    member.owned["active"]["0"] = [6]

    assert member.heartbeat() is ErrorCode.INVALID_REQUEST


def test_refused_heartbeat_does_not_hide_from_others_that_topics_changed() -> None:
    harness = streams_harness()
    a, b = Member(harness, "a", topology("stateless", "app")), Member(harness, "b", process_id="q")
    b.topology = a.topology
    a.join()
    b.join()
    settle(a, b)
    a.owned["active"]["0"] = [99]
    harness.topics.put("one", 8)
    assert a.heartbeat() is ErrorCode.INVALID_REQUEST
    a.join()
    settle(a, b)

    assert a.count() + b.count() == 12


def test_lists_longer_than_any_application_has_are_refused() -> None:
    tasks = [StreamsGroupTaskIds(subtopology_id="0", partitions=list(range(11)))]
    tags = [StreamsGroupKeyValue(key=str(n), value="") for n in range(101)]
    options: dict[str, Any] = {
        "group_id": GROUP,
        "member_id": "a",
        "member_epoch": 1,
        "endpoint_information_epoch": 0,
    }
    owned: dict[str, Any] = {"active_tasks": tasks, "standby_tasks": [], "warmup_tasks": []}
    wrongs: tuple[dict[str, Any], ...] = (owned, {"client_tags": tags})
    for wrong in wrongs:
        with pytest.raises(ApiError) as refused:
            check_request(StreamsGroupHeartbeatRequest(**options, **wrong), max_tasks=10)
        assert refused.value.code is ErrorCode.INVALID_REQUEST
    check_request(StreamsGroupHeartbeatRequest(**options, **owned), max_tasks=11)


def test_group_that_is_full_takes_no_more() -> None:
    harness = streams_harness(replace(AT_ONCE, max_size=1))
    member = Member(harness, "a")
    member.join()

    assert Member(harness, "b").join() is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert member.heartbeat() is ErrorCode.NONE
    assert member.join() is ErrorCode.NONE


def test_too_many_tasks_are_refused_and_nothing_is_stored() -> None:
    harness = streams_harness(replace(AT_ONCE, max_tasks=5))

    assert Member(harness, "a").join() is ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert harness.log == []


def test_refused_append_changes_nothing() -> None:
    harness = streams_harness()
    harness.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    member = Member(harness, "a")
    assert member.join() is ErrorCode.NOT_COORDINATOR
    harness.append_error = None
    assert member.join() is ErrorCode.NONE
    settle(member)

    assert member.count() == 6


def test_member_whose_removal_is_not_stored_is_removed_later() -> None:
    harness = streams_harness()
    Member(harness, "a").join()
    harness.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    harness.advance(45_000)
    assert list(group_of(harness).members) == ["a"]

    harness.append_error = None
    harness.advance(1_000)

    assert not group_of(harness).members


def test_heartbeat_that_is_not_committed_in_time_has_to_look_for_its_coordinator() -> None:
    harness = streams_harness()
    harness.commit_error = ErrorCode.REQUEST_TIMED_OUT

    assert Member(harness, "a").join() is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_heartbeat_to_an_unknown_group_leaves_no_state() -> None:
    harness = streams_harness()
    answer = beat(harness, member_id="a", member_epoch=3).response

    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert not harness.timers.due
    assert harness.log == []
