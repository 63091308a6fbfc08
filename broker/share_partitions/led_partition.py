"""One share group in one partition that this broker leads.

        read from the coordinator          leadership is lost, or the epoch is fenced
    LOADING ───────────────▶ ACTIVE ─────────────────────────▶ OVER
       └───────── cannot be read ────────────────────────────────▲

Once it is over, its changes can still be stored, but nothing is acquired any more; the next request
gets a new one, which is loaded again.
"""

from __future__ import annotations

import enum
import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker.partitions.watchers import Watchers
from broker.runtime.deferred import Deferred
from broker.share_partitions.fetched_slice import FetchedSlice
from broker.share_partitions.state_writer import StateWriter, as_fetched
from coordinator.share_partitions.in_flight import (
    MOST_RELEASED,
    NEVER_MS,
    InFlightRecords,
    load,
)
from coordinator.share_partitions.record_ranges import RecordRanges
from coordinator.share_state.state import NO_START_OFFSET
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from broker.coordinators.share_state.store import ShareStateStore
    from broker.partitions.partition import Partition
    from broker.partitions.watchers import Watcher
    from broker.runtime.clock import Clock
    from broker.runtime.timers import Cancellable, Timers
    from broker.share_partitions.first_offset import FirstOffsets
    from coordinator.share_partitions.acknowledgement import AcknowledgementBatch
    from coordinator.share_partitions.acquisition import Acquired, FetchedBatch, Wanted
    from coordinator.share_partitions.record_range import Transition
    from coordinator.share_partitions.settings import ShareGroupSettings
    from coordinator.share_state.state import SharePartition, StoredState
    from storage.segment.slices import Slice

logger = logging.getLogger(__name__)


class LedState(enum.Enum):
    """State of a led share-partition."""

    LOADING = enum.auto()
    ACTIVE = enum.auto()
    OVER = enum.auto()


class GroupSettings(Protocol):
    """Source of share group settings."""

    def settings_of(self, group_id: str) -> ShareGroupSettings:
        """Current settings of a group."""
        ...


class ShareParts(NamedTuple):
    """Parts shared by all share-partitions of a broker."""

    clock: Clock
    timers: Timers
    store: ShareStateStore
    first_offsets: FirstOffsets
    groups: GroupSettings


class Owner(Protocol):
    """Has all of them."""

    def is_over(self, led: LedSharePartition) -> None:
        """Called when it has ended by itself."""
        ...

    def has_settled(self, led: LedSharePartition) -> None:
        """Called when it is loaded, or its own changes are stored, or cannot be."""
        ...

    def has_stored(self, led: LedSharePartition) -> None:
        """Called when a member's changes are stored, or cannot be."""
        ...


class Taken(NamedTuple):
    """Records that a member has acquired, and their batches."""

    acquired: list[Acquired]
    records: Slice
    record_count: int
    batch_count: int


