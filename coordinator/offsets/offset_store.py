"""Committed offsets of all groups of a shard: group id → topic → partition → position.

Of two commits the one later in the log counts. A transaction's positions stand where they were
sent, not where its marker is; so an older one must not replace a newer when it becomes final.
Without that rule compaction, which keeps the last record of each key, could bring back a position
other than the one served before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator.offsets.pending_offsets import PendingOffsets, Place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from protocol.messages.consumer_offsets_records import OffsetCommitKey, OffsetCommitValue

NO_OFFSET: Final = -1
NO_LEADER_EPOCH: Final = -1
NO_EXPIRY_MS: Final = -1
NO_PRODUCER: Final = -1


class CommittedOffset(NamedTuple):
    """A stored position."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_EXPIRY_MS
    """Set by clients below version 5 that chose their own retention; else the broker's applies."""
    log_offset: int = -1
    """Offset of the record in the log."""


Positions = dict[int, CommittedOffset]


class OffsetStore:
    """Changed by replay only."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, Positions]] = {}
        self.pending = PendingOffsets()

    def put(
        self,
        key: OffsetCommitKey,
        value: OffsetCommitValue,
        log_offset: int,
        producer_id: int = NO_PRODUCER,
    ) -> None:
        """Replay of a commit; of one inside a transaction, if it names a producer."""
        committed = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            log_offset,
        )
        if producer_id == NO_PRODUCER:
            self._positions(key.group, key.topic)[key.partition] = committed
        else:
            place = Place(key.group, key.topic, key.partition)
            self.pending.put(producer_id, place, committed)

    def remove(self, key: OffsetCommitKey) -> None:
        """Replay of a tombstone."""
        self.pending.remove(Place(key.group, key.topic, key.partition))
        topics = self._groups.get(key.group)
        positions = topics.get(key.topic) if topics else None
        if topics is None or positions is None:
            return
        positions.pop(key.partition, None)
        if not positions:
            del topics[key.topic]
            if not topics:
                del self._groups[key.group]

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Replay a marker: the producer's pending positions become final, or are dropped."""
        for place, committed in self.pending.take(producer_id).items():
            if is_commit:
                positions = self._positions(place.group_id, place.topic)
                present = positions.get(place.partition)
                if present is None or present.log_offset < committed.log_offset:
                    positions[place.partition] = committed

    def of_group(self, group_id: str) -> Mapping[str, Positions]:
        """Positions by topic and partition; read only."""
        return self._groups.get(group_id, {})

    def find(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """One position."""
        topics = self._groups.get(group_id)
        positions = topics.get(topic) if topics else None
        return positions.get(partition) if positions else None

    def has(self, group_id: str, topic: str, partition: int) -> bool:
        """Return whether there is a position, pending ones included."""
        return self.find(group_id, topic, partition) is not None or self.pending.is_pending(
            group_id, topic, partition
        )

    def has_any(self, group_id: str) -> bool:
        """Return whether the group has any position, pending ones included."""
        return group_id in self._groups or self.pending.has_any(group_id)

    def partitions_of(
        self, group_id: str, topics: Iterable[str] | None = None
    ) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Topic, partition and position of a group, for some topics or for all."""
        stored = self.of_group(group_id)
        for topic in stored if topics is None else topics:
            for partition, committed in stored.get(topic, {}).items():
                yield topic, partition, committed

    @property
    def group_ids(self) -> list[str]:
        """Groups that have a position, if only a pending one."""
        return [*self._groups, *(each for each in self.pending.groups if each not in self._groups)]

    def places_of(self, group_id: str) -> list[tuple[str, int]]:
        """Topics and partitions with a position, pending or not."""
        found = {(topic, index): None for topic, index, _ in self.partitions_of(group_id)}
        for place in self.pending.of_group(group_id):
            found[place.topic, place.partition] = None
        return list(found)

    def places_before(
        self, group_id: str, topics: Collection[str], log_end: int
    ) -> list[tuple[str, int]]:
        """As `places_of`, in some topics, with no record of them in the log from `log_end` on.

        `log_end` is an earlier end of the log.
        """
        newest = {
            (topic, index): committed.log_offset
            for topic, index, committed in self.partitions_of(group_id, topics)
        }
        for place in self.pending.of_group(group_id):
            if place.topic in topics:
                at = place.topic, place.partition
                newest[at] = max(newest.get(at, -1), self.pending.newest(place))
        return [at for at, log_offset in newest.items() if log_offset < log_end]

    def _positions(self, group_id: str, topic: str) -> Positions:
        return self._groups.setdefault(group_id, {}).setdefault(topic, {})
