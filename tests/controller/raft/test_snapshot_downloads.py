"""Snapshots of the leader: fetched piece by piece, given up, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from controller.raft.effects import (
    AbandonSnapshot,
    BeginSnapshot,
    Election,
    ExtendSnapshot,
    ReplaceLog,
    SaveElection,
)
from controller.raft.errors import QuorumError
from controller.raft.log_view import LogView
from controller.raft.states import State
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest
from protocol.messages.fetch_snapshot import FetchSnapshotRequest
from tests.controller.raft.asking import (
    BACKOFF_MS,
    DIRECTORY,
    LEADER,
    answered,
    asked,
    exchange,
    following,
    new_leader,
)
from tests.support.broker_parts.metadata_leader import CLUSTER, MetadataLeader, feature

if TYPE_CHECKING:
    from controller.raft.observer import Observer
    from protocol.metadata_log.snapshots import SnapshotId


def compacted() -> tuple[MetadataLeader, SnapshotId, bytes]:
    """A leader whose log begins with a snapshot of more than two pieces."""
    leader = new_leader()
    leader.lead(1)
    snapshot_id = leader.compact([feature(f"feature {number}") for number in range(6)])
    data = leader.snapshots[snapshot_id]
    assert 200 < len(data) < 900
    return leader, snapshot_id, data


def test_snapshot_is_downloaded_piece_by_piece_and_replaces_the_log() -> None:
    leader, snapshot_id, data = compacted()
    observer = following(leader)

    assert exchange(observer, leader) == [BeginSnapshot(snapshot_id)]
    effects: list[Any] = []
    while observer.state is State.DOWNLOADING:
        effects += exchange(observer, leader)

    *parts, last = effects
    assert last == ReplaceLog(snapshot_id)
    assert all(isinstance(one, ExtendSnapshot) for one in parts)
    assert b"".join(one.data for one in parts) == data
    requests = [one for one in leader.asked if isinstance(one, FetchSnapshotRequest)]
    first = requests[0]
    assert (first.cluster_id, first.replica_id, first.max_bytes) == (CLUSTER, 5, 100)
    wanted = [one.topics[0].partitions[0] for one in requests]
    assert [one.position for one in wanted] == list(range(0, len(data), 100))
    assert {one.replica_directory_id for one in wanted} == {DIRECTORY}


def downloading() -> tuple[Observer, MetadataLeader, SnapshotId]:
    leader, snapshot_id, _ = compacted()
    observer = following(leader)
    exchange(observer, leader)
    exchange(observer, leader)
    return observer, leader, snapshot_id


def test_snapshot_that_is_gone_at_the_leader_is_given_up() -> None:
    observer, leader, _ = downloading()
    leader.snapshots = {}
    assert exchange(observer, leader) == [AbandonSnapshot()]
    assert isinstance(asked(observer).request, FetchRequest)


def test_position_out_of_range_costs_a_pause_and_is_tried_again() -> None:
    observer, leader, _ = downloading()
    step = asked(observer)
    response: Any = leader.answer(step.request)
    response.topics[0].partitions[0].error_code = int(ErrorCode.POSITION_OUT_OF_RANGE)
    assert answered(observer, step, response) == []
    assert observer.state is State.DOWNLOADING
    again = asked(observer, now_ms=BACKOFF_MS)
    assert again.request == step.request


def test_new_leader_ends_the_download_and_is_fetched_from() -> None:
    observer, leader, _ = downloading()
    leader.epoch = 2
    assert exchange(observer, leader) == [AbandonSnapshot(), SaveElection(Election(2, 1))]
    assert isinstance(asked(observer).request, FetchRequest)


@pytest.mark.parametrize("field", ["position", "snapshot_id", "size"])
def test_piece_of_a_snapshot_that_was_not_asked_for_is_fatal(field: str) -> None:
    observer, leader, _ = downloading()
    step = asked(observer)
    response: Any = leader.answer(step.request)
    part = response.topics[0].partitions[0]
    if field == "snapshot_id":
        part.snapshot_id.epoch += 1
    else:
        setattr(part, field, 1)
    with pytest.raises(QuorumError, match="the leader sent"):
        answered(observer, step, response)


def test_snapshot_that_is_here_already_replaces_a_log_that_ends_before_it() -> None:
    leader, snapshot_id, _ = compacted()
    log = LogView(0, 0, (), snapshot_id)
    observer = following(leader, log)
    assert exchange(observer, leader, log) == [ReplaceLog(snapshot_id)]
    assert observer.state is State.FOLLOWING


def test_snapshot_below_the_high_watermark_is_fatal() -> None:
    leader, _, _ = compacted()
    log = LogView(0, 0)
    observer = following(leader, log)
    with pytest.raises(QuorumError, match="ends at offset 1, below the high watermark 5"):
        exchange(observer, leader, LogView(0, 5))


def test_download_goes_on_at_the_leader_after_others_were_asked_meanwhile() -> None:
    observer, leader, snapshot_id = downloading()
    step = asked(observer)
    observer.unanswered(step, 0)
    meanwhile = asked(observer)
    assert isinstance(meanwhile.request, FetchRequest)
    assert answered(observer, meanwhile, leader.answer(meanwhile.request)) == []
    again = asked(observer, now_ms=50)
    assert (again.address, again.request) == (LEADER, step.request)
    assert snapshot_id in leader.snapshots
