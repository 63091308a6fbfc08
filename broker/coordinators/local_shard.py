"""One partition of `__consumer_offsets` that this broker leads: a shard with a log and timers.

It does what an `Effects` asks for. Answers that depend on the log are given once the high watermark
has passed everything appended so far, so that nobody is told what a failover could take back.
"""

from __future__ import annotations

import enum
import functools
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.coordinators.offsets_log import from_batch, to_batch
from coordinator.shard import GroupShard
from protocol.errors import ApiError, ErrorCode
from storage.producers import AppendOrigin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from broker.clock import Clock
    from broker.partition import Partition
    from broker.timers import Cancellable, Timers
    from coordinator.effects import CommittedAnswer, Effects
    from coordinator.ports import MemberIds, TimerKey
    from coordinator.records import OffsetsRecord
    from coordinator.settings import GroupSettings

logger = logging.getLogger(__name__)

ACKS_ALL = -1
RECORDS_PER_BATCH = 1_000
"""Tombstones of one clean-up that go into one batch."""


class Stage(enum.Enum):
    """Where a shard stands between gaining and losing leadership."""

    LOADING = enum.auto()
    ACTIVE = enum.auto()
    UNLOADED = enum.auto()


class Surroundings(NamedTuple):
    """What all shards of a broker share."""

    settings: GroupSettings
    new_id: MemberIds
    clock: Clock
    timers: Timers
    commit_timeout_ms: int


class LocalShard:
    """A `GroupShard` at work, until `unload`; its timers and waits do nothing after that."""

    def __init__(self, partition: Partition, surroundings: Surroundings) -> None:
        self.stage = Stage.LOADING
        self.partition = partition
        self._clock = surroundings.clock
        self._timers = surroundings.timers
        self._commit_timeout_ms = surroundings.commit_timeout_ms
        self._running: dict[TimerKey, Cancellable] = {}
        self._appended_to = 0
        self.groups = GroupShard(surroundings.settings, self, surroundings.new_id)

    # Life

    def replay_log(self) -> Iterator[None]:
        """Replay the log batch by batch; the caller decides how many at a time."""
        log = self.partition.log
        name = f"{self.partition.topic}-{self.partition.index}"
        for batch in log.read_batches(log.log_start_offset, log.log_end_offset):
            for record in from_batch(batch, name):
                self.groups.replay(record)
            yield

    def activate(self) -> None:
        """The log is replayed: members' sessions begin, requests are served."""
        self.stage = Stage.ACTIVE
        self._appended_to = self.partition.log.log_end_offset
        self.run(self.groups.on_loaded(self._clock.now_ms()))

    def unload(self) -> None:
        """Leadership is lost, or the broker stops: timers end, everybody parked is sent away."""
        if self.stage is Stage.UNLOADED:
            return
        self.stage = Stage.UNLOADED
        effects = self.groups.on_unloaded()
        for timer in self._running.values():
            timer.cancel()
        self._running.clear()
        for answer in effects.answers:
            answer.reply.complete(answer.response)

    # Doing what was decided

    def run(self, effects: Effects) -> None:
        """Append, replay, answer; see `coordinator.effects` for the order."""
        if effects.records:
            failure = self._append(effects.records)
            if failure is not None:
                self._run_failed(effects, failure)
                return
        for answer in effects.answers:
            answer.reply.complete(answer.response)
        if effects.committed_answers:
            self._answer_when_committed(effects.committed_answers)

    def forget(self, tombstones: Sequence[OffsetsRecord]) -> ErrorCode:
        """Append what a deletion or clean-up decided, in batches; NONE, or why it stopped."""
        for start in range(0, len(tombstones), RECORDS_PER_BATCH):
            failure = self._append(tombstones[start : start + RECORDS_PER_BATCH])
            if failure is not None:
                return failure
        return ErrorCode.NONE

    def when_committed(self, callback: Callable[[ErrorCode], None]) -> None:
        """Call `callback(NONE)` once all that was appended so far is committed.

        It gets another code when leadership is lost before, or `offsets.commit.timeout.ms` is over.
        Called back at once if nothing is outstanding, and never from within an append.
        """
        partition = self.partition
        if partition.is_leader and partition.log.high_watermark >= self._appended_to:
            callback(ErrorCode.NONE)
            return
        wait = _CommitWait(callback, self._timers, self._commit_timeout_ms)
        partition.when_committed(self._appended_to, wait.decided)

    def _append(self, records: Sequence[OffsetsRecord]) -> ErrorCode | None:
        now_ms = self._clock.now_ms()
        batch = memoryview(to_batch(records, now_ms))
        try:
            info = self.partition.append_records(batch, ACKS_ALL, AppendOrigin.COORDINATOR, now_ms)
        except ApiError as error:
            logger.warning(
                "%s-%d: group records not stored: %s",
                self.partition.topic,
                self.partition.index,
                error,
            )
            return error.code
        self._appended_to = info.last_offset + 1
        for record in records:
            self.groups.replay(record)
        return None

    def _run_failed(self, effects: Effects, failure: ErrorCode) -> None:
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

    # coordinator.ports.Timers

    def start(self, key: TimerKey, delay_ms: int) -> None:
        """Start, or restart, a timer of a group."""
        running = self._running.pop(key, None)
        if running is not None:
            running.cancel()
        self._running[key] = self._timers.schedule(delay_ms, functools.partial(self._expire, key))

    def cancel(self, key: TimerKey) -> None:
        """Stop a timer of a group."""
        running = self._running.pop(key, None)
        if running is not None:
            running.cancel()

    def _expire(self, key: TimerKey) -> None:
        if self._running.pop(key, None) is not None and self.stage is Stage.ACTIVE:
            self.run(self.groups.expire(key, self._clock.now_ms()))


class _CommitWait:
    """Calls back once: committed, failed or timed out, whichever is first."""

    __slots__ = ("_callback", "_timeout", "_timers")

    def __init__(
        self, callback: Callable[[ErrorCode], None], timers: Timers, timeout_ms: int
    ) -> None:
        self._callback: Callable[[ErrorCode], None] | None = callback
        self._timers = timers
        self._timeout: Any = timers.schedule(timeout_ms, self._timed_out)

    def decided(self, code: ErrorCode) -> None:
        """The partition says so, perhaps from within an append: call back after it."""
        callback, self._callback = self._callback, None
        if callback is not None:
            self._timeout.cancel()
            self._timers.soon(functools.partial(callback, code))

    def _timed_out(self) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback(ErrorCode.REQUEST_TIMED_OUT)
