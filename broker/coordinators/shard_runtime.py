"""One partition of an internal topic that this broker leads: a state machine at work on its log.

It does what a `ShardEffects` asks for. Answers that depend on the log are given once the high
watermark has passed everything appended so far, so that nobody is told what a failover could take
back. `group_shard_runtime` and `transaction_shard_runtime` are the two kinds.
"""

from __future__ import annotations

import enum
import functools
import logging
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from broker.coordinators.record_batches import from_batch, to_batch
from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import parse_header
from storage.append.append_source import FROM_COORDINATOR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from broker.coordinators.record_batches import RecordFormat
    from broker.partitions.commit_waiters import CommitWaiter
    from broker.partitions.partition import Partition
    from broker.runtime.clock import Clock
    from broker.runtime.timers import Timers
    from coordinator.effects import CommittedAnswer, ProducerIdentity, ShardEffects
    from protocol.records.batch import BatchHeader
    from protocol.wire import Buffer
    from storage.append.append_source import AppendSource
    from storage.producer.verification_guards import VerificationGuard

logger = logging.getLogger(__name__)

ACKS_ALL = -1
NO_PRODUCER = -1
RECORDS_PER_BATCH = 250
"""Tombstones of one clean-up that go into one batch."""
RECORDS_PER_STEP = 100
"""Of a batch that is replayed."""

RecordT = TypeVar("RecordT")


class Stage(enum.Enum):
    """Where a shard stands between gaining and losing leadership."""

    LOADING = enum.auto()
    ACTIVE = enum.auto()
    UNLOADED = enum.auto()


class ShardServices(NamedTuple):
    """What all shards of a broker share."""

    clock: Clock
    timers: Timers
    commit_timeout_ms: int
    """How long an answer waits for the log to be committed."""


