"""Numbers of partitions of a topology's internal topics.

Subtopologies write to repartition topics that others read, so counts follow from each other. Apache
Kafka goes through the subtopologies again and again until every topic that is written to has a
count; a subtopology's counts depend on its sources known at its turn. The same is done here in one
pass: a subtopology has its turn, in the pass and at the place it would have there, as soon as one
of its sources is known.

Source: `RepartitionTopics`, `CopartitionedTopicsEnforcer`, `ChangelogTopics`.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from protocol.errors import ApiError, ErrorCode
from protocol.messages.streams_group_records import StreamsGroupTopologyValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator.topics import Topics

Subtopology = StreamsGroupTopologyValue.Subtopology


class IncorrectlyPartitionedError(Exception):
    """Topics that must be partitioned alike are not: other topics would help."""


def invalid_topology(message: str) -> ApiError:
    """The error for a topology that is invalid regardless of the topics."""
    return ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


class PartitionCounts:
    """The counts of one topology, all of whose source topics exist."""

    def __init__(self, subtopologies: Mapping[str, Subtopology], topics: Topics) -> None:
        """Raises ApiError STREAMS_INVALID_TOPOLOGY and IncorrectlyPartitionedError."""
        self._subtopologies = list(subtopologies.values())
        self._topics = topics
        self._decided: dict[str, int] = {}
        self._decide_repartition_topics()
        self._enforce_copartitioning()
        for each in self._subtopologies:
            count = self.of_sources(each)
            for changelog in each.state_changelog_topics:
                self._decided[changelog.name] = count

    def of_sources(self, subtopology: Subtopology) -> int:
        """The count of the largest topic that a subtopology reads: it has as many tasks."""
        counts = [self._of(topic) for topic in subtopology.source_topics]
        counts += [self._of(each.name) for each in subtopology.repartition_source_topics]
        if not counts:
            raise invalid_topology(
                f"No source topics found for subtopology {subtopology.subtopology_id}"
            )
        return max(counts)

    def decided_for(self, topic: str) -> int:
        """The count of an internal topic for which the application names none."""
        return self._decided[topic]

    def _of(self, topic: str) -> int:
        view = self._topics.find(topic)
        count = self._decided.get(topic) if view is None else view.partition_count
        if count is None:
            raise invalid_topology(f"Number of partitions is not set for topic: {topic}")
        return count

    def _decide_repartition_topics(self) -> None:
        counts = self._decided
        waiting: dict[str, list[int]] = {}
        for index, each in enumerate(self._subtopologies):
            for source in each.repartition_source_topics:
                waiting.setdefault(source.name, []).append(index)
                if source.partitions < 0:
                    raise invalid_topology(
                        f"Topic {source.name} has {source.partitions} partitions."
                    )
                if source.partitions:
                    counts[source.name] = source.partitions
        turns = [(0, index) for index in range(len(self._subtopologies))]
        done: set[int] = set()
        while turns:
            turn, index = heapq.heappop(turns)
            count = None if index in done else self._known_maximum(self._subtopologies[index])
            if count is None:
                continue
            done.add(index)
            for sink in self._subtopologies[index].repartition_sink_topics:
                if sink not in counts:
                    counts[sink] = count
                    for other in waiting.get(sink, ()):
                        heapq.heappush(turns, (turn if other > index else turn + 1, other))
        self._check_all_decided()

    def _known_maximum(self, subtopology: Subtopology) -> int | None:
        known = [self._decided.get(e.name) for e in subtopology.repartition_source_topics]
        views = map(self._topics.find, subtopology.source_topics)
        known += [view.partition_count for view in views if view is not None]
        return max((count for count in known if count is not None), default=None)

    def _check_all_decided(self) -> None:
        for each in self._subtopologies:
            if any(sink not in self._decided for sink in each.repartition_sink_topics):
                raise invalid_topology(
                    "Failed to compute number of partitions for all repartition topics. There may "
                    "be loops in the topology that cannot be resolved."
                )
        for each in self._subtopologies:
            if any(source.name not in self._decided for source in each.repartition_source_topics):
                raise invalid_topology(
                    "Failed to compute number of partitions for all repartition topics, because a "
                    "repartition source topic is never used as a sink topic."
                )

    def _enforce_copartitioning(self) -> None:
        sources = [s for each in self._subtopologies for s in each.repartition_source_topics]
        fixed = {source.name for source in sources if source.partitions}
        repartitioned = {source.name for source in sources}
        fixed_counts = {self._of(name) for name in fixed}
        for each in self._subtopologies:
            for group in _copartition_groups(each):
                inner = {name: self._of(name) for name in group if name in repartitioned}
                outer = {name: self._of(name) for name in group if name not in repartitioned}
                if outer:
                    count = _only(outer.values(), outer)
                elif fixed_counts:
                    count = _only(fixed_counts, inner)
                else:
                    count = max(inner.values())
                self._coerce(inner, fixed, count)

    def _coerce(self, repartitioned: Mapping[str, int], fixed: set[str], count: int) -> None:
        for name, before in repartitioned.items():
            if name in fixed and before != count:
                raise IncorrectlyPartitionedError(
                    f"Number of partitions [{before}] of repartition topic [{name}] doesn't match "
                    f"number of partitions [{count}] of the source topic."
                )
            self._decided[name] = count


def _only(counts: Iterable[int], shown: Mapping[str, int]) -> int:
    different = set(counts)
    if len(different) > 1:
        listed = ", ".join(f"{name}={shown[name]}" for name in sorted(shown))
        raise IncorrectlyPartitionedError(
            f"Following topics do not have the same number of partitions: [{{{listed}}}]"
        )
    return different.pop()


def _copartition_groups(subtopology: Subtopology) -> list[set[str]]:
    """The names that the places in a subtopology's lists stand for."""
    sources = subtopology.source_topics
    repartitioned = [each.name for each in subtopology.repartition_source_topics]
    groups = []
    for group in subtopology.copartition_groups:
        names = set()
        for places, listed in (
            (group.source_topics, sources),
            (group.repartition_source_topics, repartitioned),
        ):
            for place in places:
                if not 0 <= place < len(listed):
                    raise invalid_topology(
                        f"A copartition group of subtopology {subtopology.subtopology_id} names "
                        f"topic {place} of {len(listed)}."
                    )
                names.add(listed[place])
        if names:
            groups.append(names)
    return groups
