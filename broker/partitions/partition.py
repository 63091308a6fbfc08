"""One replica on this broker: its log, its part in replication, and the waits for it.

`machine` (`broker.replication.replica_machine`) decides what replication requires; the steps here
pass it events and carry out the effects. Delayed fetches and waits for a commit are kept with the
partition that they wait for; there is no purgatory.
"""

from __future__ import annotations

import logging
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from broker.partitions.commit_waiters import COMMITTED, NOBODY_WAITS, CommitWaiter, CommitWaiters
from broker.partitions.durability import NEVER, Durability, renewed
from broker.partitions.watchers import NOBODY_WATCHES, Watcher, Watchers
from broker.replication.effects import NO_OFFSET, NOTHING, Effects
from broker.replication.replica_machine import NO_EPOCH, NO_LIMIT, ReplicaMachine
from protocol.errors import ApiError, ErrorCode
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from broker.partitions.partition_services import PartitionServices
    from broker.partitions.throttle import Throttle
    from broker.replication.effects import Proposal, Stored
    from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
    from protocol.wire import Buffer
    from storage.append.append_info import AppendInfo
    from storage.append.append_source import AppendSource
    from storage.log.log import Log
    from storage.segment.slices import Slice

logger = logging.getLogger(__name__)


def _of(path: str) -> Any:  # noqa: ANN401 - the field's own type
    """A field of a part. Its getter is in C: reading it costs no Python call."""
    return property(attrgetter(path))


