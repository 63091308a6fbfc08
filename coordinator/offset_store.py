"""Committed offsets of all groups of a shard: group id → topic → partition → position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from protocol.messages.consumer_offsets_records import OffsetCommitKey, OffsetCommitValue

NO_OFFSET: Final = -1
NO_LEADER_EPOCH: Final = -1
NO_EXPIRY_MS: Final = -1


class CommittedOffset(NamedTuple):
    """A stored position."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_EXPIRY_MS
    """Set by clients below version 5 that chose their own retention; else the broker's applies."""


Positions = dict[int, CommittedOffset]


class OffsetStore:
    """Changed by replay only."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, Positions]] = {}

    def put(self, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
        """Replay of a commit."""
        committed = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
        )
        topics = self._groups.setdefault(key.group, {})
        topics.setdefault(key.topic, {})[key.partition] = committed

    def remove(self, key: OffsetCommitKey) -> None:
        """Replay of a tombstone."""
        topics = self._groups.get(key.group)
        positions = topics.get(key.topic) if topics else None
        if topics is None or positions is None:
            return
        positions.pop(key.partition, None)
        if not positions:
            del topics[key.topic]
            if not topics:
                del self._groups[key.group]

    def of_group(self, group_id: str) -> Mapping[str, Positions]:
        """Positions by topic and partition; read only."""
        return self._groups.get(group_id, {})

    def find(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """One position."""
        topics = self._groups.get(group_id)
        positions = topics.get(topic) if topics else None
        return positions.get(partition) if positions else None

    def has_any(self, group_id: str) -> bool:
        """Whether the group has a position at all."""
        return group_id in self._groups

    def partitions_of(
        self, group_id: str, topics: Iterable[str] | None = None
    ) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Topic, partition and position of a group, for some topics or for all."""
        stored = self.of_group(group_id)
        for topic in stored if topics is None else topics:
            for partition, committed in stored.get(topic, {}).items():
                yield topic, partition, committed

    def groups_with(self, topics: Iterable[str]) -> list[str]:
        """Groups that have a position in one of `topics`. Walks all groups."""
        wanted = set(topics)
        return [
            group_id for group_id, stored in self._groups.items() if not wanted.isdisjoint(stored)
        ]
