"""Tables of what an observer knows and is answered, and what it asks and does."""

from __future__ import annotations

import logging
from uuid import UUID

import pytest

from controller.raft.effects import (
    AdvanceHighWatermark,
    Append,
    Election,
    SaveElection,
    Truncate,
)
from controller.raft.errors import QuorumError
from controller.raft.log_view import LogView
from controller.raft.observer import Rest
from controller.raft.states import State
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.metadata_log.snapshots import SnapshotId
from tests.controller.raft.asking import (
    BACKOFF_MS,
    BOOTSTRAP,
    DIRECTORY,
    EMPTY,
    FETCH_TIMEOUT_MS,
    LEADER,
    OTHER,
    answered,
    asked,
    exchange,
    following,
    new_leader,
    new_observer,
    partition_of,
)
from tests.support.broker_parts.metadata_leader import CLUSTER, MetadataLeader, data_batch, feature


def test_fetch_of_an_observer_says_all_that_the_leader_checks() -> None:
    log = LogView(7, 5, ((1, 0), (3, 4)))

    step = asked(new_observer(election=Election(3, 1)), log)

    request = step.request
    assert isinstance(request, FetchRequest)
    assert step.address == BOOTSTRAP
    assert (request.cluster_id, request.replica_state.replica_id) == (CLUSTER, 5)
    assert (request.max_wait_ms, request.min_bytes) == (500, 0)
    assert (request.session_id, request.session_epoch) == (0, -1)
    wanted = request.topics[0].partitions[0]
    assert (wanted.current_leader_epoch, wanted.fetch_offset, wanted.last_fetched_epoch) == (
        3,
        7,
        3,
    )
    assert (wanted.replica_directory_id, wanted.high_watermark) == (DIRECTORY, 5)


@pytest.mark.parametrize(
    ("log", "epoch"),
    [(EMPTY, 0), (LogView(9, 9, (), SnapshotId(9, 4)), 4), (LogView(9, 9, ((6, 0),)), 6)],
)
def test_last_fetched_epoch_is_of_the_log_or_else_of_the_snapshot(log: LogView, epoch: int) -> None:
    request = asked(new_observer(), log).request
    assert isinstance(request, FetchRequest)
    assert request.topics[0].partitions[0].last_fetched_epoch == epoch


def test_leader_is_found_by_the_error_of_a_bootstrap_server() -> None:
    observer, follower = new_observer(), new_leader(node_id=2, epoch=4, leader_id=1)

    effects = exchange(observer, follower)

    assert effects == [SaveElection(Election(4, 1))]
    assert observer.state is State.FOLLOWING
    step = asked(observer)
    assert step.address == LEADER
    assert step.request.topics[0].partitions[0].current_leader_epoch == 4


def test_records_are_taken_from_the_leader_of_the_epoch_that_is_known_already() -> None:
    leader = new_leader()
    leader.append(feature("a"))
    observer = new_observer(election=Election(1))

    effects = exchange(observer, leader)

    assert effects == [
        SaveElection(Election(1, 1)),
        Append(memoryview(leader.batches[0]), 1),
        AdvanceHighWatermark(1),
    ]


def test_leader_without_an_address_is_asked_for_again_after_a_pause() -> None:
    observer, server = new_observer(), MetadataLeader(node_id=2, epoch=4, leader_id=1)

    assert exchange(observer, server) == [SaveElection(Election(4, 1))]

    assert observer.state is State.UNATTACHED
    assert asked(observer).address == BOOTSTRAP
    assert exchange(observer, server) == []
    assert observer.next_request(EMPTY, 0) == Rest(BACKOFF_MS)


def test_leader_without_an_address_is_found_among_the_voters() -> None:
    observer, server = new_observer(), MetadataLeader(node_id=2, epoch=4, leader_id=1)
    observer.voter_addresses = {1: LEADER}
    exchange(observer, server)
    assert asked(observer).address == LEADER


USELESS = [
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_SERVER_ERROR,
]


@pytest.mark.parametrize("code", USELESS)
def test_error_that_names_the_leader_that_is_known_costs_a_pause(code: ErrorCode) -> None:
    leader = new_leader()
    observer = following(leader)
    step = asked(observer)
    response = leader.answer(step.request)
    partition_of(response).error_code = int(code)

    assert answered(observer, step, response) == []

    assert observer.state is State.FOLLOWING
    assert asked(observer).address == BOOTSTRAP, "the leader is left alone, and others are asked"
    assert asked(observer, now_ms=BACKOFF_MS).address == LEADER


@pytest.mark.parametrize(
    "code", [ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.BROKER_NOT_AVAILABLE]
)
def test_error_for_the_whole_request_costs_a_pause(code: ErrorCode) -> None:
    observer = new_observer(BOOTSTRAP, OTHER)
    step = asked(observer)
    assert answered(observer, step, FetchResponse(error_code=int(code), responses=[])) == []
    assert asked(observer).address == OTHER