class Partition:
    """A replica and its role. Made when the controller first mentions it; see `replicas`."""

    __slots__ = (
        "_commit_waiters",
        "_followers",
        "_known_start",
        "_readers",
        "_services",
        "_start_watchers",
        "durability",
        "index",
        "log",
        "machine",
        "topic",
    )

    is_leader: bool = _of("machine.is_leader")
    leader_id: int = _of("machine.leader_id")
    """Broker that leads; -1 when there is none."""
    leader_epoch: int = _of("machine.leader_epoch")
    """-1 before the controller's first word."""
    leader_epoch_start_offset: int = _of("machine.leader_epoch_start_offset")
    partition_epoch: int = _of("machine.partition_epoch")
    """Version of the partition's state in the metadata store."""
    controller_epoch: int = _of("machine.controller_epoch")
    replicas: tuple[int, ...] = _of("machine.replicas")
    in_sync_replicas: tuple[int, ...] = _of("machine.in_sync.committed")
    """As the controller has stored them."""
    low_watermark: int = _of("machine.low_watermark")
    """As the leader, from where on all live replicas have records; -1 while not known."""

    def __init__(self, log: Log, services: PartitionServices) -> None:
        self.log = log
        self.topic = log.topic
        self.index = log.partition
        self.machine = ReplicaMachine(log.name, log, services.replica)
        self._services = services
        self._known_start = log.log_start_offset
        self._readers = NOBODY_WATCHES
        self._followers = NOBODY_WATCHES
        """Followers' fetches: they read beyond the high watermark, and ignore its moves."""
        self._start_watchers: tuple[Watcher, ...] = ()
        """Watchers of the replicas' log start offsets; nearly always none."""
        self._commit_waiters = NOBODY_WAITS
        self.durability: Durability | None = None
        """State of the log on the disk; None unless its appends wait for that."""
        if log.config.flush_messages != NEVER:
            self.config_changed()

    @property
    def topic_id(self) -> UUID:
        """The id of the topic's present incarnation."""
        return self.log.topic_id or ZERO_UUID

    def assume(self, state: LeaderAndIsrPartitionState) -> bool:
        """Take the role that the controller gives; returns False for a stale state.

        Raises ApiError when the log cannot note the epoch; nothing has changed then.
        """
        machine = self.machine
        if machine.is_stale(state):
            return False
        epoch = machine.epoch_to_begin(state)
        if epoch is not None:
            self.log.assign_epoch(epoch, self.log.log_end_offset)
        self._carry_out(machine.assume(state, self._monotonic_ms()))
        return True

    def retire(self) -> None:
        """Retire the replica: appends are refused, and all waits end with an error."""
        self._carry_out(self.machine.retire())

    def decided(self, proposal: Proposal, code: ErrorCode, stored: Stored | None = None) -> None:
        """Apply the controller's answer to a proposed in-sync set; `stored` is its state."""
        self._carry_out(self.machine.decided(proposal, code, stored, self._monotonic_ms()))

    def fetched_by(self, broker_id: int, broker_epoch: int, offset: int, log_start: int) -> None:
        """Note a follower's fetch of `offset`, in one step with the read for it.

        Raises ApiError NOT_LEADER_OR_FOLLOWER for a broker without a replica.
        """
        effects = self.machine.fetched_by(
            broker_id, broker_epoch, offset, log_start, self._monotonic_ms()
        )
        if effects is not NOTHING:
            self._carry_out(effects)

    def check_lag(self) -> None:
        """Propose to go on without followers that lag; call it by the clock."""
        self._carry_out(self.machine.tick(self._monotonic_ms()))

    def brokers_changed(self) -> None:
        """A broker came or died: a dead one is not waited for."""
        self._carry_out(self.machine.brokers_changed(self._monotonic_ms()))

    def config_changed(self) -> None:
        """The topic's configuration has changed: what commits and acknowledgements wait for."""
        flushes = self._services.flushes
        self.durability = renewed(self.durability, self.log, flushes, self._limits_changed)
        self._limits_changed()

    @property
    def throttle(self) -> Throttle | None:
        """Throttle of followers' fetches from this partition, if any."""
        throttle = self._services.throttle
        return throttle if throttle is not None and throttle.covers(self) else None

    def append_records(
        self, records: memoryview, acks: int, source: AppendSource, now_ms: int
    ) -> AppendInfo:
        """Append one batch as leader; `records` is patched in place.

        `acks` is the producer's, -1, 0 or 1: with -1 too few in-sync replicas refuse the append,
        but none of them is waited for (`when_committed`). Fetches that wait look again after what
        is being handled now. `now_ms` is wall clock. Raises ApiError, and AsideError, which is
        none, for a batch whose check takes too long for the event loop: check it beside the loop,
        and append it as `FROM_RECOMPRESSION`.
        """
        machine = self.machine
        log = self.log
        durability = self.durability
        if machine.is_sole and durability is None:
            info = log.append_as_leader(records, machine.leader_epoch, now_ms, source)
            self._commit_up_to(log.log_end_offset)
            return info
        machine.check_append(acks)
        info = log.append_as_leader(records, machine.leader_epoch, now_ms, source)
        if durability is not None:
            durability.flush_if_due()
        committed = machine.appended(self._monotonic_ms)
        if committed != NO_OFFSET:
            self._commit_up_to(committed)
        self._followers.wake()
        return info

    def append_from_leader(
        self, records: Buffer, high_watermark: int, log_start_offset: int, now_ms: int
    ) -> None:
        """Append the leader's records, and take over its high watermark.

        Raises ApiError as `Log.append_as_follower` does.
        """
        if records:
            begins_at = self.log.begins_within(records)
            if begins_at is not None:
                self._carry_out(Effects(restart_at=begins_at))
            self.log.append_as_follower(records, now_ms)
        self.heard_from_leader(high_watermark, log_start_offset)

    def heard_from_leader(self, high_watermark: int, log_start_offset: int) -> None:
        """Take over the leader's high watermark and log start offset.

        Raises LogDirectoryError if the log cannot begin there.
        """
        if self.durability is not None:
            self.durability.flush_if_due()
        effects = self.machine.heard_from_leader(high_watermark, log_start_offset)
        if effects is not NOTHING:
            self._carry_out(effects)

    def diverged(self, leader_epoch: int, leader_end: int) -> None:
        """Cut the log where the leader's history parts from it; raises LogDirectoryError."""
        log = self.log
        before, committed = log.log_end_offset, log.high_watermark
        self._carry_out(self.machine.diverged(leader_epoch, leader_end))
        end = log.log_end_offset
        if end < before:  # or else only an epoch without records went
            logger.log(
                logging.WARNING if end < committed else logging.INFO,
                "%s-%d: truncated from offset %d to %d, where the leader's epoch %d ends "
                "(committed: %d)",
                self.topic,
                self.index,
                before,
                end,
                leader_epoch,
                committed,
            )

    def leader_ends_at(self, offset: int) -> None:
        """Truncate to the leader's log end, if it is lower than ours."""
        effects = self.machine.leader_ends_at(offset)
        if effects is not NOTHING:
            logger.warning(
                "%s-%d: truncated from offset %d to %d, where the leader's log ends",
                self.topic,
                self.index,
                self.log.log_end_offset,
                offset,
            )
            self._carry_out(effects)

    def leader_begins_at(self, offset: int) -> None:
        """The leader has nothing at our log's end: start over where its log begins, if beyond."""
        effects = self.machine.leader_begins_at(offset)
        if effects is not NOTHING:
            logger.warning(
                "%s-%d: restarted at offset %d, where the leader's log begins; ours ended at %d",
                self.topic,
                self.index,
                offset,
                self.log.log_end_offset,
            )
            self._carry_out(effects)

    def check_leader(self, current_leader_epoch: int) -> None:
        """Raises ApiError as `check_epoch` does, then as `check_leads` does."""
        self.check_epoch(current_leader_epoch)
        self.check_leads()

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Raises ApiError for a reader that knows another leader than we do (KIP-320).

        FENCED_LEADER_EPOCH if its epoch is older, UNKNOWN_LEADER_EPOCH if it is newer; -1 skips
        the check.
        """
        if current_leader_epoch in (NO_EPOCH, self.leader_epoch):
            return
        raise ApiError(
            ErrorCode.FENCED_LEADER_EPOCH
            if current_leader_epoch < self.leader_epoch
            else ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"leader epoch is {self.leader_epoch}, the request has {current_leader_epoch}",
        )

    def check_leads(self) -> None:
        """Raises ApiError NOT_LEADER_OR_FOLLOWER if this broker does not lead."""
        if not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    @property
    def is_behind_its_epoch(self) -> bool:
        """True if it leads, and its high watermark has not reached the start of its epoch yet."""
        return self.is_leader and self.log.high_watermark < self.leader_epoch_start_offset

    def readable_end(self, *, is_read_committed: bool) -> int:
        """The offset that consumers may not reach: high watermark, or last stable offset."""
        return self.log.last_stable_offset if is_read_committed else self.log.high_watermark

    def read(self, offset: int, max_bytes: int, end: int, *, minimum_one_batch: bool) -> Slice:
        """Bytes of whole batches from `offset` on, below `end`; raises OFFSET_OUT_OF_RANGE."""
        return self.log.read(offset, max_bytes, end, minimum_one_batch=minimum_one_batch)

    def when_committed(self, offset: int, callback: Callable[[ErrorCode], None]) -> CommitWaiter:
        """Call `callback(NONE)` once the high watermark is at least `offset`; at once, if it is.

        It gets another code when this broker stops leading before. Cancel a wait that is no longer
        needed. `callback` must not raise (wrap it in `Deferred.guard`): an exception is logged, and
        its request is not answered.
        """
        if self.log.high_watermark >= offset:
            callback(ErrorCode.NONE)
            return COMMITTED
        if self._commit_waiters is NOBODY_WAITS:
            self._commit_waiters = CommitWaiters(self.log.name)
        return self._commit_waiters.add(offset, callback)

    def when_flushed(self, offset: int, callback: Callable[[ErrorCode], None]) -> CommitWaiter:
        """As `when_committed`, for what this replica's own disk must have: see `durability`."""
        if self.durability is None:
            callback(ErrorCode.NONE)
            return COMMITTED
        return self.durability.when_acknowledgeable(offset, callback)

    def watch(self, watcher: Watcher) -> None:
        """Have `watcher.check` called when there is more to read; stops if it raises."""
        if self._readers is NOBODY_WATCHES:
            self._readers = Watchers(self.log.name, self._services.timers)
        self._readers.waiting[watcher] = None

    def watch_as_follower(self, watcher: Watcher) -> None:
        """As `watch`, but whenever the log grows, whether or not that is committed."""
        if self._followers is NOBODY_WATCHES:
            self._followers = Watchers(self.log.name, self._services.timers)
        self._followers.waiting[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        """The opposite of `watch` and `watch_as_follower`."""
        self._readers.waiting.pop(watcher, None)
        self._followers.waiting.pop(watcher, None)

    def watch_starts(self, watcher: Watcher) -> None:
        """Have `watcher.check` called when the low watermark or this broker's role may change."""
        self._start_watchers = (*self._start_watchers, watcher)

    def unwatch_starts(self, watcher: Watcher) -> None:
        """The opposite of `watch_starts`."""
        self._start_watchers = tuple(one for one in self._start_watchers if one is not watcher)

    def check_starts(self) -> None:
        """Have waits for log starts checked again, after the current callback."""
        for watcher in self._start_watchers:
            self._services.timers.soon(watcher.check)

    def wake(self) -> None:
        """Have the watchers check again after the current callback: many appends, one check."""
        self._readers.wake()
        self._followers.wake()
        self.check_starts()

    def note_start(self) -> None:
        """Wake the watchers if retention has moved the log's start since the last time."""
        if self.log.log_start_offset != self._known_start:
            self._known_start = self.log.log_start_offset
            self.wake()

    def _carry_out(self, effects: Effects) -> None:
        """Do what follows from a step, in the order that `Effects` states."""
        if effects.truncate_to != NO_OFFSET or effects.restart_at != NO_OFFSET:
            self._cut(effects)
        if effects.commit_up_to != NO_OFFSET:
            self._commit_up_to(effects.commit_up_to)
        if effects.start_at != NO_OFFSET:
            self.log.advance_log_start_offset(effects.start_at)
        if effects.fail_waiters is not None:
            self._fail_waiters(effects.fail_waiters)
        if effects.wake_readers:
            self._readers.wake()
        if effects.wake_followers:
            self._followers.wake()
        if effects.check_starts:
            self.check_starts()
        if effects.proposal is not None:
            self._services.changes.propose(self, effects.proposal)

    def _commit_up_to(self, offset: int) -> None:
        """Raise the high watermark, and answer those that wait for it."""
        if self.log.advance_high_watermark(offset):
            if self._readers.waiting:
                self._readers.wake()
            if self._commit_waiters.heap:
                self._commit_waiters.complete(self.log.high_watermark, ErrorCode.NONE)

    def _cut(self, effects: Effects) -> None:
        if effects.truncate_to != NO_OFFSET:
            self.log.truncate_to(effects.truncate_to)
        if effects.restart_at != NO_OFFSET:
            self.log.truncate_fully_and_start_at(effects.restart_at)
        if self.durability is not None:
            self.durability.cut()

    def _fail_waiters(self, code: ErrorCode) -> None:
        self._commit_waiters.fail(code)
        if self.durability is not None:
            self.durability.fail(code)

    def _limits_changed(self, error: ApiError | None = None) -> None:
        """A flush has ended, or the configuration is another: commit what may be by now."""
        durability = self.durability
        self.machine.commit_limit = NO_LIMIT if durability is None else durability.limit
        if error is not None:
            self._commit_waiters.fail(error.code)
        self._carry_out(self.machine.limits_changed(self._monotonic_ms()))

    def _monotonic_ms(self) -> int:
        return self._services.clock.monotonic_ms()
