"""Topology of an application, and the check that its topics exist as required.

A subtopology reads source topics and repartition topics, and has a changelog for each of its
stores. The requirements of a topology follow from the topics that exist now:

    repartition topic   as many partitions as the application states, else as many as the largest
                        source of the subtopologies that write to it, else as its copartition group
    changelog           as many as the largest source of its subtopology
    tasks               the same

The last two kinds are internal: the coordinator has them created. As long as a topic is missing, or
has another number of partitions, the topology is not ready, and no task is assigned.

Source: KIP-1071, `InternalTopicManager`.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator.streams_groups.partition_counts import (
    IncorrectlyPartitionedError,
    PartitionCounts,
    invalid_topology,
)
from protocol.messages.streams_group_records import (
    StreamsGroupTopologyTopicConfig,
    StreamsGroupTopologyTopicInfo,
    StreamsGroupTopologyValue,
)
from protocol.messages.streams_groups import StreamsGroupHeartbeatRequest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from coordinator.topics import Topics
    from protocol.messages.streams_groups import StreamsGroupTopicInfo

SHOWN_TOPICS: Final = 3
"""Topics that a message names."""

Subtopology = StreamsGroupTopologyValue.Subtopology
SaidSubtopology = StreamsGroupHeartbeatRequest.Topology.Subtopology


class StatusCode(enum.IntEnum):
    """Something that the application should know of its group; the values are sent."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6
    """Known to clients since StreamsGroupHeartbeat 1."""


class Problem(NamedTuple):
    """Reason why a topology is not ready."""

    status: StatusCode
    detail: str


class Topology:
    """A topology as it is stored, and properties that follow from it alone."""

    __slots__ = ("epoch", "required_topics", "source_topics", "subtopologies", "value")

    def __init__(self, value: StreamsGroupTopologyValue) -> None:
        self.value = value
        self.epoch = value.epoch
        self.subtopologies: dict[str, Subtopology] = {
            each.subtopology_id: each for each in value.subtopologies
        }
        self.source_topics: dict[str, str] = {
            topic: each.subtopology_id
            for each in self.subtopologies.values()
            for topic in sources_of(each)
        }
        """Subtopology id by topic that it reads."""
        self.required_topics = frozenset(required_topics(self.subtopologies.values()))
        """All topics without which no task can run."""

    def is_same_as(self, other: Topology) -> bool:
        """Return whether it is the same; the order of subtopologies does not matter."""
        return self.epoch == other.epoch and self.subtopologies == other.subtopologies


class InternalTopic(NamedTuple):
    """A topic that belongs to the application, and that the coordinator has created."""

    name: str
    partitions: int
    replication_factor: int
    """0 for the default."""
    configs: Mapping[str, str]


class ConfiguredSubtopology(NamedTuple):
    """A subtopology with all its numbers."""

    task_count: int
    source_topics: Collection[str]
    repartition_sink_topics: Collection[str]
    repartition_source_topics: Mapping[str, InternalTopic]
    state_changelog_topics: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        """True if its tasks have stores, so that standby tasks are of use."""
        return bool(self.state_changelog_topics)


class ConfiguredTopology(NamedTuple):
    """A topology configured with the existing topics."""

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology]
    """By id, in the order of ids; empty if they cannot be determined."""
    missing: Mapping[str, InternalTopic]
    """Topics to create."""
    problem: Problem | None

    @property
    def is_ready(self) -> bool:
        """True if tasks can be assigned."""
        return self.problem is None

    @property
    def task_count(self) -> int:
        """Tasks of all subtopologies."""
        return sum(each.task_count for each in self.subtopologies.values())


def required_topics(subtopologies: Iterable[Subtopology | SaidSubtopology]) -> Iterator[str]:
    """The topics that subtopologies read or keep their stores in; some may come twice."""
    for subtopology in subtopologies:
        yield from sources_of(subtopology)
        for each in subtopology.state_changelog_topics:
            yield each.name


def sources_of(subtopology: Subtopology | SaidSubtopology) -> Iterator[str]:
    """The topics that a subtopology reads."""
    yield from subtopology.source_topics
    for each in subtopology.repartition_source_topics:
        yield each.name