def test_refusal_is_logged_once_until_an_answer_is_of_use(caplog: pytest.LogCaptureFixture) -> None:
    observer, leader = new_observer(), new_leader()
    refusal = FetchResponse(error_code=int(ErrorCode.INCONSISTENT_CLUSTER_ID), responses=[])
    with caplog.at_level(logging.ERROR):
        for now_ms in (0, 20, 40):
            answered(observer, asked(observer, now_ms=now_ms), refusal, now_ms=now_ms)
        assert caplog.text.count("refused by the quorum: INCONSISTENT_CLUSTER_ID") == 1
        exchange(observer, leader, now_ms=60)
        answered(observer, asked(observer, now_ms=60), refusal, now_ms=60)
    assert caplog.text.count("refused by the quorum: INCONSISTENT_CLUSTER_ID") == 2


def test_answer_about_another_topic_is_passed_by() -> None:
    leader = new_leader()
    observer = following(leader)
    step = asked(observer)
    response = leader.answer(step.request)
    assert isinstance(response, FetchResponse)
    response.responses[0].topic_id = UUID(int=9)
    assert answered(observer, step, response) == []


@pytest.mark.parametrize(
    ("code", "words"),
    [(ErrorCode.INVALID_REQUEST, "invalid"), (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not let")],
)
def test_error_that_will_not_pass_is_fatal(code: ErrorCode, words: str) -> None:
    leader = new_leader()
    observer = following(leader)
    step = asked(observer)
    response = leader.answer(step.request)
    if code is ErrorCode.INVALID_REQUEST:
        partition_of(response).error_code = int(code)
    else:
        response.error_code = int(code)  # type: ignore[attr-defined]
    with pytest.raises(QuorumError, match=words):
        answered(observer, step, response)


def test_two_leaders_in_one_epoch_are_fatal() -> None:
    observer = following(new_leader())
    with pytest.raises(QuorumError, match="epoch 1 has two leaders, 1 and 2"):
        exchange(observer, new_leader(node_id=2, leader_id=2))


def test_answer_of_an_older_epoch_is_passed_by() -> None:
    observer, old = new_observer(election=Election(5, 2)), new_leader(epoch=4)
    old.append(feature("a"))
    assert exchange(observer, old) == []
    assert observer.election == Election(5, 2)


def test_newer_epoch_without_a_leader_leaves_the_old_one() -> None:
    leader = new_leader()
    observer = following(leader)
    leader.epoch, leader.leader_id = 2, -1
    assert exchange(observer, leader) == [SaveElection(Election(2, -1))]
    assert (observer.state, observer.leader_address) == (State.UNATTACHED, None)


def test_leader_that_does_not_answer_is_looked_for_elsewhere_with_longer_pauses() -> None:
    observer = following(new_leader())
    observer.unanswered(asked(observer), 0)
    assert asked(observer, now_ms=49).address == BOOTSTRAP
    step = asked(observer, now_ms=50)
    assert step.address == LEADER
    observer.unanswered(step, 50)
    assert asked(observer, now_ms=149).address == BOOTSTRAP
    assert asked(observer, now_ms=150).address == LEADER


def test_leader_not_heard_of_for_the_fetch_timeout_is_looked_for_elsewhere() -> None:
    leader = new_leader()
    observer = following(leader)
    assert asked(observer, now_ms=FETCH_TIMEOUT_MS - 1).address == LEADER
    assert asked(observer, now_ms=FETCH_TIMEOUT_MS).address == BOOTSTRAP
    exchange(observer, leader, now_ms=FETCH_TIMEOUT_MS)
    assert asked(observer, now_ms=2 * FETCH_TIMEOUT_MS - 1).address == LEADER


def test_bootstrap_servers_that_fail_take_turns_and_then_have_a_rest() -> None:
    observer = new_observer(BOOTSTRAP, OTHER)
    for address in (BOOTSTRAP, OTHER):
        step = asked(observer)
        assert step.address == address
        observer.unanswered(step, 0)
    assert observer.next_request(EMPTY, 0) == Rest(50)


def test_log_is_cut_where_the_histories_part() -> None:
    leader = new_leader(epoch=3)
    leader.append(feature("a"))
    log = LogView(3, 1, ((1, 0), (2, 1)))
    leader.batches = [data_batch([feature("a")], 0, 1), data_batch([feature("b")], 1, 3)]

    assert exchange(following(leader, log), leader, log) == [Truncate(1)]


def test_cut_below_the_high_watermark_is_fatal() -> None:
    leader = new_leader(epoch=3)
    leader.batches = [data_batch([feature("a")], 0, 1)]
    log = LogView(3, 2, ((1, 0),))
    with pytest.raises(QuorumError, match="below the high watermark 2"):
        exchange(following(leader, log), leader, log)


def test_answer_of_which_records_were_left_out_costs_a_pause() -> None:
    leader = new_leader()
    observer = following(leader)
    step = asked(observer)
    observer.left_out(step, 0)
    assert asked(observer).address == BOOTSTRAP
    assert asked(observer, now_ms=BACKOFF_MS).address == LEADER
