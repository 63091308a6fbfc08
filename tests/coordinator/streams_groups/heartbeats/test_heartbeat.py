"""Members of streams groups join, stay, move their tasks and leave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coordinator.streams_groups.topology import StatusCode
from protocol.errors import ErrorCode
from protocol.messages.streams_groups import (
    StreamsGroupEndpoint,
)
from tests.coordinator.harness import GROUP
from tests.coordinator.streams_groups.streams_harness import (
    AT_ONCE,
    Member,
    described,
    group_of,
    settle,
    streams_harness,
)
from tests.support.topologies import topology

DELAYED = replace(AT_ONCE, initial_rebalance_delay_ms=3_000)
WITH_COPIES = replace(AT_ONCE, num_standby_replicas=1)


def test_tasks_whose_answer_was_lost_are_sent_again() -> None:
    harness = streams_harness()
    member, other = Member(harness, "a"), Member(harness, "b", process_id="q")
    member.join()
    settle(member)
    other.join()
    settle(member, other)
    other.leave()
    epoch, owned = member.epoch, member.owned
    member.heartbeat()
    assert member.count() == 6

    member.epoch, member.owned = epoch, owned
    assert member.heartbeat() is ErrorCode.NONE

    assert member.count() == 6


def test_tasks_are_given_out_once_internal_topics_are_there() -> None:
    harness = streams_harness()
    member = Member(harness, "a", topology("repartitioned", "app"))

    assert member.join() is ErrorCode.NONE
    assert member.statuses == [StatusCode.MISSING_INTERNAL_TOPICS]
    assert member.count() == 0
    assert described(harness).group_state == "NotReady"

    settle(member)
    assert member.owned["active"] == {"0": [0, 1, 2, 3], "1": [0, 1, 2, 3]}
    assert described(harness).group_state == "Stable"
    created = harness.topics.find("app-r-repartition")
    assert created is not None
    assert created.partition_count == 4


def test_active_task_is_at_one_member_while_it_moves() -> None:
    harness = streams_harness()
    a, b = Member(harness, "a"), Member(harness, "b", process_id="q")
    a.join()
    settle(a)
    b.join()
    assert b.count() == 0  # all of it is a's
    a.heartbeat()
    assert a.count() == 3
    b.heartbeat()
    assert b.count() == 0  # a has not said yet that it gave them up
    a.heartbeat()
    b.heartbeat()

    assert b.count() == 3
    assert not set(a.owned["active"]["0"]) & set(b.owned["active"]["0"])


def test_member_that_keeps_tasks_is_removed() -> None:
    harness = streams_harness()
    a, b = Member(harness, "a"), Member(harness, "b", process_id="q")
    a.join(rebalance_timeout_ms=20_000)
    settle(a)
    b.join()
    owned = a.owned
    for _ in range(5):
        a.owned = owned
        a.heartbeat()
        harness.advance(5_000)
        b.heartbeat()
    settle(b)

    assert b.count() == 6
    assert a.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_silent_member_is_removed_after_the_coordinator_moved_too() -> None:
    harness = streams_harness()
    a, b = Member(harness, "a"), Member(harness, "b", process_id="q")
    a.join()
    b.join()
    settle(a, b)
    harness.advance(40_000)

    loaded = harness.restarted()
    b.harness = loaded
    loaded.advance(40_000)
    assert b.heartbeat() is ErrorCode.NONE
    loaded.advance(10_000)
    settle(b)

    assert list(group_of(loaded).members) == ["b"]
    assert b.count() == 6


def test_copies_are_at_other_processes_and_become_active_when_a_process_dies() -> None:
    harness = streams_harness(WITH_COPIES)
    a, b = Member(harness, "a"), Member(harness, "b", process_id="q")
    a.join()
    b.join()
    settle(a, b)
    assert (a.count(), a.count("standby"), b.count(), b.count("standby")) == (3, 3, 3, 3)
    assert a.owned["active"] == b.owned["standby"]

    a.leave()
    settle(b)

    assert (b.count(), b.count("standby")) == (6, 0)


def test_two_threads_of_a_process_have_no_copies_of_each_other() -> None:
    harness = streams_harness(WITH_COPIES)
    a, b = Member(harness, "a"), Member(harness, "b")
    a.join()
    b.join()
    settle(a, b)

    assert (a.count(), b.count()) == (3, 3)
    assert a.count("standby") == b.count("standby") == 0


def test_the_assignment_epoch_of_an_emptied_group_follows_its_epoch() -> None:
    harness = streams_harness()
    member = Member(harness, "a")
    member.join()

    member.leave()

    assert group_of(harness).assignment_epoch == group_of(harness).epoch == 3


def test_new_group_waits_for_more_members() -> None:
    harness = streams_harness(DELAYED)
    a, b = Member(harness, "a"), Member(harness, "b", process_id="q")
    a.join()
    assert StatusCode.ASSIGNMENT_DELAYED in a.statuses
    harness.advance(1_000)
    b.join()
    assert StatusCode.ASSIGNMENT_DELAYED in b.statuses
    harness.advance(2_500)

    assert group_of(harness).assignment_epoch == group_of(harness).epoch
    settle(a, b)
    assert (a.count(), b.count()) == (3, 3)
    assert not a.statuses


def test_group_that_is_gone_when_its_delay_ends_costs_nothing() -> None:
    harness = streams_harness(DELAYED)
    member = Member(harness, "a")
    member.join()
    member.leave()
    harness.advance(10_000)
    assert described(harness).group_state == "Empty"
    harness.append(harness.shard.handle_delete_group(GROUP)[1])

    assert not harness.timers.due
    assert harness.shard.group_ids == []


def test_next_assignment_waits_for_its_interval() -> None:
    harness = streams_harness(replace(AT_ONCE, assignment_interval_ms=10_000))
    a, b = Member(harness, "a"), Member(harness, "b", process_id="q")
    a.join()
    harness.advance(10_000)
    settle(a)
    b.join()
    assert b.statuses == [StatusCode.ASSIGNMENT_DELAYED]
    harness.advance(10_000)
    settle(a, b)

    assert (a.count(), b.count()) == (3, 3)


def test_topology_is_set_by_the_first_member() -> None:
    harness = streams_harness()
    Member(harness, "a").join()
    other = Member(harness, "b", topology("stateless", "app"))
    assert other.join() is ErrorCode.INVALID_REQUEST
    newer = Member(harness, "b", topology("stateful", "app", epoch=1))
    assert newer.join() is ErrorCode.INVALID_REQUEST

    assert list(group_of(harness).members) == ["a"]


def test_a_member_with_an_older_topology_gets_status_stale_topology() -> None:
    harness = streams_harness()
    Member(harness, "a", topology("stateful", "app", epoch=1)).join()
    old = Member(harness, "b", topology("stateless", "app"))

    assert old.join() is ErrorCode.NONE
    assert StatusCode.STALE_TOPOLOGY in old.statuses


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("absent", StatusCode.MISSING_SOURCE_TOPICS),
        ("uneven", StatusCode.INCORRECTLY_PARTITIONED_TOPICS),
    ],
)
def test_wrong_source_topics_are_reported_in_the_status(kind: str, status: StatusCode) -> None:
    harness = streams_harness()
    member = Member(harness, "a", topology(kind, "app"))
    member.join()
    assert member.statuses == [status]
    harness.topics.put("gone", 6)
    harness.topics.put("two", 6)
    settle(member)

    assert member.count() == 6
    assert member.statuses == []


def test_status_shutdown_application_lasts_until_all_members_left() -> None:
    harness = streams_harness()
    a, b = Member(harness, "a"), Member(harness, "b", process_id="q")
    a.join()
    b.join()
    a.heartbeat(shutdown_application=True)
    b.heartbeat()
    assert b.statuses == [StatusCode.SHUTDOWN_APPLICATION]
    a.leave()
    b.leave()
    b.join()

    assert b.statuses == []


def test_changed_endpoints_are_sent_to_all_members() -> None:
    harness = streams_harness()
    a, b = Member(harness, "a"), Member(harness, "b", process_id="q")
    a.join(user_endpoint=StreamsGroupEndpoint(host="h", port=1))
    b.join(user_endpoint=StreamsGroupEndpoint(host="h", port=2))
    settle(a, b)
    known = group_of(harness).memory.endpoint_epoch
    a.heartbeat(endpoint_information_epoch=known - 1)
    assert a.answer is not None
    shown = {
        each.user_endpoint.port: [(one.topic, one.partitions) for one in each.active_partitions]
        for each in a.answer.partitions_by_user_endpoint or ()
    }
    assert shown == {
        1: [("one", a.owned["active"]["0"])],
        2: [("one", b.owned["active"]["0"])],
    }
    a.heartbeat(endpoint_information_epoch=known)
    assert a.answer.partitions_by_user_endpoint is None


def test_more_standby_replicas_are_assigned_without_a_change_of_members() -> None:
    class Overrides:
        replicas = 0

        def value(self, group_id: str, name: str, default: Any) -> Any:
            assert group_id == GROUP
            return self.replicas if name == "streams.num.standby.replicas" else default

    overrides = Overrides()
    harness = streams_harness(replace(AT_ONCE, overrides=overrides))
    a, b = Member(harness, "a"), Member(harness, "b", process_id="q")
    a.join()
    b.join()
    settle(a, b)
    overrides.replicas = 1
    settle(a, b)

    assert (a.count("standby"), b.count("standby")) == (3, 3)


def test_empty_group_becomes_a_classic_one_and_back() -> None:
    harness = streams_harness()
    member = Member(harness, "a")
    member.join()
    refused = harness.shard
    with pytest.raises(Exception, match="Cannot join the streams group"):
        refused.handle_change_to_classic(GROUP)
    member.leave()
    harness.append(harness.shard.handle_change_to_classic(GROUP))
    assert GROUP not in harness.shard.streams
    harness.stable_group(1)
    assert member.join() is ErrorCode.GROUP_ID_NOT_FOUND

    assert described(harness).error_message == f"Group {GROUP} is not a streams group."


def test_positions_are_fenced_by_the_epoch_in_which_a_task_was_given() -> None:
    harness = streams_harness()
    a, b = Member(harness, "a"), Member(harness, "b", process_id="q")
    a.join()
    settle(a)
    former = a.epoch
    b.join()
    settle(a, b)
    kept, lost = a.owned["active"]["0"][0], b.owned["active"]["0"][0]
    commit: dict[str, Any] = {"member_id": "a", "topic": "one", "version": 9}

    assert harness.commit(7, generation=a.epoch, partition=lost, **commit) is ErrorCode.NONE
    assert harness.commit(7, generation=former, partition=kept, **commit) is ErrorCode.NONE
    stale = ErrorCode.STALE_MEMBER_EPOCH
    assert harness.commit(7, generation=former, partition=lost, **commit) is stale
    commit["topic"] = "two"
    assert harness.commit(7, generation=former, partition=kept, **commit) is stale
    commit["member_id"] = "c"
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.commit(7, generation=former, partition=kept, **commit) is unknown


def test_list_finds_the_group_by_type_and_state() -> None:
    harness = streams_harness()
    Member(harness, "a", topology("absent", "app")).join()

    def listed(*states: str, types: tuple[str, ...] = ()) -> list[str]:
        return [each.group_state for each in harness.shard.handle_list(states, types)]

    assert listed(types=("Streams",)) == ["NotReady"]
    assert listed("notready") == listed("not_ready") == ["NotReady"]
    assert listed("Stable") == listed(types=("consumer",)) == []