class ShardRuntime(Generic[RecordT]):
    """A shard at work, until `unload`; what still waits for its log is refused after that."""

    def __init__(
        self,
        partition: Partition,
        surroundings: ShardServices,
        record_format: RecordFormat[RecordT],
        replay: Callable[[RecordT], None],
    ) -> None:
        """`replay` is the state machine's."""
        self.stage = Stage.LOADING
        self.partition = partition
        self._clock = surroundings.clock
        self._timers = surroundings.timers
        self._commit_timeout_ms = surroundings.commit_timeout_ms
        self._format = record_format
        self._replay = replay
        self._appended_to = 0

    # What each kind of shard adds

    def apply(self, record: RecordT, log_offset: int, producer_id: int) -> None:  # noqa: ARG002
        """Apply one record of the log; `producer_id` is that of its transaction, or -1."""
        self._replay(record)

    def apply_control(self, header: BatchHeader, batch: Buffer) -> None:
        """Apply a control batch of the log; most kinds of shard have none."""

    def loaded(self, now_ms: int) -> ShardEffects[RecordT]:
        """What to do once the log is replayed."""
        raise NotImplementedError

    def unloaded(self) -> ShardEffects[RecordT]:
        """What to tell those who wait when the shard goes; its records are not appended."""
        raise NotImplementedError

    @property
    def content(self) -> str:
        """How much it holds, for the line that says it was loaded."""
        raise NotImplementedError

    # Life

    def replay_log(self) -> Iterator[None]:
        """Replay the log in small steps; the caller decides how many at a time."""
        log = self.partition.log
        name = f"{self.partition.topic}-{self.partition.index}"
        for batch in log.read_batches(log.log_start_offset, log.log_end_offset):
            header = parse_header(batch)
            if header.is_control:
                self.apply_control(header, batch)
            else:
                producer_id = header.producer_id if header.is_transactional else NO_PRODUCER
                is_long = header.record_count > RECORDS_PER_STEP
                kept = bytes(batch) if is_long else batch  # the file may go between two steps
                for count, (offset, record) in enumerate(from_batch(kept, self._format, name)):
                    if count % RECORDS_PER_STEP == RECORDS_PER_STEP - 1:
                        yield
                    self.apply(record, offset, producer_id)
            yield

    def activate(self) -> None:
        """The log is replayed: requests are served."""
        self.stage = Stage.ACTIVE
        self._appended_to = self.partition.log.log_end_offset
        self.run(self.loaded(self._clock.now_ms()))

    def unload(self) -> None:
        """Leadership is lost, or the broker stops: everybody parked is sent away."""
        if self.stage is Stage.UNLOADED:
            return
        self.stage = Stage.UNLOADED
        for answer in self.unloaded().answers:
            answer.reply.complete(answer.response)

    # Doing what was decided

    def run(self, effects: ShardEffects[RecordT], guard: VerificationGuard | None = None) -> bool:
        """Append, replay, answer; see `coordinator.effects` for the order.

        `guard` comes with what begins a producer's transaction in this partition. Returns False
        when there was something to append and it could not be.
        """
        if effects.records:
            failure = self._append(effects.records, effects.producer, guard)
            if failure is not None:
                self._run_failed(effects, failure)
                return False
        for answer in effects.answers:
            answer.reply.complete(answer.response)
        if effects.committed_answers:
            self._answer_when_committed(effects.committed_answers)
        return True

    def forget(self, tombstones: Sequence[RecordT]) -> ErrorCode:
        """Append what a deletion or clean-up decided, in batches; NONE, or why it stopped."""
        for start in range(0, len(tombstones), RECORDS_PER_BATCH):
            failure = self._append(tombstones[start : start + RECORDS_PER_BATCH])
            if failure is not None:
                return failure
        return ErrorCode.NONE

    def when_committed(self, callback: Callable[[ErrorCode], None]) -> None:
        """Call `callback(NONE)` once all that was appended so far is committed.

        It gets another code when leadership is lost before, or the time for it is over. Called back
        at once if nothing is outstanding, and never from within an append.
        """
        partition = self.partition
        if partition.is_leader and partition.log.high_watermark >= self._appended_to:
            callback(ErrorCode.NONE)
            return
        wait = _CommitWait(callback, self._timers, self._commit_timeout_ms)
        wait.waits_for(partition.when_committed(self._appended_to, wait.decided))

    def append_control(self, batch: memoryview, source: AppendSource, now_ms: int) -> None:
        """Append a control batch and apply it; raises ApiError. `when_committed` tells the rest."""
        info = self.partition.append_records(batch, ACKS_ALL, source, now_ms)
        self._appended_to = info.last_offset + 1
        self.apply_control(parse_header(batch), batch)

    def _append(
        self,
        records: Sequence[RecordT],
        producer: ProducerIdentity | None = None,
        guard: VerificationGuard | None = None,
    ) -> ErrorCode | None:
        now_ms = self._clock.now_ms()
        try:
            batch = memoryview(to_batch(records, self._format, now_ms, producer))
        except Exception:  # what cannot be written costs its request, not the group's next step
            logger.exception(
                "%s-%d: records cannot be encoded", self.partition.topic, self.partition.index
            )
            return ErrorCode.UNKNOWN_SERVER_ERROR
        source = FROM_COORDINATOR if guard is None else FROM_COORDINATOR._replace(guard=guard)
        try:
            info = self.partition.append_records(batch, ACKS_ALL, source, now_ms)
        except ApiError as error:
            logger.warning(
                "%s-%d: records not stored: %s", self.partition.topic, self.partition.index, error
            )
            return error.code
        self._appended_to = info.last_offset + 1
        producer_id = NO_PRODUCER if producer is None else producer.producer_id
        for offset, record in enumerate(records, info.first_offset):
            self.apply(record, offset, producer_id)
        return None

    def _run_failed(self, effects: ShardEffects[RecordT], failure: ErrorCode) -> None:
        for refused in effects.committed_answers:
            refused.reply.complete(refused.refuse(failure))
        for answer in effects.answers:
            answer.reply.complete(answer.response)
        if effects.on_append_failed is not None:
            self.run(effects.on_append_failed(failure, self._clock.now_ms()))

    def _answer_when_committed(self, answers: Iterable[CommittedAnswer]) -> None:
        def decided(code: ErrorCode) -> None:
            for reply, response, refuse in answers:
                reply.complete(response if code is ErrorCode.NONE else refuse(code))

        self.when_committed(decided)


class _CommitWait:
    """Calls back once: committed, failed or timed out, whichever is first."""

    __slots__ = ("_callback", "_commit", "_timeout", "_timers")

    def __init__(
        self, callback: Callable[[ErrorCode], None], timers: Timers, timeout_ms: int
    ) -> None:
        self._callback: Callable[[ErrorCode], None] | None = callback
        self._timers = timers
        self._timeout: Any = timers.schedule(timeout_ms, self._timed_out)
        self._commit: CommitWaiter | None = None

    def waits_for(self, commit: CommitWaiter) -> None:
        """Cancel that wait when the time is up."""
        self._commit = commit

    def decided(self, code: ErrorCode) -> None:
        """The partition says so, perhaps from within an append: call back after it."""
        callback, self._callback = self._callback, None
        if callback is not None:
            self._timeout.cancel()
            self._timers.soon(functools.partial(callback, code))

    def _timed_out(self) -> None:
        if self._commit is not None:
            self._commit.cancel()
        callback, self._callback = self._callback, None
        if callback is not None:
            callback(ErrorCode.REQUEST_TIMED_OUT)