class LedSharePartition:
    """Records in flight, the timer of their locks, and the waiting fetches."""

    def __init__(
        self,
        key: SharePartition,
        partition: Partition,
        parts: ShareParts,
        owner: Owner,
    ) -> None:
        self.key = key
        self.partition = partition
        self.state = LedState.LOADING
        self.failure: ApiError | None = None
        """Reason why it is over."""
        self._parts = parts
        self._owner = owner
        self._records = InFlightRecords(RecordRanges(0), parts.groups.settings_of(key.group_id))
        self._writer = StateWriter(parts.store, key, partition.leader_epoch, self._position)
        self._watchers = Watchers(str(self), parts.timers)
        self._is_releasing = False
        """True if more of the records that members left behind are to be released."""
        self._lock_timer: Cancellable | None = None
        self._lock_timer_ms = NEVER_MS
        self._acknowledging = 0
        """Acknowledgements that are decided on in steps."""

    def __str__(self) -> str:
        partition = self.partition
        return f"share group {self.key.group_id!r} in {partition.topic}-{partition.index}"

    @property
    def is_idle(self) -> bool:
        """True if nothing waits to be released, stored or loaded, or is about to."""
        is_busy = self._is_releasing or self._acknowledging > 0
        return self._writer.is_idle and not is_busy and self.state is not LedState.LOADING

    @property
    def records_in_flight(self) -> int:
        """Offsets between the start and the end."""
        return self._records.ranges.record_count

    @property
    def can_acquire(self) -> bool:
        """True if a member could acquire records, if the log has any."""
        if self.state is not LedState.ACTIVE:
            return False
        self._refresh()
        return self._records.can_acquire

    def watch(self, watcher: Watcher) -> None:
        """Have `watcher.check` called when records may have become available, or it is over."""
        self._watchers.waiting[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        """The opposite of `watch`."""
        self._watchers.waiting.pop(watcher, None)

    # Loading

    def load(self) -> None:
        """Read the stored state; waiting fetches are woken when that is done."""
        reading = self._parts.store.read(self.key, self.partition.leader_epoch)
        reading.map(self._begin).then(self._loaded, self._not_loaded)

    def _loaded(self, _: None) -> None:
        self._watchers.wake()
        self._owner.has_settled(self)

    def _begin(self, stored: StoredState) -> Deferred[None] | None:
        self._writer.epoch, self._writer.start_offset = stored.state_epoch, stored.start_offset
        start: int | Deferred[int] = stored.start_offset
        if start == NO_START_OFFSET:
            reset = self._settings.auto_offset_reset
            start = self._parts.first_offsets.find(self.partition, reset)
        if isinstance(start, Deferred):
            return start.map(partial(self._restore, stored))
        self._restore(stored, start)
        return None

    def _restore(self, stored: StoredState, start: int) -> None:
        if self.state is LedState.OVER:
            return
        log = self.partition.log
        self._records, corrections = load(stored, start, log.log_end_offset, self._settings)
        self.state = LedState.ACTIVE
        if corrections:
            logger.warning(
                "%s: %d offsets are stored as delivered that the log has lost; what comes in their "
                "place is delivered",
                self,
                sum(one.last_offset - one.first_offset + 1 for one in corrections),
            )
        if corrections or self._records.ranges.start != stored.start_offset:
            # Else a group that begins at the end would begin there again after a change of leader,
            # and never get what came before that.
            storing = self._writer.write(corrections)
            storing.then(lambda _: self._owner.has_settled(self), self._not_stored)

    def _not_loaded(self, error: Exception) -> None:
        told = as_fetched(error)
        if not isinstance(told, ApiError):
            logger.error("%s: not loaded", self, exc_info=error)
            told = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"not loaded: {error!r}")
        else:
            # Not louder: a member of no group may ask for hundreds of partitions, again and again.
            logger.debug("%s: not loaded: %s", self, error)
        self.end(told)
        self._owner.is_over(self)

    # Members

    def read(self, max_bytes: int, *, minimum_one_batch: bool) -> Slice:
        """The log from the first record that can be acquired. Raises ApiError."""
        partition = self.partition
        partition.check_leads()
        end = partition.readable_end(is_read_committed=self._records.settings.is_read_committed)
        offset = self._records.next_fetch_offset
        return partition.read(offset, max_bytes, end, minimum_one_batch=minimum_one_batch)

    def acquire(self, wanted: Wanted, piece: Slice, most_batches: int) -> Taken | None:
        """Let a member have records of a piece that was just read; None if there are none.

        Raises ApiError, and no records are acquired then.
        """
        reader, records = self.partition.log.reader, self._records
        fetched, offset = FetchedSlice(reader, piece, most_batches), records.next_fetch_offset
        aborted: list[FetchedBatch] = []
        if records.settings.is_read_committed and len(fetched):
            aborted = fetched.aborted(reader.aborted_in(fetched.whole, offset))
        wanted, now_ms = wanted._replace(fetch_offset=offset), self._parts.clock.monotonic_ms()
        acquired = records.acquire(wanted, fetched.batches, now_ms)
        if acquired and aborted:
            acquired = records.archive(acquired, aborted)
        self._arm()
        if not acquired:
            return None
        count = sum(one.last - one.first + 1 for one in acquired)
        return Taken(acquired, fetched.holding(acquired), count, len(fetched))

    def acknowledge(
        self, member_id: str, batches: Sequence[AcknowledgementBatch]
    ) -> Generator[None, None, Deferred[None]]:
        """Do with records as their member says, in steps; complete once that is stored.

        Raises ApiError, and nothing has changed then.
        """
        if self.state is not LedState.ACTIVE:
            raise ApiError(ErrorCode.INVALID_RECORD_STATE, "no records are in delivery")
        self._refresh()
        now_ms = self._parts.clock.monotonic_ms()
        self._acknowledging += 1
        try:
            transition = yield from self._records.acknowledge(member_id, batches, now_ms)
        except BaseException:
            # Reverted records are locked again, or available: expired locks were skipped.
            self._acknowledging -= 1
            self._arm()
            self._watchers.wake()
            self._owner.has_stored(self)
            raise
        self._acknowledging -= 1
        start = self._records.ranges.start
        # Else the next leader may redeliver records finished here and not stored, as
        # when a lock expired for the last time while no replica was available.
        is_start_owed = start > self._writer.start_offset and any(
            batch.first < start for batch in batches
        )
        if not transition.ranges and not is_start_owed:
            self._owner.has_stored(self)
        return self._store(transition, is_start_owed=is_start_owed)

    def leave(self, member_id: str) -> bool:
        """The member is gone; returns whether `release_departed` has to be called for that."""
        if self.state is not LedState.ACTIVE:
            return False
        self._records.leave(member_id)
        was_releasing, self._is_releasing = self._is_releasing, True
        return not was_releasing

    def release_departed(self) -> None:
        """Have others get what members have left behind, a part now and the rest soon.

        Each part is stored before the next is released.
        """
        if self.state is not LedState.ACTIVE:
            return
        self._refresh()
        transition = self._records.release_departed(self._parts.clock.monotonic_ms())
        self._is_releasing = len(transition.ranges) >= MOST_RELEASED
        stored = self._store(transition)
        if self._is_releasing:
            stored.then(lambda _: self._parts.timers.soon(self._release_more), self._not_released)
        else:
            stored.then(lambda _: None, self._not_stored)

    def _release_more(self) -> None:
        self.release_departed()
        if self.is_idle:
            self._owner.has_stored(self)

    def _not_released(self, error: Exception) -> None:
        """Handle a failed release: the records become available again when their locks expire."""
        self._is_releasing = False
        self._not_stored(error)

    def _store(self, transition: Transition, *, is_start_owed: bool = False) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        if not transition.ranges and not is_start_owed:
            done.complete(None)
            return done

        def stored(_: None) -> None:
            self._records.commit(transition)
            self._watchers.wake()
            done.complete(None)
            self._owner.has_stored(self)

        def failed(error: Exception) -> None:
            self._records.roll_back(transition, self._parts.clock.monotonic_ms())
            self._arm()
            self._watchers.wake()
            self._check_fenced(error)
            done.fail(error)
            self._owner.has_stored(self)

        self._writer.write(self._records.changes_of(transition)).then(stored, failed)
        return done

    # Time, the log, the end

    def end(self, failure: ApiError) -> None:
        """Serve nothing more: another leads, or the state here is not the one that counts."""
        if self.state is LedState.OVER:
            return
        self.state = LedState.OVER
        self.failure = failure
        if self._lock_timer is not None:
            self._lock_timer.cancel()
            self._lock_timer = None
        self._watchers.wake()

    @property
    def _settings(self) -> ShareGroupSettings:
        return self._parts.groups.settings_of(self.key.group_id)

    def _refresh(self) -> None:
        """Apply the current settings and log start offset."""
        self._records.settings = self._settings
        self._records.log_starts_at(self.partition.log.log_start_offset)

    def _position(self) -> tuple[int, int]:
        ranges = self._records.ranges
        return ranges.start, ranges.final_count

    def _arm(self) -> None:
        """Have the timer go off no later than the next lock expires."""
        due_ms = self._records.earliest_lock_ms
        if self.state is not LedState.ACTIVE or due_ms >= NEVER_MS:
            return
        if self._lock_timer is not None:
            if self._lock_timer_ms <= due_ms:
                return
            self._lock_timer.cancel()
        delay_ms = max(0, due_ms - self._parts.clock.monotonic_ms())
        self._lock_timer_ms = due_ms
        self._lock_timer = self._parts.timers.schedule(delay_ms, self._expire)

    def _expire(self) -> None:
        self._lock_timer = None
        if self.state is not LedState.ACTIVE:
            return
        self._refresh()
        changes = self._records.expire_locks(self._parts.clock.monotonic_ms())
        if changes:
            # They come again whether that can be stored or not: if not, the count is lost.
            self._writer.write(changes).then(lambda _: None, self._not_stored)
            self._watchers.wake()
        self._arm()

    def _not_stored(self, error: Exception) -> None:
        logger.warning("%s: state not stored: %s", self, error)
        self._check_fenced(error)
        self._owner.has_settled(self)

    def _check_fenced(self, error: Exception) -> None:
        if isinstance(error, ApiError) and error.code in ENDS and self.state is LedState.ACTIVE:
            logger.info("%s: given up: %s", self, error)
            self.end(error)
            self._owner.is_over(self)


ENDS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""Errors after which the state in memory is void."""
