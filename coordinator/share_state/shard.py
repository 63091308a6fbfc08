"""One partition of `__share_group_state` as a state machine: the state of its share-partitions.

`handle_*` decide, `replay` changes. The broker appends the records of an `ShareStateEffects`,
replays them here, and gives the answers once they are committed; a restart replays the log. An
answer is the result, or an ApiError. Nothing here waits.

Former leaders of a partition are fenced by the leader epoch, and readers of a share-partition from
before its last initialisation by the state epoch. Both are the highest in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.share_state.batches import combined
from coordinator.share_state.effects import ShareStateEffects, refusal
from coordinator.share_state.records import ShareStateRecord, ShareUpdate
from coordinator.share_state.state import (
    NO_COUNT,
    NO_EPOCH,
    NO_START_OFFSET,
    NO_SUMMARY,
    ShareState,
    StateSummary,
    StoredState,
)
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from uuid import UUID

    from coordinator.ports import Reply
    from coordinator.share_state.settings import ShareStateSettings
    from coordinator.share_state.state import SharePartition, StateChange
    from coordinator.topics import Topics

RECORDS_AT_ONCE = 100
"""Snapshots or tombstones made before others are served."""
NOT_INITIALISED = "{} operation on uninitialized share partition not allowed."


class _Kept:
    """One share-partition."""

    __slots__ = ("leader_epoch", "state", "state_epoch", "updates")

    def __init__(self, state: ShareState) -> None:
        self.state = state
        self.leader_epoch = state.leader_epoch
        """The highest seen: the initial state has none."""
        self.state_epoch = state.state_epoch
        self.updates = 0
        """Since the last snapshot."""


class ShareStateShard:
    """The share-partitions whose keys hash to one partition of the topic."""

    def __init__(self, settings: ShareStateSettings, topics: Topics) -> None:
        self._settings = settings
        self._topics = topics
        self._kept: dict[SharePartition, _Kept] = {}
        self._snapshots: dict[SharePartition, int] = {}
        """Offset of each one's last snapshot, lowest first."""
        self._next_offset = 0
        self._has_changed = False
        """True if anything was written since the last pass over cold snapshots."""

    @property
    def share_partitions(self) -> Collection[SharePartition]:
        """All that have state."""
        return self._kept.keys()

    def find(self, partition: SharePartition) -> ShareState | None:
        """The state of one."""
        kept = self._kept.get(partition)
        return None if kept is None else kept.state

    # Replay

    def replay(self, record: ShareStateRecord, log_offset: int = 0) -> None:
        """Apply one record of the log, freshly appended or read back."""
        partition, value = record
        self._next_offset = log_offset + 1
        if value is None:
            self._kept.pop(partition, None)
            self._snapshots.pop(partition, None)
        elif isinstance(value, ShareUpdate):
            self._has_changed = True
            self._replay_update(partition, value)
        else:
            self._has_changed |= value.created_ms == value.written_ms
            self._replay_snapshot(partition, value)
            self._snapshots.pop(partition, None)  # so that it becomes the last
            self._snapshots[partition] = log_offset

    def _replay_snapshot(self, partition: SharePartition, value: ShareState) -> None:
        state = value._replace(batches=combined((), value.batches, value.start_offset))
        kept = self._kept.get(partition)
        if kept is None:
            self._kept[partition] = _Kept(state)
            return
        kept.state = state
        kept.leader_epoch = max(kept.leader_epoch, state.leader_epoch)
        kept.state_epoch = max(kept.state_epoch, state.state_epoch)
        kept.updates = 0

    def _replay_update(self, partition: SharePartition, value: ShareUpdate) -> None:
        kept = self._kept.get(partition)
        if kept is None:  # its snapshot has been deleted: a later one, or a tombstone, follows
            start = value.start_offset
            unknown = ShareState(value.snapshot_epoch, 0, 0, start, NO_COUNT, (), 0, 0)
            kept = self._kept[partition] = _Kept(unknown)
        old = kept.state
        start_offset = (
            old.start_offset if value.start_offset == NO_START_OFFSET else value.start_offset
        )
        leader_epoch = old.leader_epoch if value.leader_epoch == NO_EPOCH else value.leader_epoch
        kept.state = old._replace(
            start_offset=start_offset,
            leader_epoch=leader_epoch,
            delivery_complete_count=value.delivery_complete_count,
            batches=combined(old.batches, value.batches, start_offset),
        )
        kept.leader_epoch = max(kept.leader_epoch, leader_epoch)
        kept.updates += 1

    # Requests

    def handle_initialise(
        self,
        partition: SharePartition,
        state_epoch: int,
        start_offset: int,
        reply: Reply[ApiError | None],
        now_ms: int,
    ) -> ShareStateEffects:
        """Initialise a share-partition, with no records delivered from the start offset on.

        A repeated or late request changes nothing: its answer may have been lost, and the
        share-partition may be in use by now.
        """
        kept = self._kept.get(partition)
        try:
            _check_index(partition)
            _check_epoch("state", state_epoch)
            if kept is not None and state_epoch < kept.state_epoch:
                raise ApiError(ErrorCode.FENCED_STATE_EPOCH)
            self._check_exists(partition)
        except ApiError as error:
            return refusal(reply, error)
        is_again = kept is not None and kept.state_epoch == state_epoch
        if is_again and start_offset == NO_START_OFFSET:
            return ShareStateEffects.told(reply, None)
        state = ShareState(
            snapshot_epoch=0 if kept is None else kept.state.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            delivery_complete_count=NO_COUNT if start_offset == NO_START_OFFSET else 0,
            batches=(),
            created_ms=now_ms,
            written_ms=now_ms,
        )
        return ShareStateEffects.stored(ShareStateRecord(partition, state), reply, None)

    def handle_write(
        self,
        partition: SharePartition,
        change: StateChange,
        reply: Reply[ApiError | None],
        now_ms: int,
    ) -> ShareStateEffects:
        """Store a change: as an update, or, when many have been stored, as a snapshot."""
        try:
            _check_index(partition)
            _check_epoch("leader", change.leader_epoch)
            _check_epoch("state", change.state_epoch)
            kept = self._initialised(partition, "Write")
            _check_leader(change.leader_epoch, kept)
            if change.state_epoch < kept.state_epoch:
                raise ApiError(ErrorCode.FENCED_STATE_EPOCH)
            self._check_exists(partition)
            _check_batches(change)
        except ApiError as error:
            return refusal(reply, error)
        update = ShareUpdate(
            snapshot_epoch=kept.state.snapshot_epoch,
            leader_epoch=kept.state.leader_epoch,
            start_offset=change.start_offset,
            delivery_complete_count=change.delivery_complete_count,
            batches=combined((), change.batches, change.start_offset),
        )
        record = self._update_or_snapshot(partition, kept, update, now_ms)
        return ShareStateEffects.stored(record, reply, None)

    def handle_read(
        self,
        partition: SharePartition,
        leader_epoch: int,
        reply: Reply[ApiError | StoredState],
        now_ms: int,
    ) -> ShareStateEffects:
        """Read for a leader; former leaders are fenced from then on."""
        try:
            _check_index(partition)
            _check_epoch("leader", leader_epoch)
            kept = self._initialised(partition, "Read")
            _check_leader(leader_epoch, kept)
            self._check_exists(partition)
        except ApiError as error:
            return refusal(reply, error)
        state = kept.state
        stored = StoredState(state.state_epoch, state.start_offset, state.batches)
        if leader_epoch == kept.leader_epoch:
            return ShareStateEffects.told(reply, stored)
        update = ShareUpdate(
            snapshot_epoch=state.snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
            batches=(),
        )
        record = self._update_or_snapshot(partition, kept, update, now_ms)
        return ShareStateEffects.stored(record, reply, stored)

    def handle_read_summary(
        self, partition: SharePartition, reply: Reply[ApiError | StateSummary]
    ) -> ShareStateEffects:
        """Read a share-partition's summary, without fencing."""
        try:
            _check_index(partition)
            self._check_exists(partition)
        except ApiError as error:
            return refusal(reply, error)
        state = self.find(partition)
        summary = NO_SUMMARY
        if state is not None:
            summary = StateSummary(
                state_epoch=state.state_epoch,
                leader_epoch=state.leader_epoch,
                start_offset=state.start_offset,
                delivery_complete_count=state.delivery_complete_count,
            )
        return ShareStateEffects.told(reply, summary)

    def handle_delete(
        self, partition: SharePartition, reply: Reply[ApiError | None]
    ) -> ShareStateEffects:
        """Forget a share-partition; one that has no state is forgotten already."""
        try:
            _check_index(partition)
            self._check_exists(partition)
        except ApiError as error:
            return refusal(reply, error)
        if partition not in self._kept:
            return ShareStateEffects.told(reply, None)
        return ShareStateEffects.stored(ShareStateRecord(partition, None), reply, None)

    # What the coordinator does by itself

    def handle_topics_deleted(
        self, topic_ids: Collection[UUID]
    ) -> Iterator[list[ShareStateRecord]]:
        """Tombstones for the share-partitions of deleted topics, to be appended at each step."""
        known = list(self._kept)
        for start in range(0, len(known), RECORDS_AT_ONCE):
            yield [
                ShareStateRecord(partition, None)
                for partition in known[start : start + RECORDS_AT_ONCE]
                if partition.topic_id in topic_ids and partition in self._kept
            ]

    def snapshot_cold(self, now_ms: int) -> Iterator[list[ShareStateRecord]]:
        """Write snapshots of states not written for long, to be appended at each step.

        Older records can then be deleted. Nothing is written if nothing has changed since the last
        pass, so that an idle cluster does not grow.
        """
        if not self._has_changed:
            return
        latest_ms = now_ms - self._settings.cold_snapshot_interval_ms
        self._has_changed = False
        known = list(self._snapshots)
        for start in range(0, len(known), RECORDS_AT_ONCE):
            some = [(each, self.find(each)) for each in known[start : start + RECORDS_AT_ONCE]]
            yield [
                ShareStateRecord(
                    partition,
                    state._replace(snapshot_epoch=state.snapshot_epoch + 1, written_ms=now_ms),
                )
                for partition, state in some
                if state is not None and state.written_ms <= latest_ms
            ]

    @property
    def first_needed_offset(self) -> int:
        """Offset before which all records are superseded by later ones."""
        return next(iter(self._snapshots.values()), self._next_offset)

    def _initialised(self, partition: SharePartition, operation: str) -> _Kept:
        kept = self._kept.get(partition)
        if kept is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, NOT_INITIALISED.format(operation))
        return kept

    def _check_exists(self, partition: SharePartition) -> None:
        name = self._topics.name_of(partition.topic_id)
        topic = None if name is None else self._topics.find(name)
        if topic is None or topic.partition_count <= partition.partition:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _update_or_snapshot(
        self, partition: SharePartition, kept: _Kept, update: ShareUpdate, now_ms: int
    ) -> ShareStateRecord:
        if kept.updates < self._settings.updates_per_snapshot:
            return ShareStateRecord(partition, update)
        old = kept.state
        start_offset = update.start_offset
        if start_offset == NO_START_OFFSET:
            start_offset = old.start_offset
        state = ShareState(
            snapshot_epoch=old.snapshot_epoch + 1,
            state_epoch=old.state_epoch,
            leader_epoch=update.leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=update.delivery_complete_count,
            batches=combined(old.batches, update.batches, start_offset),
            created_ms=now_ms,
            written_ms=now_ms,
        )
        return ShareStateRecord(partition, state)


def _check_leader(leader_epoch: int, kept: _Kept) -> None:
    if leader_epoch < kept.leader_epoch:
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)


def _check_index(partition: SharePartition) -> None:
    if partition.partition < 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number.")


def _check_epoch(kind: str, epoch: int) -> None:
    if epoch < 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"The {kind} epoch cannot be a negative number.")


def _check_batches(change: StateChange) -> None:
    """Refuse empty ranges, which Apache Kafka stores: here they would be lost silently."""
    for batch in change.batches:
        if not 0 <= batch.first_offset <= batch.last_offset:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{batch} is no range of offsets")
