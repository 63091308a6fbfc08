"""Number of records appended, from the log end offsets at each look.

Counting at each append would cost time; a log's end gives the same number. Records that a log has
when this broker begins to lead it do not count.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.partitions.partition import Partition


class _Look(NamedTuple):
    """A partition as it was found the last time."""

    leader_epoch: int
    end_offset: int


class RecordsIn:
    """Totals by topic, which only grow."""

    def __init__(self) -> None:
        self._seen: dict[Partition, _Look] = {}
        self._totals: Counter[str] = Counter()

    def totals(self, by_topic: Mapping[str, Mapping[int, Partition]]) -> dict[str, int]:
        """Look again; return records by topic led here."""
        looks: dict[Partition, _Look] = {}
        led: set[str] = set()
        for topic, partitions in list(by_topic.items()):
            for partition in list(partitions.values()):
                if partition.is_leader:
                    led.add(topic)
                    look = _Look(partition.leader_epoch, partition.log.log_end_offset)
                    self._totals[topic] += self._since(partition, look)
                    looks[partition] = look
        self._seen = looks
        for topic in self._totals.keys() - led:
            del self._totals[topic]
        return {topic: self._totals[topic] for topic in sorted(led)}

    def _since(self, partition: Partition, look: _Look) -> int:
        before = self._seen.get(partition)
        if before is not None and before.leader_epoch == look.leader_epoch:
            begin = before.end_offset
        else:
            begin = partition.leader_epoch_start_offset
        return max(look.end_offset - begin, 0)
