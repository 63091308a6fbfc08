"""One partition of an internal topic led by this broker: a state machine and its log.

It carries out `ShardEffects`. Answers that depend on the log are given once the high watermark has
passed everything appended so far, so that no failover can take them back. `group_shard_runtime` and
`transaction_shard_runtime` are the two kinds.
"""

from __future__ import annotations

import enum
import functools
import logging
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from broker.coordinators.record_batches import from_batch, to_batch
from protocol.errors import ApiError, ErrorCode
from protocol.records.batch import parse_header
from protocol.schema import UNENCODABLE
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
"""Tombstones of a clean-up in one batch."""
RECORDS_PER_STEP = 100
"""Records of a batch replayed before others are served."""

RecordT = TypeVar("RecordT")


class Stage(enum.Enum):
    """Stage of a shard between gaining and losing leadership."""

    LOADING = enum.auto()
    ACTIVE = enum.auto()
    UNLOADED = enum.auto()


class ShardServices(NamedTuple):
    """Services shared by all shards of a broker."""

    clock: Clock
    timers: Timers
    commit_timeout_ms: int
    """Longest wait for a commit, in milliseconds."""


class ShardRuntime(Generic[RecordT]):
    """Runs a shard until `unload`, which refuses the requests that still wait for the log."""

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
        self.once_active: list[Callable[[Any], None]] = []
        """Functions to call once the log is replayed, by this shard or, if it could not be loaded,
        by its successor: one for each deletion of topics meanwhile.
        """
        self.step_reached: Callable[[str], None] | None = None
        """Called with the step of each logged record, for tests (`broker.runtime.failpoints`)."""

    # Implemented by each kind of shard

    def apply(self, record: RecordT, log_offset: int, producer_id: int) -> None:  # noqa: ARG002
        """Apply one record of the log; `producer_id` is its transaction's, or -1."""
        self._replay(record)

    def apply_control(self, header: BatchHeader, batch: Buffer) -> None:
        """Apply a control batch of the log; most kinds of shard have none."""

    def loaded(self, now_ms: int) -> ShardEffects[RecordT]:
        """Called once the log is replayed."""
        raise NotImplementedError

    def unloaded(self) -> ShardEffects[RecordT]:
        """Refuse the parked requests; records among these effects are not appended."""
        raise NotImplementedError

    @property
    def content(self) -> str:
        """Number of items in the shard, in words, for the log line after loading."""
        raise NotImplementedError

    # Life

    def replay_log(self) -> Iterator[None]:
        """Replay the log in small steps, which the caller takes."""
        log = self.partition.log
        name = f"{self.partition.topic}-{self.partition.index}"
        for batch in log.read_batches(log.log_start_offset, log.log_end_offset):
            header = parse_header(batch)
            if header.is_control:
                self.apply_control(header, batch)
            else:
                producer_id = header.producer_id if header.is_transactional else NO_PRODUCER
                is_long = header.record_count > RECORDS_PER_STEP
                kept = bytes(batch) if is_long else batch  # the file may go between steps
                for count, (offset, record) in enumerate(from_batch(kept, self._format, name)):
                    if count % RECORDS_PER_STEP == RECORDS_PER_STEP - 1:
                        yield
                    self.apply(record, offset, producer_id)
            yield

    def activate(self) -> None:
        """Serve requests, once the log is replayed."""
        self.stage = Stage.ACTIVE
        self._appended_to = self.partition.log.log_end_offset
        self.run(self.loaded(self._clock.now_ms()))
        waiting, self.once_active = self.once_active, []
        for callback in waiting:
            callback(self)

    def when_active(self, callback: Callable[[Any], None]) -> None:
        """Call at once, or when the log is replayed; never if leadership is lost before."""
        if self.stage is Stage.ACTIVE:
            callback(self)
        else:
            self.once_active.append(callback)

    def unload(self) -> None:
        """Refuse all parked requests: leadership is lost, or the broker stops."""
        if self.stage is Stage.UNLOADED:
            return
        self.stage = Stage.UNLOADED
        for answer in self.unloaded().answers:
            answer.reply.complete(answer.response)

    # Effects

    def run(self, effects: ShardEffects[RecordT], guard: VerificationGuard | None = None) -> bool:
        """Append, replay, answer; see `coordinator.effects` for the order.

        `guard` verifies the first batch of a producer's transaction in this partition. Returns
        False if the append failed.
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
        if effects.on_replayed is not None:
            self.run(effects.on_replayed(self._clock.now_ms()))
        return True

    def forget(self, tombstones: Sequence[RecordT]) -> ErrorCode:
        """Append the tombstones of a deletion or clean-up in batches; NONE, or the error."""
        for start in range(0, len(tombstones), RECORDS_PER_BATCH):
            failure = self._append(tombstones[start : start + RECORDS_PER_BATCH])
            if failure is not None:
                return failure
        return ErrorCode.NONE

    def when_committed(self, callback: Callable[[ErrorCode], None]) -> None:
        """Call `callback(NONE)` once everything appended so far is committed.

        With another code if leadership is lost first, or the wait times out. Called at once if
        nothing is outstanding, and never from within an append.
        """
        partition = self.partition
        if partition.is_leader and partition.log.high_watermark >= self._appended_to:
            callback(ErrorCode.NONE)
            return
        wait = _CommitWait(callback, self._timers, self._commit_timeout_ms)
        wait.waits_for(partition.when_committed(self._appended_to, wait.decided))

    def append_control(self, batch: memoryview, source: AppendSource, now_ms: int) -> None:
        """Append a control batch and apply it; see `when_committed`. Raises ApiError."""
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
        except UNENCODABLE as error:
            logger.warning(
                "%s-%d: records not stored: a value is too large for its field: %s",
                self.partition.topic,
                self.partition.index,
                error,
            )
            return ErrorCode.UNKNOWN_SERVER_ERROR
        except Exception:  # the border: it costs the request, not the group
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
        if self.step_reached is not None:
            for record in records:
                self.step_reached(self._format.step_of(record))
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
    """Calls back once: committed, failed or timed out, whichever comes first."""

    __slots__ = ("_callback", "_commit", "_timeout", "_timers")

    def __init__(
        self, callback: Callable[[ErrorCode], None], timers: Timers, timeout_ms: int
    ) -> None:
        self._callback: Callable[[ErrorCode], None] | None = callback
        self._timers = timers
        self._timeout: Any = timers.schedule(timeout_ms, self._timed_out)
        self._commit: CommitWaiter | None = None

    def waits_for(self, commit: CommitWaiter) -> None:
        """Note the wait that a timeout cancels."""
        self._commit = commit

    def decided(self, code: ErrorCode) -> None:
        """The partition has decided, perhaps within an append: call back after that."""
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
