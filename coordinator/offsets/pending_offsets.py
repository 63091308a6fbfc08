"""Positions committed inside transactions that are still open (KIP-98).

They are in the log, but no consumer may start from them. When the transaction's marker is replayed,
those of a commit replace the positions stored before, and those of an abort are dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from coordinator.offsets.offset_store import CommittedOffset


class Place(NamedTuple):
    """The group and the partition of a position."""

    group_id: str
    topic: str
    partition: int


class PendingOffsets:
    """Pending offsets by producer, with an index by group. Changed by replay only."""

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[Place, CommittedOffset]] = {}
        self._by_group: dict[str, dict[Place, set[int]]] = {}
        """Producers whose open transactions hold a position."""

    def put(self, producer_id: int, place: Place, committed: CommittedOffset) -> None:
        """Replay of a commit inside a transaction."""
        self._by_producer.setdefault(producer_id, {})[place] = committed
        places = self._by_group.setdefault(place.group_id, {})
        places.setdefault(place, set()).add(producer_id)

    def remove(self, place: Place) -> None:
        """Replay a tombstone: remove the position from all producers that have it pending."""
        for producer_id in tuple(self._by_group.get(place.group_id, {}).get(place, ())):
            positions = self._by_producer[producer_id]
            del positions[place]
            if not positions:
                del self._by_producer[producer_id]
            self._unlist(place, producer_id)

    def take(self, producer_id: int) -> Mapping[Place, CommittedOffset]:
        """Replay a marker: remove the producer's pending positions and return them."""
        positions = self._by_producer.pop(producer_id, {})
        for place in positions:
            self._unlist(place, producer_id)
        return positions

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Return whether an open transaction holds a position of this partition."""
        places = self._by_group.get(group_id)
        return places is not None and Place(group_id, topic, partition) in places

    def has_any(self, group_id: str) -> bool:
        """Return whether an open transaction holds a position of the group."""
        return group_id in self._by_group

    def of_group(self, group_id: str) -> Iterator[Place]:
        """All partitions of the group with pending positions, each once."""
        return iter(self._by_group.get(group_id, {}))

    @property
    def groups(self) -> Collection[str]:
        """Groups with a pending position."""
        return self._by_group.keys()

    def newest(self, place: Place) -> int:
        """Return the log offset of the last pending position of a partition."""
        producers = self._by_group[place.group_id][place]
        return max(self._by_producer[each][place].log_offset for each in producers)

    def _unlist(self, place: Place, producer_id: int) -> None:
        places = self._by_group[place.group_id]
        producers = places[place]
        producers.discard(producer_id)
        if not producers:
            del places[place]
            if not places:
                del self._by_group[place.group_id]
