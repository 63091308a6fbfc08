"""One replica that this broker holds: its log, who leads it, and who waits for it.

The leader's rules are here: what may be appended, how far consumers may read (the high watermark),
whom an append wakes. What it does about followers, if it has any, is in `replication.leading`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from broker.partitions.commit_waiters import COMMITTED, CommitWaiter, CommitWaiters
from broker.partitions.partition_leader import PartitionLeader
from protocol.errors import ApiError, ErrorCode
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from broker.partitions.partition_leader import PartitionServices
    from protocol.messages.leader_and_isr import LeaderAndIsrPartitionState
    from protocol.wire import Buffer
    from storage.append.append_info import AppendInfo
    from storage.append.append_source import AppendSource
    from storage.log.log import Log
    from storage.segment.slices import Slice

logger = logging.getLogger(__name__)

ACKS_ALL = -1
NO_EPOCH = -1


class Watcher(Protocol):
    """Somebody who waits for more records (a delayed fetch)."""

    def check(self) -> None:
        """Look again: records were appended, or leadership or the log's start has changed."""
        ...


class Partition:
    """A replica and its role. Made when the controller first mentions it; see `replicas`."""

    __slots__ = (
        "_commit_waiters",
        "_followers",
        "_is_follower_wake_scheduled",
        "_is_wake_scheduled",
        "_known_start",
        "_start_watchers",
        "_surroundings",
        "_watchers",
        "controller_epoch",
        "in_sync_replicas",
        "index",
        "is_leader",
        "leader_epoch",
        "leader_epoch_start_offset",
        "leader_id",
        "leading",
        "log",
        "partition_epoch",
        "replicas",
        "topic",
    )

    def __init__(self, log: Log, surroundings: PartitionServices) -> None:
        self.log = log
        self.topic = log.topic
        self.index = log.partition
        self.leader_id = -1
        self.leader_epoch = NO_EPOCH
        self.leader_epoch_start_offset = 0
        self.partition_epoch = NO_EPOCH
        self.controller_epoch = NO_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.in_sync_replicas: tuple[int, ...] = ()
        self.is_leader = False
        self.leading: PartitionLeader | None = None
        """What it does about its followers, when it leads and has any."""
        self._surroundings = surroundings
        self._watchers: dict[Watcher, None] = {}
        """In the order in which they came: what runs must not hang on addresses in memory."""
        self._is_wake_scheduled = False
        self._known_start = log.log_start_offset
        self._followers: dict[Watcher, None] = {}
        """Those who read beyond the high watermark, and need not hear that it moves."""
        self._is_follower_wake_scheduled = False
        self._start_watchers: tuple[Watcher, ...] = ()
        """Those who wait until the replicas begin later; nearly always nobody."""
        self._commit_waiters = CommitWaiters(f"{log.topic}-{log.partition}")

    @property
    def topic_id(self) -> UUID:
        """The id of the topic's present incarnation."""
        return self.log.topic_id or ZERO_UUID

    def assume(self, state: LeaderAndIsrPartitionState) -> bool:
        """Take the role that the controller gives; returns False when the state is an old one.

        Within a leader epoch the partition epoch tells: a new controller says again what it found,
        and that may come after its answer to an AlterPartition that has changed it. Raises ApiError
        when the log cannot note the epoch; nothing has changed then.
        """
        if (state.leader_epoch, state.partition_epoch) < (self.leader_epoch, self.partition_epoch):
            return False
        is_new_epoch = state.leader_epoch > self.leader_epoch
        is_leader = state.leader == self._surroundings.local_id
        if is_leader and is_new_epoch and state.leader_epoch > self.log.latest_epoch:
            # First: a leader that was half made when the disk refused this would commit alone.
            self.log.assign_epoch(state.leader_epoch, self.log.log_end_offset)
        self.controller_epoch = state.controller_epoch
        self.leader_id = state.leader
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.replicas = tuple(state.replicas)
        self.in_sync_replicas = tuple(state.isr)
        self.is_leader = is_leader
        if is_leader and is_new_epoch:
            self.leader_epoch_start_offset = self.log.log_end_offset
        self._replicate(state, is_new_epoch=is_new_epoch)
        if not self.is_leader:
            self._commit_waiters.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.wake()
        return True

    def retire(self) -> None:
        """The replica leaves this broker: nobody may append, those who wait are told."""
        self.is_leader = False
        self.leading = None
        self.leader_id = -1
        self._commit_waiters.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.wake()

    def append_records(
        self, records: memoryview, acks: int, source: AppendSource, now_ms: int
    ) -> AppendInfo:
        """Append one batch as leader; raises ApiError. `records` is patched in place."""
        if not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = self.log
        in_sync_count = len(self.in_sync_replicas)
        if (
            acks == ACKS_ALL
            and in_sync_count < len(self.replicas)
            and in_sync_count < log.config.min_insync_replicas
        ):
            raise ApiError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.topic}-{self.index} has {in_sync_count} in-sync replicas, "
                f"min.insync.replicas is {log.config.min_insync_replicas}",
            )
        info = log.append_as_leader(records, self.leader_epoch, now_ms, source)
        if self.leading is not None:
            self.leading.appended()
            self._wake_followers()
            return info
        log.advance_high_watermark(log.log_end_offset)
        if self._watchers:
            self.wake()
        if self._commit_waiters.heap:
            self._complete_commit_waiters()
        return info

    def append_from_leader(
        self, records: Buffer, high_watermark: int, log_start_offset: int, now_ms: int
    ) -> None:
        """Append what the leader sent, and take over how much of it is committed.

        Raises ApiError as `Log.append_as_follower` does.
        """
        if records:
            self.log.append_as_follower(records, now_ms)
        self.heard_from_leader(high_watermark, log_start_offset)

    def heard_from_leader(self, high_watermark: int, log_start_offset: int) -> None:
        """Take over how much of what is here is committed, and where the log begins."""
        log = self.log
        has_news = log.advance_high_watermark(high_watermark)
        if log.log_start_offset < log_start_offset <= log.high_watermark:
            has_news |= log.advance_log_start_offset(log_start_offset)
        if has_news:
            self.wake()

    def check_leader(self, current_leader_epoch: int) -> None:
        """Refuse who should ask somebody else: `check_epoch` and `check_leads`."""
        self.check_epoch(current_leader_epoch)
        self.check_leads()

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a reader that knows another leader than we do (KIP-320); -1 skips the check."""
        if current_leader_epoch in (NO_EPOCH, self.leader_epoch):
            return
        raise ApiError(
            ErrorCode.FENCED_LEADER_EPOCH
            if current_leader_epoch < self.leader_epoch
            else ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"leader epoch is {self.leader_epoch}, the request has {current_leader_epoch}",
        )

    def check_leads(self) -> None:
        """Refuse who wants a leader, if this is none."""
        if not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    @property
    def is_behind_its_epoch(self) -> bool:
        """Whether it leads, but does not know yet that all from before its epoch is committed."""
        return self.is_leader and self.log.high_watermark < self.leader_epoch_start_offset

    def readable_end(self, *, is_read_committed: bool) -> int:
        """The offset that consumers may not reach: high watermark, or last stable offset."""
        return self.log.last_stable_offset if is_read_committed else self.log.high_watermark

    def read(self, offset: int, max_bytes: int, end: int, *, minimum_one_batch: bool) -> Slice:
        """Bytes of whole batches from `offset` on, below `end`; raises OFFSET_OUT_OF_RANGE."""
        return self.log.read(offset, max_bytes, end, minimum_one_batch=minimum_one_batch)

    def when_committed(self, offset: int, callback: Callable[[ErrorCode], None]) -> CommitWaiter:
        """Call `callback(NONE)` once the high watermark is at least `offset`; at once, if it is.

        It gets another code when this broker stops leading before. Cancel the wait when nobody
        is interested any more.
        """
        if self.log.high_watermark >= offset:
            callback(ErrorCode.NONE)
            return COMMITTED
        return self._commit_waiters.add(offset, callback)

    def watch(self, watcher: Watcher) -> None:
        """Have `watcher.check` called when there is more to read."""
        self._watchers[watcher] = None

    def watch_as_follower(self, watcher: Watcher) -> None:
        """Have `watcher.check` called when the log grows, whether or not that is committed."""
        self._followers[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        """The opposite of `watch` and `watch_as_follower`."""
        self._watchers.pop(watcher, None)
        self._followers.pop(watcher, None)

    def watch_starts(self, watcher: Watcher) -> None:
        """Have `watcher.check` called when the low watermark or this broker's role may change."""
        self._start_watchers = (*self._start_watchers, watcher)

    def unwatch_starts(self, watcher: Watcher) -> None:
        """The opposite of `watch_starts`."""
        self._start_watchers = tuple(one for one in self._start_watchers if one is not watcher)

    def check_starts(self) -> None:
        """Have those look again, after what is being handled now, who wait for log starts."""
        for watcher in self._start_watchers:
            self._surroundings.timers.soon(watcher.check)

    @property
    def low_watermark(self) -> int:
        """As the leader, from where on all live replicas have records; -1 while not known."""
        return self.log.log_start_offset if self.leading is None else self.leading.low_watermark

    def wake(self) -> None:
        """Have the watchers look again after what is being handled now: many appends, one look."""
        self._wake_readers()
        self._wake_followers()
        self.check_starts()

    def note_start(self) -> None:
        """Wake the watchers if retention has moved the log's start since the last time."""
        if self.log.log_start_offset != self._known_start:
            self._known_start = self.log.log_start_offset
            self.wake()

    def _wake_readers(self) -> None:
        if self._watchers and not self._is_wake_scheduled:
            self._is_wake_scheduled = True
            self._surroundings.timers.soon(self._wake_readers_now)

    def _wake_readers_now(self) -> None:
        self._is_wake_scheduled = False
        self._have_look(self._watchers)

    def _wake_followers(self) -> None:
        if self._followers and not self._is_follower_wake_scheduled:
            self._is_follower_wake_scheduled = True
            self._surroundings.timers.soon(self._wake_followers_now)

    def _wake_followers_now(self) -> None:
        self._is_follower_wake_scheduled = False
        self._have_look(self._followers)

    def _have_look(self, watchers: dict[Watcher, None]) -> None:
        """Call each; one that raises is dropped, and costs the others nothing."""
        for watcher in tuple(watchers):
            try:
                watcher.check()
            except Exception:
                logger.exception("%s-%d: delayed fetch dropped", self.topic, self.index)
                self.unwatch(watcher)

    def commit_up_to(self, offset: int) -> None:
        """Raise the high watermark, and tell those who wait for it."""
        if self.log.advance_high_watermark(offset):
            self._wake_readers()
            self._complete_commit_waiters()

    def in_sync_changed(self, in_sync: tuple[int, ...], partition_epoch: int) -> None:
        """The controller has stored another in-sync set for this leader."""
        self.in_sync_replicas = in_sync
        self.partition_epoch = partition_epoch
        self._wake_followers()  # one that rested and was put out must ask again, to be let in

    def _replicate(self, state: LeaderAndIsrPartitionState, *, is_new_epoch: bool) -> None:
        """Take up, go on with or end what a leader does about followers."""
        if not self.is_leader or len(self.replicas) == 1:
            self.leading = None
            if self.is_leader:
                self.commit_up_to(self.log.log_end_offset)
            return
        if self.leading is None:
            self.leading = PartitionLeader(self, self._surroundings)
        self.leading.assume(state, is_new_epoch=is_new_epoch)

    def _complete_commit_waiters(self) -> None:
        code = ErrorCode.NONE
        if self.leading is not None and len(self.in_sync_replicas) < self.leading.min_in_sync:
            code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        self._commit_waiters.complete(self.log.high_watermark, code)
