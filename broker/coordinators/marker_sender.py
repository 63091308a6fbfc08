"""Sends the markers of decided transactions to all their partitions, however long it takes.

A marker goes to the leader of its partition by WriteTxnMarkers, together with all others for the
same broker at that moment. A failed one is sent again, to the leader at that time, until it is
written or the partition is deleted. When all partitions of a transaction have their marker, its
shard records that it is complete. Only that record is stored: the broker that loads the shard after
a crash sends all markers again, and a marker written twice does no harm.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from broker.coordinators.shard_runtime import Stage
from broker.runtime.failpoints import ALL_MARKED, SOME_MARKED
from coordinator.transactions.states import TransactionState
from protocol.errors import ErrorCode
from protocol.messages.transactions import WriteTxnMarkersRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.coordinators.transaction_shard_runtime import TransactionShardRuntime
    from broker.runtime.clock import Clock
    from broker.runtime.timers import Timers
    from coordinator.transactions.transaction import TopicPartition, Transaction
    from protocol.messages.transactions import WriteTxnMarkersResponse

logger = logging.getLogger(__name__)

RETRY_MS: Final = 100
"""Pause before a failed marker is sent again. Fixed: the next leader is elected within seconds."""
COMPLETION_RETRY_MS: Final = 1_000
"""Pause before the completion of a transaction is recorded again, if its log refused it."""
PARTITIONS_PER_REQUEST: Final = 1_000
"""Maximum number of markers in one request; the rest follow when it is answered."""
NO_LEADER: Final = -1

_NOT_NEEDED = frozenset(
    {ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.INVALID_PRODUCER_EPOCH}
)
"""The partition cannot hold a transaction, or a later epoch has written there, which it only does
after the end of this one. Apache Kafka abandons the whole transaction in the latter case, which
leaves it incomplete until its coordinator moves.
"""


class Leaders(Protocol):
    """Partition leaders, and the requests to them."""

    @property
    def look_ups(self) -> int:
        """Look-ups so far of whether a partition exists."""

    def leader(self, topic: str, partition: int, since: int, /) -> int | None:
        """The leader's broker id; NO_LEADER if there is none now, None for a deleted partition.

        Deleted means by a look-up that was not among the first `since`.
        """

    def write_markers(
        self,
        broker_id: int,
        request: WriteTxnMarkersRequest,
        answered: Callable[[WriteTxnMarkersResponse | None], None],
        /,
    ) -> None:
        """Send to a broker, and call `answered` once, with None if there is no response."""


class _Task:
    """One decided transaction whose markers are not all written."""

    __slots__ = ("coordinator_epoch", "shard", "since", "told", "transaction", "waiting")

    def __init__(
        self, shard: TransactionShardRuntime, transaction: Transaction, since: int
    ) -> None:
        self.shard = shard
        self.transaction = transaction
        self.coordinator_epoch = shard.partition.leader_epoch
        self.since = since
        """The number of look-ups when the transaction was decided."""
        self.waiting = set(transaction.partitions)
        self.told: set[ErrorCode] = set()
        """The failures that were logged; they are not logged again at each attempt."""

    @property
    def is_over(self) -> bool:
        """True if the shard has moved to another broker, which sends all markers again."""
        return self.shard.stage is not Stage.ACTIVE


class MarkerSender:
    """All outstanding markers of this broker's coordinators."""

    def __init__(
        self,
        leaders: Leaders,
        clock: Clock,
        timers: Timers,
        step_reached: Callable[[str], None] | None = None,
    ) -> None:
        """`step_reached` is for tests (`broker.runtime.failpoints`)."""
        self.step_reached = step_reached
        self._leaders = leaders
        self._clock = clock
        self._timers = timers
        self._limit = 1 if step_reached is not None else PARTITIONS_PER_REQUEST
        self._queues: dict[int, list[tuple[_Task, TopicPartition]]] = {}
        self._asked: set[int] = set()
        """Brokers with a request in flight; each has one at a time."""
        self._is_flush_due = False
        self._is_started = False

    def start(self) -> None:
        """Begin, with the metadata of all topics: a partition that it lacks may be deleted."""
        self._is_started = True
        self._flush_soon()

    def stop(self) -> None:
        """Stop sending."""
        self._is_started = False
        self._queues.clear()

    def send(self, shard: TransactionShardRuntime, transaction: Transaction) -> None:
        """Mark all partitions of a decided transaction, then complete it."""
        task = _Task(shard, transaction, self._leaders.look_ups)
        if task.waiting:
            self._queues.setdefault(NO_LEADER, []).extend((task, each) for each in task.waiting)
            self._flush_soon()
        else:
            self._timers.soon(partial(self._complete, task))

    def _flush_soon(self) -> None:
        if self._is_started and not self._is_flush_due:
            self._is_flush_due = True
            self._timers.soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        if not self._is_started:
            return
        self._find_leaders(self._queues.pop(NO_LEADER, ()))
        for broker_id, queue in list(self._queues.items()):
            if queue and broker_id not in self._asked:
                self._ask(broker_id, queue[: self._limit])
                del queue[: self._limit]

    def _find_leaders(self, entries: Iterable[tuple[_Task, TopicPartition]]) -> None:
        leaderless = []
        for task, partition in entries:
            leader = self._leader(partition, task.since)
            if leader is None:
                logger.info("%s-%d is deleted, no marker is written", *partition)
                self._marked(task, partition)
            elif leader < 0:
                leaderless.append((task, partition))
            else:
                self._queues.setdefault(leader, []).append((task, partition))
        if leaderless:
            self._retry_later(leaderless)

    def _leader(self, partition: TopicPartition, since: int) -> int | None:
        """As `Leaders.leader`; NO_LEADER after an error, which costs no other marker its way."""
        try:
            return self._leaders.leader(*partition, since)
        except Exception as error:  # noqa: BLE001 - noted
            self._timers.on_failure("leaders for transaction markers", error)
            return NO_LEADER

    def _retry_later(self, entries: list[tuple[_Task, TopicPartition]]) -> None:
        def retry() -> None:
            self._queues.setdefault(NO_LEADER, []).extend(
                entry for entry in entries if not entry[0].is_over
            )
            self._flush_soon()

        self._timers.schedule(RETRY_MS, retry)

    def _ask(self, broker_id: int, entries: list[tuple[_Task, TopicPartition]]) -> None:
        request = _request(entry for entry in entries if not entry[0].is_over)
        if request.markers:
            self._asked.add(broker_id)
            answered = partial(self._answered, broker_id, entries)
            try:
                self._leaders.write_markers(broker_id, request, answered)
            except Exception as error:  # noqa: BLE001 - noted
                self._timers.on_failure(f"markers to broker {broker_id}", error)
                answered(None)
        elif self._queues.get(broker_id):
            self._flush_soon()

    def _answered(
        self,
        broker_id: int,
        entries: list[tuple[_Task, TopicPartition]],
        response: WriteTxnMarkersResponse | None,
    ) -> None:
        self._asked.discard(broker_id)
        codes = {} if response is None else _codes(response)
        again = []
        for task, partition in entries:
            code = codes.get((task.transaction.producer_id, partition), ErrorCode.NETWORK_EXCEPTION)
            if task.is_over:
                continue
            if code is ErrorCode.NONE or code in _NOT_NEEDED:
                if code is not ErrorCode.NONE:
                    _explain(task, partition, code, "is complete without it")
                self._marked(task, partition)
            elif code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                _explain(task, partition, code, "has another coordinator")
            else:
                _explain(task, partition, code, "is retried")
                again.append((task, partition))
        if again:
            self._retry_later(again)
        if self._queues.get(broker_id):
            self._flush_soon()

    def _marked(self, task: _Task, partition: TopicPartition) -> None:
        task.waiting.discard(partition)
        if task.waiting:
            self._reached(SOME_MARKED)
        else:
            self._reached(ALL_MARKED)
            self._complete(task)

    def _complete(self, task: _Task) -> None:
        """Record that all is marked, now or later; an error affects no other transaction."""
        if task.is_over:
            return
        try:
            effects = task.shard.transactions.handle_markers_written(
                task.transaction, self._clock.now_ms()
            )
            is_recorded = task.shard.run(effects)
        except Exception as error:  # noqa: BLE001 - noted
            self._timers.on_failure("completion of transactions", error)
            is_recorded = False
        if not is_recorded:
            self._timers.schedule(COMPLETION_RETRY_MS, partial(self._complete, task))

    def _reached(self, step: str) -> None:
        if self.step_reached is not None:
            self.step_reached(step)