def topology_of(said: StreamsGroupHeartbeatRequest.Topology) -> Topology:
    """The topology of a heartbeat. Raises ApiError STREAMS_INVALID_TOPOLOGY."""
    if said.epoch < 0:
        raise invalid_topology("Topology epoch must be non-negative.")
    ids = [each.subtopology_id for each in said.subtopologies]
    if len(set(ids)) < len(ids):
        raise invalid_topology("A subtopology id is used more than once.")
    kind = Subtopology
    subtopologies = [
        kind(
            subtopology_id=each.subtopology_id,
            source_topics=each.source_topics,
            source_topic_regex=each.source_topic_regex,
            state_changelog_topics=[_stored(topic) for topic in each.state_changelog_topics],
            repartition_sink_topics=each.repartition_sink_topics,
            repartition_source_topics=[_stored(topic) for topic in each.repartition_source_topics],
            copartition_groups=[
                kind.CopartitionGroup(
                    source_topics=group.source_topics,
                    source_topic_regex=group.source_topic_regex,
                    repartition_source_topics=group.repartition_source_topics,
                )
                for group in each.copartition_groups
            ],
        )
        for each in said.subtopologies
    ]
    return Topology(StreamsGroupTopologyValue(epoch=said.epoch, subtopologies=subtopologies))


def _stored(topic: StreamsGroupTopicInfo) -> StreamsGroupTopologyTopicInfo:
    return StreamsGroupTopologyTopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[
            StreamsGroupTopologyTopicConfig(key=each.key, value=each.value)
            for each in topic.topic_configs
        ],
    )


def configure(topology: Topology, topics: Topics) -> ConfiguredTopology:
    """Fill in the numbers. Raises ApiError STREAMS_INVALID_TOPOLOGY if no topics could help."""
    absent = sorted(
        {
            topic
            for each in topology.subtopologies.values()
            for topic in each.source_topics
            if topics.find(topic) is None
        }
    )
    if absent:
        detail = f"Source topics {_summary(absent)} are missing."
        return _not_ready(topology, Problem(StatusCode.MISSING_SOURCE_TOPICS, detail))
    try:
        counts = PartitionCounts(topology.subtopologies, topics)
        subtopologies = {
            subtopology_id: _configured(topology.subtopologies[subtopology_id], counts)
            for subtopology_id in sorted(topology.subtopologies)
        }
        missing = _missing(topology, subtopologies, topics)
    except IncorrectlyPartitionedError as error:
        problem = Problem(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, str(error))
        return _not_ready(topology, problem)
    found = None
    if missing:
        detail = f"Internal topics are missing: {_summary(sorted(missing))}"
        found = Problem(StatusCode.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, subtopologies, missing, found)


def _not_ready(topology: Topology, problem: Problem) -> ConfiguredTopology:
    return ConfiguredTopology(topology.epoch, {}, {}, problem)


def _configured(subtopology: Subtopology, counts: PartitionCounts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        counts.of_sources(subtopology),
        frozenset(subtopology.source_topics),
        frozenset(subtopology.repartition_sink_topics),
        _internal(subtopology.repartition_source_topics, counts),
        _internal(subtopology.state_changelog_topics, counts),
    )


def _internal(
    listed: list[StreamsGroupTopologyTopicInfo], counts: PartitionCounts
) -> dict[str, InternalTopic]:
    return {
        each.name: InternalTopic(
            each.name,
            each.partitions or counts.decided_for(each.name),
            each.replication_factor,
            {config.key: config.value for config in each.topic_configs},
        )
        for each in listed
    }


def _missing(
    topology: Topology, subtopologies: Mapping[str, ConfiguredSubtopology], topics: Topics
) -> dict[str, InternalTopic]:
    """Internal topics that do not exist. Raises IncorrectlyPartitionedError."""
    wanted: dict[str, InternalTopic] = {}
    for each in subtopologies.values():
        wanted.update(each.repartition_source_topics)
        wanted.update(each.state_changelog_topics)
    for name in sorted(topology.required_topics):
        view = topics.find(name)
        expected = wanted.pop(name, None) if view is not None else None
        if view is None or expected is None:
            continue
        if view.partition_count != expected.partitions:
            raise IncorrectlyPartitionedError(
                f"Existing topic {name} has different number of partitions: expected "
                f"{expected.partitions}, found {view.partition_count}"
            )
    return wanted


def _summary(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN_TOPICS])
    others = len(names) - SHOWN_TOPICS
    return shown + (f" and {others} additional topics" if others > 0 else "")
