"""Topologies of Kafka Streams applications, as their members send them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.messages.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupKeyValue,
    StreamsGroupTopicInfo,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

TOPOLOGIES: Final = (
    *("stateful", "stateless", "repartitioned", "fixed", "joined"),
    *("uneven", "absent"),
)
"""Kinds that `topology` makes; the topics of the last two can never be right."""

Topology = StreamsGroupHeartbeatRequest.Topology
Subtopology = StreamsGroupHeartbeatRequest.Topology.Subtopology


def topology(kind: str, prefix: str, epoch: int = 0) -> Topology:
    """A topology of some kind; its internal topics begin with the prefix."""
    changelog = internal(f"{prefix}-store-changelog", replication_factor=-1)
    sinks = [f"{prefix}-r-repartition"]
    if kind == "stateful":
        parts = [part("0", ["one"], changelogs=[changelog])]
    elif kind == "stateless":
        parts = [part("0", ["one"]), part("1", ["two"])]
    elif kind in ("repartitioned", "fixed"):
        source = internal(sinks[0], partitions=3 if kind == "fixed" else 0)
        parts = [
            part("0", ["two"], sinks=sinks),
            part("1", [], changelogs=[changelog], repartitioned=[source]),
        ]
    elif kind == "joined":
        source = internal(sinks[0])
        together = Subtopology.CopartitionGroup(
            source_topics=[0], source_topic_regex=[], repartition_source_topics=[0]
        )
        parts = [
            part("0", ["one"], sinks=sinks),
            part("1", ["two"], repartitioned=[source], together=[together]),
        ]
    elif kind == "uneven":
        together = Subtopology.CopartitionGroup(
            source_topics=[0, 1], source_topic_regex=[], repartition_source_topics=[]
        )
        parts = [part("0", ["one", "two"], together=[together])]
    else:
        parts = [part("0", ["one", "gone"])]
    return Topology(epoch=epoch, subtopologies=parts)


def internal(name: str, partitions: int = 0, replication_factor: int = 0) -> StreamsGroupTopicInfo:
    """A topic that the coordinator creates, of as many replicas as the broker's default."""
    configs = [StreamsGroupKeyValue(key="cleanup.policy", value="compact")]
    return StreamsGroupTopicInfo(
        name=name,
        partitions=partitions,
        replication_factor=replication_factor,
        topic_configs=configs,
    )


def part(  # noqa: PLR0913 - a subtopology has that many lists
    name: str,
    sources: list[str],
    *,
    sinks: Iterable[str] = (),
    changelogs: Iterable[StreamsGroupTopicInfo] = (),
    repartitioned: Iterable[StreamsGroupTopicInfo] = (),
    together: Iterable[Subtopology.CopartitionGroup] = (),
) -> Subtopology:
    """Return one subtopology."""
    return Subtopology(
        subtopology_id=name,
        source_topics=sources,
        source_topic_regex=[],
        state_changelog_topics=list(changelogs),
        repartition_sink_topics=list(sinks),
        repartition_source_topics=list(repartitioned),
        copartition_groups=list(together),
    )
