"""An observer that is asked and answered by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from controller.raft.destinations import Destinations
from controller.raft.effects import Election
from controller.raft.log_view import LogView
from controller.raft.observer import Ask, Observer
from controller.raft.requests import Replica, RequestLimits
from controller.raft.states import State
from protocol.messages.fetch import FetchResponse
from tests.support.broker_parts.metadata_leader import CLUSTER, MetadataLeader

if TYPE_CHECKING:
    from protocol.schema import Response

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