def _request(entries: Iterable[tuple[_Task, TopicPartition]]) -> WriteTxnMarkersRequest:
    by_task: dict[int, tuple[_Task, dict[str, list[int]]]] = {}
    for task, (topic, index) in entries:
        by_task.setdefault(id(task), (task, {}))[1].setdefault(topic, []).append(index)
    return WriteTxnMarkersRequest(
        markers=[
            WriteTxnMarkersRequest.Marker(
                producer_id=task.transaction.producer_id,
                producer_epoch=task.transaction.producer_epoch,
                transaction_result=task.transaction.state is TransactionState.PREPARE_COMMIT,
                topics=[
                    WriteTxnMarkersRequest.Marker.Topic(name=topic, partition_indexes=indexes)
                    for topic, indexes in topics.items()
                ],
                coordinator_epoch=task.coordinator_epoch,
                transaction_version=task.transaction.client_version,
            )
            for task, topics in by_task.values()
        ]
    )


def _codes(response: WriteTxnMarkersResponse) -> dict[tuple[int, TopicPartition], ErrorCode]:
    return {
        (marker.producer_id, (topic.name, partition.partition_index)): ErrorCode(
            partition.error_code
        )
        for marker in response.markers
        for topic in marker.topics
        for partition in topic.partitions
    }


def _explain(task: _Task, partition: TopicPartition, code: ErrorCode, outcome: str) -> None:
    if code in task.told:
        return
    task.told.add(code)
    logger.warning(
        "%r: marker not written to %s-%d (%s); the transaction %s",
        task.transaction.transactional_id,
        *partition,
        code.name,
        outcome,
    )
