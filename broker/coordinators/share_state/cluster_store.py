"""Client of the share coordinators of the cluster: `BrokerServices.share_state`.

The coordinator of a share-partition is on the broker that leads its partition of the internal
topic: on this one it is called, on another it gets a request. While it moves, loads or is
unreachable, the call is retried for a while (`share.state.retry.timeout.ms`).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Protocol, TypeVar

from broker.coordinators.internal_topics import SHARE_KEY
from broker.coordinators.share_state.operations import (
    Delete,
    Initialise,
    Read,
    ReadSummary,
    Write,
    answer_of,
)
from broker.runtime.deferred import Deferred
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.coordinators.internal_topics import InternalTopics
    from broker.coordinators.share_state.coordinators import ShareStateCoordinators
    from broker.coordinators.share_state.operations import Operation
    from broker.runtime.timers import Timers
    from coordinator.share_state.state import (
        SharePartition,
        StateChange,
        StateSummary,
        StoredState,
    )
    from protocol.schema import Request, Response

AnswerT = TypeVar("AnswerT")

PURPOSE: Final = "share-state"
FIRST_PAUSE_MS: Final = 200
"""Before the second attempt; doubled each time, until `share.state.retry.timeout.ms` is used up."""
PASSING: Final = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
}
"""Retriable errors, including those of a coordinator that does not know a new topic yet."""


class OtherBrokers(Protocol):
    """The connections to other brokers."""

    def ask(
        self,
        where: tuple[int, str],
        request: Request,
        version: int,
        answered: Callable[[Response | None], None],
        /,
    ) -> None:
        """Send on a connection for one purpose; `answered(None)` if there is no response."""


class Reach(NamedTuple):
    """Access to coordinators from this broker."""

    broker_id: int
    coordinators: ShareStateCoordinators
    """Share coordinators of this broker."""
    internal_topics: InternalTopics
    others: OtherBrokers
    timers: Timers
    retry_timeout_ms: int
    """The pauses between all attempts at one thing."""


class ClusterShareState:
    """Client of the share coordinators of the cluster; see `ShareStateStore`."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._writes: dict[SharePartition, deque[Callable[[], None]]] = {}
        """Writes that wait for an earlier one of their share-partition, which is under way."""

    def initialise(
        self, partition: SharePartition, state_epoch: int, start_offset: int
    ) -> Deferred[None]:
        """Initialise the state of a share-partition."""
        return self._begin(Initialise(partition, state_epoch, start_offset))

    def read(self, partition: SharePartition, leader_epoch: int) -> Deferred[StoredState]:
        """See `ShareStateStore`."""
        return self._begin(Read(partition, leader_epoch))

    def write(self, partition: SharePartition, change: StateChange) -> Deferred[None]:
        """See `ShareStateStore`. A change waits for the one before, whatever becomes of that.

        As many wait as the leader of the partition has changes under way.
        """
        waiting = self._writes.get(partition)
        if waiting is None:
            self._writes[partition] = deque()
            return self._write(partition, change)
        written: Deferred[None] = Deferred()
        waiting.append(lambda: written.follow(self._write(partition, change)))
        return written

    def read_summary(self, partition: SharePartition) -> Deferred[StateSummary]:
        """Start offset and summary of a share-partition's state."""
        return self._begin(ReadSummary(partition))

    def delete(self, partition: SharePartition) -> Deferred[None]:
        """Forget a share-partition."""
        return self._begin(Delete(partition))

    def _write(self, partition: SharePartition, change: StateChange) -> Deferred[None]:
        written: Deferred[None] = Deferred()

        def done(_: None) -> None:
            self._written(partition)
            written.complete(None)

        def failed(error: Exception) -> None:
            self._written(partition)
            written.fail(error)

        self._begin(Write(partition, change)).then(done, failed)
        return written

    def _written(self, partition: SharePartition) -> None:
        waiting = self._writes[partition]
        if waiting:
            self._reach.timers.soon(waiting.popleft())
        else:
            del self._writes[partition]

    def _begin(self, operation: Operation[AnswerT]) -> Deferred[AnswerT]:
        outcome: Deferred[AnswerT] = Deferred()
        _Attempts(self._reach, operation, outcome).next()
        return outcome


class _Attempts(Generic[AnswerT]):
    """One operation, until it is done or has failed for good."""

    def __init__(
        self, reach: Reach, operation: Operation[AnswerT], outcome: Deferred[AnswerT]
    ) -> None:
        self._reach = reach
        self._operation = operation
        self._outcome = outcome
        self._left_ms = reach.retry_timeout_ms
        self._pause_ms = FIRST_PAUSE_MS

    def next(self) -> None:
        """Ask the current coordinator of the share-partition."""
        ready = self._reach.internal_topics.when_ready(SHARE_KEY)
        ready.then(self._outcome.guard(self._ask), self._failed)

    def _ask(self, _: None) -> None:
        reach, operation = self._reach, self._operation
        leader = reach.internal_topics.leader(SHARE_KEY, operation.partition.coordinator_key)
        if leader == reach.broker_id:
            operation.ask(reach.coordinators).then(self._done, self._failed)
        elif leader < 0:
            self._failed(ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            where = (leader, PURPOSE)
            reach.others.ask(where, operation.request(), operation.version, self._answered)

    def _answered(self, response: Response | None) -> None:
        try:
            answer = answer_of(self._operation, response)
        except Exception as error:  # noqa: BLE001 - delivered
            self._failed(error)
        else:
            self._done(answer)

    def _done(self, answer: AnswerT) -> None:
        self._outcome.complete(answer)

    def _failed(self, error: Exception) -> None:
        is_passing = isinstance(error, ApiError) and error.code in PASSING
        if not is_passing or self._left_ms <= 0:
            self._outcome.fail(error)
            return
        again = self._outcome.guard(self.next)
        pause_ms = min(self._pause_ms, self._left_ms)
        self._reach.timers.schedule(pause_ms, again)
        self._left_ms -= pause_ms
        self._pause_ms *= 2
