"""Tables of what an observer knows and is answered, and what it asks and does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from controller.raft.destinations import Destinations
from controller.raft.effects import (
    AbandonSnapshot,
    AdvanceHighWatermark,
    Append,
    BeginSnapshot,
    Election,
    ExtendSnapshot,
    ReplaceLog,
    SaveElection,
    Truncate,
)
from controller.raft.errors import QuorumError
from controller.raft.log_view import LogView
from controller.raft.observer import Ask, Observer, Rest, State
from controller.raft.requests import Replica, RequestLimits
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.fetch_snapshot import FetchSnapshotRequest
from protocol.metadata_log.snapshots import SnapshotId
from tests.support.broker_parts.metadata_leader import CLUSTER, MetadataLeader, data_batch, feature

if TYPE_CHECKING:
    from protocol.schema import Request, Response

BOOTSTRAP = ("bootstrap", 9090)
OTHER = ("other", 9090)
LEADER = ("leader", 9191)
EMPTY = LogView(0, 0)
DIRECTORY = UUID(int=77)
BACKOFF_MS = 20
FETCH_TIMEOUT_MS = 2000


def new_observer(*bootstrap: tuple[str, int], election: Election | None = None) -> Observer:
    destinations = Destinations(bootstrap or (BOOTSTRAP,), BACKOFF_MS, lambda _: 0)
    replica = Replica(CLUSTER, 5, DIRECTORY)
    limits = RequestLimits(snapshot_max_bytes=100)
    return Observer(replica, destinations, limits, FETCH_TIMEOUT_MS, election or Election())


def new_leader(**fields: Any) -> MetadataLeader:
    return MetadataLeader(addresses={1: LEADER, 2: OTHER}, **fields)


def asked(observer: Observer, log: LogView = EMPTY, now_ms: int = 0) -> Ask:
    step = observer.next_request(log, now_ms)
    assert isinstance(step, Ask), step
    return step


def exchange(
    observer: Observer, server: MetadataLeader, log: LogView = EMPTY, now_ms: int = 0
) -> list[Any]:
    """One request, answered by this server; returns the effects."""
    step = asked(observer, log, now_ms)
    return answered(observer, step, server.answer(step.request), log, now_ms)


def answered(
    observer: Observer, step: Ask, response: Response, log: LogView = EMPTY, now_ms: int = 0
) -> list[Any]:
    """The effects, records as bytes."""
    effects: list[Any] = list(observer.answered(step, response, log, now_ms))  # type: ignore[arg-type]
    return effects


def following(leader: MetadataLeader, log: LogView = EMPTY) -> Observer:
    """An observer that has found this leader."""
    observer = new_observer()
    exchange(observer, leader, log)
    assert observer.state is State.FOLLOWING
    return observer


def partition_of(response: Response) -> Any:
    assert isinstance(response, FetchResponse)
    return response.responses[0].partitions[0]


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
        Append(memoryview(leader.batches[0])),
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


def unsound(kind: str) -> tuple[bytes, bytes]:
    """A batch that is good, and one that is not."""
    good = data_batch([feature("a")], 0, 1)
    if kind == "gap":
        return good, data_batch([feature("b")], 2, 1)
    if kind == "later epoch":
        return good, data_batch([feature("b")], 1, 2)
    bad = bytearray(data_batch([feature("b")], 1, 1))
    bad[16] = 1
    return good, bytes(bad)


@pytest.mark.parametrize("kind", ["gap", "later epoch", "another format"])
def test_good_batches_are_kept_and_what_follows_is_left_out(kind: str) -> None:
    leader = new_leader(high_watermark=0)
    observer = following(leader)
    good, bad = unsound(kind)

    leader.batches = [good, bad]
    assert exchange(observer, leader) == [Append(memoryview(good)), AdvanceHighWatermark(0)]
    assert asked(observer).address == LEADER

    leader.batches = [bad]
    assert exchange(observer, leader) == [AdvanceHighWatermark(0)]
    assert asked(observer).address == BOOTSTRAP, "the leader is left alone for a moment"


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
